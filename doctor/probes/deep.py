"""The ``deep`` section: torch really used, in a child of the examined interpreter. Only when asked for.

A child that crashes in a step is started anew for the steps behind it; one that hangs ends the probe at its limit, and
the steps before it stand.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

import runner.child
from doctor.model import Deep, DeepDevice, DeepStep, Reading, StepStatus, ok, t
from doctor.probes import Context
from doctor.probes.deep_child import AFTER_DEADLINE_S, Ended, run_child, signal_name, where_it_was
from doctor.probes.target import without_python

LIMIT_S = 60.0
READ_LIMIT_BYTES = 256 << 20
READ_LIMIT_S = 5.0
MOST_STARTS = 20
SOURCE = "doctor check --deep"

_PROGRAMS = Path(next(iter(runner.child.__path__)))
_FACTS = ("torch_version", "torch_cuda", "cuda_available", "device_count", "backend", "ranks")


def probe(context: Context, data: str | None = None, limit_s: float = LIMIT_S) -> Reading[Deep]:
    """Use torch in the examined interpreter for at most ``limit_s`` seconds, and read ``data`` for five more.

    Raises:
        doctor.probes.target.BadPython: ``context.python`` names no interpreter.
    """
    target = context.target
    if target.executable is None:
        return without_python(target)
    if target.problem is not None:
        return Reading(status="failed", why=target.problem, source=SOURCE)
    python, begun = str(target.executable), time.monotonic()
    try:
        read = _read_speed(context, python, data) if data is not None else {}
        used = _use_torch(context, python, limit_s)
    except OSError as error:
        why = t("{python} could not be started: {error}", python=python, error=error.strerror or str(error))
        return Reading(status="failed", why=why, source=SOURCE)
    steps = (*used.pop("steps"), *read.pop("steps", ()))
    found = Deep(steps=steps, limit_s=limit_s, **used, **read)
    return ok(found, SOURCE, took_ms=round((time.monotonic() - begun) * 1000, 1))


def _use_torch(context: Context, python: str, limit_s: float) -> dict[str, Any]:
    """Run deep.py until it ends, again behind each crash and each CUDA error that spoils its process.

    Returns the fields of Deep that it fills.
    """
    end = time.monotonic() + limit_s
    told: list[dict[str, Any]] = []
    steps: list[DeepStep] = []
    finished = False
    for _ in range(MOST_STARTS):
        left = end - time.monotonic()
        if left < 1.0 and steps:
            break
        done = [[step.name, step.subject, step.status] for step in steps]
        request = msgspec.json.encode({"mode": "torch", "done": done, "limit_s": left}).decode()
        argv = [python, "-B", "-X", "faulthandler", str(_PROGRAMS / "deep.py"), request]
        ended = run_child(argv, context.environ, context.cwd, left + AFTER_DEADLINE_S)
        told += ended.told
        fresh = steps_of(ended, left)
        steps += fresh
        finished = any("finished" in line for line in ended.told)
        again = any("again" in line for line in ended.told)
        crashed = bool(fresh) and fresh[-1].status == "crashed" and fresh[-1].name != "begin"
        if finished or not (again or crashed):
            break
    return {"steps": tuple(steps), "finished": finished, **_facts_of(told)}


def steps_of(ended: Ended, limit_s: float) -> list[DeepStep]:
    """Return the steps that a child told of; one it began and never answered is where it died, or hung."""
    steps: list[DeepStep] = []
    begun: list[str] | None = None
    for line in ended.told:
        if "begin" in line:
            begun = line["begin"]
        elif "end" in line:
            name, subject = line["end"]
            status: StepStatus = line["status"]
            steps.append(DeepStep(name=name, subject=subject, status=status, seconds=line["seconds"], detail=line["detail"]))  # fmt: skip
            begun = None
    if any("finished" in line for line in ended.told):
        return steps
    if begun is None and ended.code == 0:  # it left on purpose
        return steps
    name, subject = begun or ("begin", "python")
    where = where_it_was(ended.stderr)
    if ended.code is None:
        steps.append(DeepStep(name=name, subject=subject, status="timed-out", seconds=round(limit_s, 1), detail=where))  # fmt: skip
        return steps
    how = signal_name(-ended.code) if ended.code < 0 else f"exit status {ended.code}"
    last = where or next((line.strip() for line in reversed(ended.stderr.splitlines()) if line.strip()), "")
    steps.append(DeepStep(name=name, subject=subject, status="crashed", detail=f"{how}: {last}" if last else how))  # fmt: skip
    return steps


def _facts_of(told: Iterable[dict[str, Any]]) -> dict[str, Any]:
    facts: dict[str, Any] = {}
    devices: dict[int, DeepDevice] = {}
    missing: dict[str, None] = {}
    for line in told:
        facts |= {name: value for name, value in line.get("facts", {}).items() if name in _FACTS}
        if "device" in line:
            devices[line["device"]["index"]] = DeepDevice(**line["device"])
        if "missing" in line:
            missing[line["missing"]] = None
    return {**facts, "devices": tuple(devices.values()), "not_installed": tuple(missing)}


def _read_speed(context: Context, python: str, data: str) -> dict[str, Any]:
    """Measure how fast ``data`` is read; return the step and the fields of Deep that it fills."""
    limits = {"path": data, "limit_bytes": READ_LIMIT_BYTES, "limit_s": READ_LIMIT_S}
    argv = [python, "-B", "-I", str(_PROGRAMS / "read_speed.py"), msgspec.json.encode(limits).decode()]
    begun = time.monotonic()
    ended = run_child(argv, context.environ, context.cwd, 2 * READ_LIMIT_S)
    seconds = round(time.monotonic() - begun, 3)
    answer = ended.told[-1] if ended.told else {}
    status: StepStatus = "ok"
    detail = str(answer.get("error", ""))
    if ended.code is None:
        status, detail = "timed-out", ""
    elif not answer or detail:
        status, detail = "failed", detail or ended.stderr.strip()[-500:]
    step = DeepStep(name="read", subject=data, status=status, seconds=answer.get("seconds", seconds), detail=detail)  # fmt: skip
    fields: dict[str, Any] = {"steps": (step,), "read_path": data}
    if status == "ok":
        took = float(answer["seconds"])
        fields |= {
            "read_bytes": answer["bytes"],
            "read_files": answer["files"],
            "read_bytes_per_s": round(answer["bytes"] / took) if took else None,
            "read_past_cache": answer["past_cache"],
        }
    return fields
