"""What goes wrong in one short run: it hangs, is killed, is short of memory, computes no number. The others go on."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from doctor import benching, service
from doctor.bench_child import Refused, answer_of, train_once
from doctor.bench_journal import Journal
from doctor.bench_order import BenchError, OutOfTime
from doctor.bench_runs import Bench, BenchOptions
from doctor.launch import LaunchError
from runner.plan import encode_plan, make_plan
from runner.rundir import RunDir
from runner.text import t
from tests.bench.test_bench import doctor
from tests.bench.test_order import Played, bench, counts
from tests.bench.test_rows import CPU, PROFILE
from tests.runner.tiny import PROFILE as TINY
from tests.runner.tiny import write_rows

__all__ = ["bench"]


def prepared(tmp_path: Path, script: str) -> RunDir:
    run = RunDir(tmp_path / "run")
    (run.code / "runner" / "child").mkdir(parents=True)
    (run.code / "runner" / "child" / "bench_steps.py").write_text(script)
    run.plan.write_bytes(encode_plan(make_plan(PROFILE, CPU, "")))
    return run


def test_a_run_that_hangs_is_ended_with_its_last_words(tmp_path: Path) -> None:
    run = prepared(tmp_path, "import time\nprint('waiting for a lock', flush=True)\ntime.sleep(600)")
    begun = time.monotonic()
    found = train_once(run, sys.executable, "off", 1.0)
    assert isinstance(found, Refused) and "waiting for a lock" in str(found.why)
    assert time.monotonic() - begun < 60


@pytest.mark.parametrize(
    ("script", "words", "memory_short"),
    [
        ("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)", "killed (SIGKILL)", True),
        ("raise SystemExit('no such column')", "no such column", False),
        ("import sys\nfrom pathlib import Path\nPath(sys.argv[1], 'bench.json').write_text('{\"measured\": {}}')", "ended with status 0", False),
    ],
    ids=["killed by the kernel", "an error of its own", "half an answer"],
)  # fmt: skip
def test_a_run_without_an_answer_says_how_it_ended(
    tmp_path: Path, script: str, words: str, memory_short: bool
) -> None:
    found = train_once(prepared(tmp_path, script), sys.executable, "off", 60.0)
    assert isinstance(found, Refused) and words in str(found.why) and found.memory_short is memory_short


def test_an_answer_on_disk_counts_however_the_process_ended(tmp_path: Path) -> None:
    run = prepared(tmp_path, "")
    (run.path / "bench.json").write_text('{"refused": {"why": {"msgid": "no"}, "memory_short": true}}')
    assert answer_of(run, 1) == Refused(why=t("no"), memory_short=True)


class Failing(Played):
    """*Before* fails in the so-manieth run."""

    fails_at = 5

    def measure(self, variant: Any, number: int) -> Any:
        if variant is None and len(self.log) >= self.fails_at:
            return t("killed")
        return super().measure(variant, number)


def test_before_that_fails_later_leaves_what_was_measured(bench: Played) -> None:
    bench.__class__ = Failing
    with pytest.raises(BenchError, match="killed"):
        bench.compare(bench.variants)
    assert sum(counts(bench).values()) == 4


def test_where_two_looks_would_take_more_than_half_the_time_there_is_one(bench: Played) -> None:
    bench.cost.took("before", 150.0)  # 4 settings twice: 12 runs of 150 s, of 20 minutes
    bench.runs = 15
    with pytest.raises(OutOfTime):
        bench.compare(bench.variants)
    assert counts(bench) == {"slow": 1, "even": 1, "fast": 4, "faster": 4}


@pytest.mark.parametrize(
    "error",
    [BenchError(t("killed")), LaunchError(t("no room")), OSError(28, "No space left on device", "/tmp/x")],
    ids=["before fails", "no run directory", "full disk"],
)
def test_what_goes_wrong_later_ends_the_comparison_with_what_was_measured(
    bench: Played, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []

    def fails(variant: Any, number: int) -> Any:
        if len(bench.log) >= 6:
            raise error
        return Played.measure(bench, variant, number)

    monkeypatch.setattr(bench, "measure", fails)
    monkeypatch.setattr(bench, "tell", lambda text: told.append(str(text)))
    stopped = benching._until(bench, bench.variants)
    assert stopped is not None and "measured until then" in str(stopped.text) and told
    assert sum(counts(bench).values()) == 4


@pytest.mark.parametrize(("minutes", "over"), [(0.0, True), (20.0, False)], ids=["time is over", "it hangs"])
def test_a_run_that_the_end_of_the_time_cuts_off_is_no_failure_of_the_setting(
    tmp_path: Path, minutes: float, over: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = service.load(Path(__file__).parent.parent / "machines/healthy-4090-runpod.json")
    journal = Journal(tmp_path / "kept.jsonl", print)
    one = Bench(PROFILE, CPU, machine, "python", BenchOptions(minutes=minutes), journal, print)
    monkeypatch.setattr(one, "_train", lambda *_: Refused(why=t("ended"), ended=True))
    try:
        if over:
            with pytest.raises(OutOfTime):
                one.run(None)
        else:
            assert one.run(None) == t("ended")
    finally:
        one.close()


# --------------------------------------------------------------------------------------- whole comparisons
LOSS = """\
import torch

def loss(logits, labels):
    found = torch.nn.functional.cross_entropy(logits.float(), labels, reduction="none")
    {trouble}
    return found
"""
TROUBLES = {
    "not a number": ("if len(labels) == 1: found = found * float('nan')", "loss nan"),
    "out of memory": ("if len(labels) == 1: raise RuntimeError('CUDA out of memory. Tried to allocate 2 GiB')", "out of memory (CUDA"),
}  # fmt: skip


def profile(tmp_path: Path, trouble: str) -> Path:
    (tmp_path / "own.py").write_text(LOSS.format(trouble=trouble))
    write_rows(tmp_path / "rows.csv", 60)
    (tmp_path / "tiny.toml").write_text(TINY + 'loss = "own:loss"\n')
    return tmp_path / "tiny.toml"


@pytest.mark.train
@pytest.mark.parametrize("kind", TROUBLES)
def test_one_setting_that_fails_says_why_and_the_others_are_measured(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    trouble, words = TROUBLES[kind]
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("DOCTOR_STATE_DIR", str(tmp_path / "state"))
    done = doctor(tmp_path, str(profile(tmp_path, trouble)), "--levers", "bucketing,accumulation", "--steps", "2", "--pairs", "1",
                  "--json", "--python", sys.executable)  # fmt: skip
    rows: Any = {row["name"]: row for row in json.loads(done.stdout)["rows"]}
    assert rows["accumulation"]["verdict"] == "failed" and words in done.stderr
    assert rows["bucketing"]["runs"] == 1


@pytest.mark.train
def test_where_before_does_not_fit_everything_is_compared_in_smaller_micro_batches_and_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("DOCTOR_STATE_DIR", str(tmp_path / "state"))
    trouble = "if len(labels) > 2: raise RuntimeError('CUDA out of memory. Tried to allocate 2 GiB')"
    words = [str(profile(tmp_path, trouble)), "--levers", "padding", "--steps", "2", "--pairs", "1", "--python", sys.executable]  # fmt: skip
    done = doctor(tmp_path, *words)
    assert "everything is compared in micro-batches of 2" in " ".join(done.stdout.split())
    again = doctor(tmp_path, *words)
    assert "measured before by the same command" in " ".join(again.stdout.split())
    assert again.stderr.count("pair 1 of 1") == 0
