"""One short run of a comparison in a fresh process: started, given so much time, and its answer or why there is none."""

from __future__ import annotations

import os
import signal
import subprocess

import msgspec

from doctor.bench_records import Measured
from doctor.launch import trainer_environment
from doctor.model import Record
from doctor.prove import last_words
from doctor.session_end import end_session
from runner.plan import decode_plan
from runner.rundir import RunDir
from runner.text import Text, t


class Refused(Record, frozen=True, kw_only=True):
    """A run that gave no figures."""

    why: Text
    memory_short: bool = False
    """The same in smaller micro-batches may do."""
    ended: bool = False
    """By us, for its time."""


class Answer(Record, frozen=True, kw_only=True):
    """``bench.json``: one of the two."""

    measured: Measured | None = None
    refused: Refused | None = None


def train_once(run: RunDir, python: str, cache: str, limit_s: float) -> Measured | Refused:
    """Train a prepared run's one epoch; it is ended when it takes longer than ``limit_s``. ``cache`` holds token ids."""
    argv = [python, "-u", str(run.code / "runner" / "child" / "bench_steps.py"), str(run.path)]
    # One tokenisation serves all: what decides the ids is the same in every variant.
    environ = trainer_environment(decode_plan(run.plan.read_bytes()), os.environ) | {"DOCTOR_CACHE": cache}
    with open(run.trainer_log, "ab") as log:
        child = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environ, start_new_session=True)  # fmt: skip
    try:
        code = child.wait(max(1.0, limit_s))
    except subprocess.TimeoutExpired:
        end_session(child)
        words = last_words(run)
        return Refused(why=t("ended after {seconds} s: it took too long; its last words: {words}", seconds=round(limit_s), words=words), ended=True)  # fmt: skip
    except BaseException:  # Ctrl-C: this run is ours alone, and its workers with it
        end_session(child)
        raise
    return answer_of(run, code)


def answer_of(run: RunDir, code: int) -> Measured | Refused:
    """Return what a run that ended with ``code`` left behind."""
    try:
        answer = msgspec.json.decode((run.path / "bench.json").read_bytes(), type=Answer)
    except (OSError, msgspec.MsgspecError):
        answer = Answer()
    found = answer.measured or answer.refused
    if found is not None:
        return found
    if code == -signal.SIGKILL:
        return Refused(why=t("killed (SIGKILL), most likely by the kernel for want of memory"), memory_short=True)  # fmt: skip
    return Refused(why=t("the run ended with status {code}: {words}", code=code, words=last_words(run)))
