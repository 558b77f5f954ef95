"""A snapshot fit to leave the machine: read here or taken from a run, redacted, and written whole or not at all."""

from __future__ import annotations

import contextlib
import os
import pwd
import stat
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Literal

import msgspec

from doctor.machine import BadSnapshot, encode_snapshot, live_snapshot, load_snapshot, with_facts
from doctor.model import GitState, Provenance, Snapshot, ok, t
from doctor.probes import PROBES, Context
from doctor.redact import redact
from doctor.redact_provenance import patch_text
from doctor.redact_scan import Hit, secrets_in_patch
from runner.rundir import find_run
from runner.text import Text

__all__ = ["BadSnapshot", "ExportError", "capture", "default_name", "from_run", "write_snapshot"]

Patch = Literal["refuse", "leave-out", "as-is"]
"""What becomes of a patch: refused where it holds a credential, left out in any case, kept in any case."""


class ExportError(Exception):
    """A snapshot could not be had or written. ``text`` says what, where and the way out."""

    def __init__(self, text: Text) -> None:
        super().__init__(str(text))
        self.text = text


def capture(
    python: str | None = None,
    *,
    data: Sequence[str] = (),
    patch: Patch = "refuse",
    share: bool = False,
    deadline_s: float | None = None,
) -> Snapshot:
    """Read this machine, the environment of ``python``, the code here and ``data``, and return it redacted.

    Raises:
        ExportError: a patch holds what looks like a credential, and ``patch`` says to refuse.
    """
    context = Context(python=python, data_paths=tuple(Path(path).absolute() for path in data))
    return _checked(live_snapshot(context, [*PROBES, "provenance"], deadline_s), patch, share)


def from_run(name: str, *, patch: Patch = "refuse", share: bool = False) -> Snapshot:
    """Return the redacted snapshot that a run was started on, with what the run was told.

    Raises:
        ExportError: there is no such run, it keeps no snapshot that can be read, or a patch holds a credential.
        BadSnapshot: what it keeps is not a snapshot.
    """
    from doctor.snapshots.of_run import run_provenance

    try:
        run = find_run(name)
        snapshot = load_snapshot(run.snapshot)
    except OSError as error:
        where, why = str(error.filename or name), error.strerror or str(error)
        raise ExportError(
            t("cannot read the snapshot of run {run}: {where}: {error}", run=name, where=where, error=why)
        ) from None
    known = snapshot.facts.provenance.value or Provenance()
    told = with_facts(snapshot, provenance=ok(run_provenance(known, run), source=str(run.plan)))
    return _checked(told, patch, share)


def is_run_name(name: str) -> bool:
    """Return whether ``name`` means a run: its directory, its name, or ``last``."""
    try:
        return bool(find_run(name))
    except OSError:
        return False


def _checked(snapshot: Snapshot, patch: Patch, share: bool) -> Snapshot:
    if patch == "refuse" and not share and (hits := credentials_in(snapshot)):
        raise ExportError(
            t(
                "the changes to your code hold what looks like a credential: {places}. "
                "--no-patch leaves the changes out, --patch-as-is keeps them word for word.",
                places=", ".join(f"{hit.file}:{hit.line} ({hit.kind})" for hit in hits[:5]),
            )
        )
    snapshot = without_patches(snapshot) if patch == "leave-out" else snapshot
    return shareable(snapshot, patches_as_they_are=patch == "as-is", share=share)


def credentials_in(snapshot: Snapshot) -> list[Hit]:
    """Return what looks like a credential in the patches of a snapshot."""
    provenance = snapshot.facts.provenance.value or Provenance()
    states = [provenance.git, *(item.git for item in provenance.contents)]
    return [
        hit
        for state in states
        if state and state.patch
        for hit in secrets_in_patch(patch_text(state.patch, state.patch_is_base64))
    ]


def without_patches(snapshot: Snapshot) -> Snapshot:
    provenance = snapshot.facts.provenance.value
    if provenance is None:
        return snapshot

    def bare(state: GitState | None) -> GitState | None:
        if state is None or state.patch is None:
            return state
        return msgspec.structs.replace(state, patch=None, patch_why=t("left out: it was asked for without"))

    contents = tuple(msgspec.structs.replace(item, git=bare(item.git)) for item in provenance.contents)
    bared = msgspec.structs.replace(provenance, git=bare(provenance.git), contents=contents)
    reading = msgspec.structs.replace(snapshot.facts.provenance, value=bared)
    return with_facts(snapshot, provenance=reading)


def shareable(snapshot: Snapshot, *, patches_as_they_are: bool = False, share: bool = False) -> Snapshot:
    """Redact ``snapshot`` with the names that only this machine knows: its own, and the account's."""
    hosts = {host_name(), os.environ.get("HOSTNAME", "")}
    hosts |= {name.partition(".")[0] for name in hosts}
    users = {os.environ.get("USER", ""), os.environ.get("LOGNAME", ""), _account()}
    return redact(
        snapshot,
        users=tuple(sorted(users - {""})),
        hosts=tuple(sorted(hosts - {""}, reverse=True)),
        patches_as_they_are=patches_as_they_are,
        share=share,
    )


def host_name() -> str:
    return os.uname().nodename


def _account() -> str:
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return ""


def default_name(now: datetime | None = None) -> str:
    """Return ``doctor-snapshot-2026-11-30.json`` (UTC)."""
    return f"doctor-snapshot-{(now or datetime.now(timezone.utc)).date().isoformat()}.json"


def write_snapshot(snapshot: Snapshot, target: Path, overwrite: bool = False) -> None:
    """Write a snapshot as :func:`write_file` does."""
    write_file(encode_snapshot(snapshot), target, overwrite)


def write_file(content: bytes, target: Path, overwrite: bool = False) -> None:
    """Write the file with mode 0600: beside the target first, then put in place in one step.

    A link is followed. What is no file (/dev/null, a pipe) is written into and never replaced.

    Raises:
        ExportError: the target is there already and ``overwrite`` is not set, or the disk or its rights refuse.
    """
    into = _is_stream(target)
    if not overwrite and not into and os.path.lexists(target):
        raise ExportError(
            t("{file} is there already; --force overwrites it, -o names another", file=str(target))
        )
    real = Path(os.path.realpath(target))
    beside = real.with_name(f".{real.name}.{os.urandom(4).hex()}.part")
    try:
        if into:
            _write_into(target, content)
        else:
            _write_private(beside, content)
            _put_in_place(beside, real, overwrite)
    except OSError as error:
        with contextlib.suppress(OSError):  # it may never have been made
            beside.unlink()
        raise ExportError(
            t(
                "cannot write {file}: {error}; -o names another place, `-o -` prints it",
                file=str(target),
                error=error.strerror or str(error),
            )
        ) from None


def _is_stream(path: Path) -> bool:
    """Return whether there is something at ``path`` that is neither a file nor a folder."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


def _write_into(path: Path, content: bytes) -> None:
    with path.open("wb") as stream:
        stream.write(content)


def _write_private(path: Path, content: bytes) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(fd, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _put_in_place(beside: Path, target: Path, overwrite: bool) -> None:
    if overwrite:
        os.replace(beside, target)  # noqa: PTH105 - its atomicity is the point
        return
    try:
        os.link(beside, target)  # fails where the target has appeared meanwhile
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links
        os.rename(beside, target)  # noqa: PTH104
        return
    beside.unlink()
