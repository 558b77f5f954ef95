"""The machines of a fleet, gathered over the rendezvous that the launcher made: this rank's part in it."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

import runner.child
from doctor.fleet_records import Member, some_names
from doctor.launch import LaunchError
from doctor.machine import BadSnapshot, decode_snapshot, encode_snapshot
from doctor.model import Snapshot
from doctor.probes.deep_child import run_child, signal_name
from doctor.slurm import slurm_task
from runner.strings import printable
from runner.text import Text, t

_PROGRAM = Path(next(iter(runner.child.__path__))) / "fleet.py"
_RANKS = ("RANK", "OMPI_COMM_WORLD_RANK")
_AFTER_LIMIT_S = 30.0
"""What imports and the measuring may take beyond the joining."""


def launched(environ: Mapping[str, str]) -> dict[str, str] | None:
    """Return the variables of this process with its rank among them, as its launcher says it; None: nobody launched it as
    one of several.

    Raises:
        LaunchError: SLURM does not say where its tasks meet.
    """
    if any(environ.get(name, "").isdigit() for name in _RANKS):
        return dict(environ)
    task = slurm_task(environ)
    return None if task is None else {**environ, **task.variables}


def gather(snapshot: Snapshot, python: str, limit_s: float, environ: Mapping[str, str]) -> list[Member]:
    """Hand this rank's snapshot to rank 0; return all members there, and nothing on the other ranks.

    Raises:
        LaunchError: not all ranks joined in time, or torch does not work here.
    """
    with tempfile.TemporaryDirectory(prefix="doctor-fleet-") as name:
        folder = Path(name)
        (folder / "snapshot.json").write_bytes(encode_snapshot(snapshot))
        request = {
            "snapshot": str(folder / "snapshot.json"),
            "out": str(folder / "members"),
            "limit_s": limit_s,
            "folder": str(Path.cwd()),
        }
        argv = [python, "-B", str(_PROGRAM), msgspec.json.encode(request).decode()]
        try:
            ended = run_child(argv, environ, folder, limit_s + _AFTER_LIMIT_S)
        except OSError as error:
            why = error.strerror or str(error)
            raise LaunchError(
                t("the interpreter {python} could not be started: {error}", python=python, error=why)
            ) from None
        if ended.code != 0:
            if missing := next((line["missing"] for line in ended.told if line.get("missing")), None):
                raise LaunchError(_not_all(missing, limit_s))
            told = next((str(line["error"]) for line in ended.told if "error" in line), "")
            raise LaunchError(
                t("the ranks did not come together within {seconds} s: {why}",
                  seconds=round(limit_s), why=printable(told or _died(ended.code, ended.stderr)))
            )  # fmt: skip
        return [_member(msgspec.json.decode(line)) for line in (folder / "members").read_bytes().splitlines()]


def _member(line: dict[str, Any]) -> Member:
    try:
        snapshot = decode_snapshot(line["snapshot"].encode(), line["name"])
    except BadSnapshot as error:
        raise LaunchError(error.text) from None
    return Member(
        name=line["name"], snapshot=snapshot, host=line["host"], measures=line["measures"], clock_s=line["clock_s"]
    )  # fmt: skip


def _not_all(missing: list[int], limit_s: float) -> Text:
    who = some_names([f"rank {rank}" for rank in missing])
    return t("{who} did not come within {seconds} s: is it started there, does MASTER_ADDR mean the same machine everywhere, and is the "
             "way to it open?", who=who, seconds=round(limit_s))  # fmt: skip


def _died(code: int | None, stderr: str) -> str:
    if code is None:
        return "no answer"
    last = next((line.strip() for line in reversed(stderr.splitlines()) if line.strip()), "-")
    return f"{signal_name(-code)}: {last}" if code < 0 else last
