"""A snapshot fit to leave the machine: read here or taken from a run, redacted, and written whole or not at all."""

from __future__ import annotations

import contextlib
import os
import pwd
import secrets
import socket
from datetime import datetime, timezone
from pathlib import Path

from doctor.machine import BadSnapshot, encode_snapshot, live_snapshot, load_snapshot
from doctor.model import Snapshot, t
from doctor.probes import Context
from doctor.redact import redact
from runner.rundir import find_run
from runner.text import Text

__all__ = ["BadSnapshot", "ExportError", "capture", "default_name", "from_run", "write_snapshot"]


class ExportError(Exception):
    """A snapshot could not be had or written. ``text`` says what, where and the way out."""

    def __init__(self, text: Text) -> None:
        super().__init__(str(text))
        self.text = text


def capture(python: str | None = None) -> Snapshot:
    """Read this machine and the environment of ``python``, and return it redacted."""
    return shareable(live_snapshot(Context(python=python)))


def from_run(name: str) -> Snapshot:
    """Return the redacted snapshot that a run was started on.

    Raises:
        ExportError: there is no such run, or it keeps no snapshot that can be read.
        BadSnapshot: what it keeps is not a snapshot.
    """
    try:
        run = find_run(name)
        return shareable(load_snapshot(run.snapshot))
    except OSError as error:
        where, why = str(error.filename or name), error.strerror or str(error)
        raise ExportError(
            t("cannot read the snapshot of run {run}: {where}: {error}", run=name, where=where, error=why)
        ) from None


def shareable(snapshot: Snapshot) -> Snapshot:
    """Redact ``snapshot`` with the names that only this machine knows: its own, and the account's."""
    hosts = {socket.gethostname(), os.environ.get("HOSTNAME", "")}
    hosts |= {name.partition(".")[0] for name in hosts}
    users = {os.environ.get("USER", ""), os.environ.get("LOGNAME", ""), _account()}
    return redact(
        snapshot, users=tuple(sorted(users - {""})), hosts=tuple(sorted(hosts - {""}, reverse=True))
    )


def _account() -> str:
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return ""


def default_name(now: datetime | None = None) -> str:
    """Return ``doctor-snapshot-2026-11-30.json`` (UTC)."""
    return f"doctor-snapshot-{(now or datetime.now(timezone.utc)).date().isoformat()}.json"


def write_snapshot(snapshot: Snapshot, target: Path, overwrite: bool = False) -> None:
    """Write the file with mode 0600: beside the target first, then put in place in one step.

    Raises:
        ExportError: the target is there already and ``overwrite`` is not set, or the disk or its rights refuse.
    """
    if not overwrite and os.path.lexists(target):
        raise ExportError(
            t("{file} is there already; --force overwrites it, -o names another", file=str(target))
        )
    beside = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
    try:
        _write_private(beside, encode_snapshot(snapshot))
        _put_in_place(beside, target, overwrite)
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
