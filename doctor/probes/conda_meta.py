"""conda's own record of what it installed: ``conda-meta/*.json``, read directly (``conda list`` takes three seconds)."""

from __future__ import annotations

from pathlib import Path

import msgspec

from doctor.model import CondaPackage, Text, t
from doctor.probes.bounded import names_in, read_bytes
from doctor.probes.gaps import reason_of
from doctor.redact_secrets import without_secrets
from runner.strings import printable

RECORD_LIMIT_BYTES = 32 << 20


class _Meta(msgspec.Struct):
    """The fields of a conda-meta file that we use; the thousands of file names in it are skipped."""

    name: str = ""
    version: str = ""
    build: str = ""
    channel: str = ""
    url: str = ""
    sha256: str | None = None


def read_conda(prefix: Path, unread: dict[str, Text]) -> tuple[CondaPackage, ...]:
    """Return conda's packages of an environment, in order of name; ``unread["conda"]`` says what could not be read."""
    found = []
    for name in names_in(prefix / "conda-meta"):
        path = prefix / "conda-meta" / name
        if not name.endswith(".json"):
            continue
        try:
            meta = msgspec.json.decode(read_bytes(path, RECORD_LIMIT_BYTES), type=_Meta)
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as error:
            why = reason_of(error) if isinstance(error, OSError) else str(error)
            unread["conda"] = t("{path} could not be read: {error}", path=printable(str(path)), error=why)
            continue
        found.append(_package(meta))
    return tuple(found)


def _package(meta: _Meta) -> CondaPackage:
    return CondaPackage(
        name=printable(meta.name),
        version=printable(meta.version),
        build=printable(meta.build),
        channel=printable(without_secrets(meta.channel)),
        url=printable(without_secrets(meta.url)),
        sha256=f"sha256:{meta.sha256}" if meta.sha256 else "",
    )
