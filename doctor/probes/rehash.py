"""Reads installed files again and holds them against their RECORD: what was changed, cut short or deleted since."""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from doctor.model import t
from doctor.probes.bounded import names_in, open_regular, read_bytes
from doctor.probes.dist_info import name_and_version
from doctor.probes.gaps import reason_of
from doctor.probes.record_digest import RECORD_LIMIT_BYTES, all_rows
from doctor.snapshots.verify import FileCheck
from runner.strings import printable

DAMAGED_SHOWN = 20
_COMPILED = (b".pyc", b".pyo")
_ALGORITHMS = ("sha256", "sha384", "sha512")


def check_files(
    folders: tuple[Path, ...], tell: Callable[[str, int, int], None] | None = None
) -> dict[str, FileCheck]:
    """Return name -> what became of its files, of every distribution in ``folders``; the first copy counts.

    ``tell(name, done, total)`` is called before each.
    """
    found: dict[str, FileCheck] = {}
    places = [
        (site, name) for site in map(str, folders) for name in names_in(site) if name.endswith(".dist-info")
    ]
    with ThreadPoolExecutor(max_workers=min(4, os.cpu_count() or 1)) as pool:  # hashing lets go of the lock
        for number, (site, folder_name) in enumerate(places):
            name = printable(name_and_version(folder_name)[0])
            if tell:
                tell(name, number, len(places))
            found.setdefault(name, check_distribution(site, folder_name, name, pool))
    return found


def check_distribution(site: str, folder_name: str, name: str, pool: ThreadPoolExecutor) -> FileCheck:
    path = f"{site}/{folder_name}/RECORD"
    try:
        record = read_bytes(path, RECORD_LIMIT_BYTES)
    except OSError as error:
        return FileCheck(
            name=name,
            why=t("{path} could not be read: {error}", path=printable(path), error=reason_of(error)),
        )
    rows = [
        (os.fsdecode(file), noted.decode("ascii", "replace"))
        for file, noted in all_rows(record)
        if noted and not file.endswith(_COMPILED)  # a wheel may bring one, and Python writes it anew
    ]
    verdicts = pool.map(lambda row: _is_whole(os.path.join(site, row[0]), row[1]), rows)  # noqa: PTH118 - thousands
    damaged = [printable(file) for (file, _), whole in zip(rows, verdicts, strict=True) if not whole]
    return FileCheck(name=name, files=len(rows), damaged=tuple(damaged[:DAMAGED_SHOWN]))


def _is_whole(path: str, noted: str) -> bool:
    # sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU
    algorithm, _, expected = noted.partition("=")
    if algorithm not in _ALGORITHMS:
        return True
    try:
        fd = open_regular(path)
    except OSError:
        return False
    with os.fdopen(fd, "rb", buffering=0) as file:
        digest = hashlib.new(algorithm)
        while piece := file.read(1 << 20):
            digest.update(piece)
    return base64.urlsafe_b64encode(digest.digest()).rstrip(b"=").decode() == expected.rstrip("=")
