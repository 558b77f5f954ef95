"""The environment as a file: written, found, compared, verified, converted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from doctor.service.diagnosis import load

if TYPE_CHECKING:
    from doctor.model import Snapshot
    from doctor.snapshots.capture import Patch
    from doctor.snapshots.diff import Diff
    from doctor.snapshots.fit import Fit
    from doctor.snapshots.formats import Rendered
    from doctor.snapshots.known_good import KnownEnvironment
    from doctor.snapshots.resolved import Resolution
    from doctor.snapshots.verify import Level, Verification
    from runner.text import Text


EXPORT_DEADLINE_S = 60.0
"""A snapshot may take its time: it is the last thing done before the machine is given back."""


def export_snapshot(
    output: str | None,
    python: str | None = None,
    run: str | None = None,
    overwrite: bool = False,
    *,
    data: Sequence[str] = (),
    patch: Patch = "refuse",
    share: bool = False,
) -> Path | bytes:
    """Write this machine (or the one a run was started on), redacted, and return the file; its bytes for
    ``-``.

    Raises:
        doctor.snapshots.capture.ExportError: it cannot be read or written, or a patch holds a credential.
        doctor.machine.BadSnapshot: what the run keeps is not a snapshot.
    """
    from doctor.machine import encode_snapshot
    from doctor.snapshots import capture

    if run:
        snapshot = capture.from_run(run, patch=patch, share=share)
    else:
        snapshot = capture.capture(python, data=data, patch=patch, share=share, deadline_s=EXPORT_DEADLINE_S)
    if output == "-":
        return encode_snapshot(snapshot)
    target = Path(output) if output else Path(capture.default_name())
    target = target / capture.default_name() if target.is_dir() else target
    capture.write_snapshot(snapshot, target, overwrite)
    return target


def find_snapshot(name: str) -> tuple[Path, Snapshot]:
    """Return the snapshot of a file, a run directory, or a shipped one's name. Raises as :func:`load`."""
    from doctor.data_files import lock_beside, snapshots_dir

    path = Path(name)
    shipped = snapshots_dir() / f"{name}.json"
    if not path.exists() and "/" not in name and shipped.is_file():
        path = shipped
    snapshot = load(path)
    if snapshot.known_good is None or (lock := lock_beside(path)) is None:
        return path, snapshot
    from doctor.snapshots.known_good import with_lock

    return path, with_lock(snapshot, lock)


def patch_bytes_in(path: Path) -> int:
    """Return how many bytes of patches a snapshot file carries; 0: none, or it is no file. Raises as :func:`load`."""
    if not path.is_file() or b'"patch": ' not in path.read_bytes():
        return 0
    provenance = load(path).facts.provenance.value
    states = [provenance.git, *(one.git for one in provenance.contents)] if provenance else []
    return sum(state.patch_bytes or 0 for state in states if state and state.patch is not None)


def snapshot_named(name: str, python: str | None = None) -> Snapshot:
    """Return the snapshot of a file, a run, a shipped one's name, or of ``here`` (redacted like a file).

    Raises:
        OSError, doctor.machine.BadSnapshot: as :func:`load`.
        doctor.snapshots.capture.ExportError: there is no such run.
    """
    from doctor.snapshots import capture

    if name == "here":
        return capture.capture(python, patch="as-is", deadline_s=EXPORT_DEADLINE_S)
    if (Path(name) / "plan.json").is_file() or (not Path(name).exists() and capture.is_run_name(name)):
        return capture.from_run(name, patch="as-is")
    return find_snapshot(name)[1]


def diff_snapshots(a: str, b: str, python: str | None = None) -> Diff:
    """Hold two snapshots against each other; each is a file, a run, a shipped name or ``here``."""
    from doctor.snapshots.diff import diff

    return diff(snapshot_named(a, python), snapshot_named(b, python), a, b)


def verify_snapshot(
    name: str,
    level: Level = "record",
    python: str | None = None,
    tell: Callable[[str, int, int], None] | None = None,
    proof_of: str | None = None,
    tell_proof: Callable[[Text], None] = print,
) -> Verification:
    """Hold this environment against a snapshot, down to ``level``. ``tell(package, done, total)`` while files are read.

    At the level ``proof`` the steps of the run or profile ``proof_of`` (default: the run that ``name`` is) are trained.
    """
    import msgspec

    from doctor.probes import Context
    from doctor.restore_nearest import kept_changes
    from doctor.snapshots.nearest import explained
    from doctor.snapshots.verify import verify

    reference, here = snapshot_named(name), snapshot_named("here", python)
    target = Context(python=python).target
    checked = None
    if level in ("files", "proof"):
        from doctor.probes.rehash import check_files

        checked = check_files(target.site_packages, tell)
    found = explained(verify(reference, here, level, checked), kept_changes(target.prefix))
    if level != "proof":
        return found
    from doctor.verify_proof import repeat_proof

    proof = repeat_proof(reference, here, proof_of or name, str(target.executable or ""), tell_proof)
    return msgspec.structs.replace(found, proof=proof)


def fit_snapshot(
    name: str,
    target: str | None = None,
    driver: str | None = None,
    cards: Sequence[str] = (),
    python: str | None = None,
    glibc: str | None = None,
) -> Fit:
    """Say whether a machine (a snapshot, ``here``, or what the options describe) can take a snapshot's environment."""
    from doctor.snapshots.fit import described_target, fit

    machine = snapshot_named(target) if target else described_target(driver, cards, python, glibc)
    return fit(snapshot_named(name), machine)


def convert_snapshot(name: str, form: str) -> Rendered:
    """Return a snapshot in another tool's format. Raises doctor.snapshots.formats.FormatError."""
    from doctor.snapshots.formats import convert

    return convert(snapshot_named(name), form)


def write_text(text: str, target: Path, overwrite: bool = False) -> None:
    """Write a file whole or not at all. Raises doctor.snapshots.capture.ExportError."""
    from doctor.snapshots.capture import write_file

    write_file(text.encode("utf-8", "surrogateescape"), target, overwrite)


def resolve_snapshot(name: str, output: str | None, overwrite: bool = False) -> tuple[Path, Resolution]:
    """Ask the indexes for each wheel's address and digest, and write the snapshot that knows them.

    ``output`` None: beside the file, as ``NAME-resolved.json``.

    Raises:
        doctor.resolve.ResolveError: the indexes could not be asked.
        doctor.snapshots.capture.ExportError: it cannot be written.
    """
    import os

    from doctor.probes import Context
    from doctor.probes.index_config import read_indexes
    from doctor.resolve import resolve
    from doctor.snapshots.capture import write_snapshot

    path, snapshot = find_snapshot(name)
    target = Path(output) if output else Path(f"{path.stem}-resolved.json")
    public = [
        line for line in read_indexes(Context(), None, {}) if line.url.startswith(("http://", "https://"))
    ]
    found = resolve(snapshot, public, dict(os.environ))  # a folder of this machine is nowhere else
    write_snapshot(found.snapshot, target, overwrite)
    return target, found


def show_snapshot_lines(snapshot: Snapshot, name: str, width: int) -> list[str]:
    from doctor.render.snapshot_text import snapshot_lines

    return snapshot_lines(snapshot, name, width)


def known_snapshots() -> list[tuple[str, Path, str]]:
    """Return name, file and label of every snapshot that ships with the doctor."""
    from doctor.data_files import snapshots_dir

    paths = sorted(snapshots_dir().glob("*.json"))
    return [(path.stem, path, load(path).label) for path in paths]


def known_environments() -> list[KnownEnvironment]:
    """Return every snapshot that ships with the doctor, with what it wants of a machine."""
    from doctor.snapshots.known_good import known_environment

    return [known_environment(name, str(path), load(path)) for name, path, _ in known_snapshots()]


def local_snapshots(folder: Path = Path()) -> list[tuple[Path, str]]:
    """Return file and label of every snapshot in ``folder``, newest first; other JSON files are passed over."""
    from doctor.machine import BadSnapshot

    found: list[tuple[float, Path, str]] = []
    for path in folder.glob("*.json"):
        try:
            label = load(path).label
            found.append((path.stat().st_mtime, path, label))
        except (OSError, BadSnapshot):
            continue
    return [(path, label) for _, path, label in sorted(found, reverse=True)]
