"""Recorded machines and runs for the screens: run directories by the real writer, and a source on them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from doctor.cure import Proposal, Turn
from doctor.expectations import Expected
from doctor.judge import fold_symptoms
from doctor.model import (
    Deep,
    DeepStep,
    Evidence,
    Facts,
    Finding,
    Fix,
    Python,
    Reading,
    Report,
    Snapshot,
    Torch,
    Unanswered,
    ok,
    t,
)
from doctor.replay import Replay
from doctor.running import find_profile
from doctor.snapshots.diff import Diff, NotCompared
from doctor.snapshots.differences import Difference
from doctor.tui.fixing import Cured, FixPlan
from doctor.tui.source import DecisionRow, Examination, PlanRow, ProfileRow, RunRow, SnapshotRow, Watcher
from doctor.watching import RunWatcher
from runner.events import EventWriter
from runner.plan import MachineFacts, encode_plan, make_plan
from runner.profile import load_profile
from runner.rundir import RunDir
from runner.state import RunState

START = 1_790_000_000.0
"""Wall time at which every recorded run begins."""


@cache
def planned() -> bytes:
    """Return a plan.json: the quickstart's, for a machine without a card."""
    profile = load_profile(find_profile("quickstart"))
    return encode_plan(make_plan(profile, MachineFacts(device="cpu"), "2026-09-21T00:00:00+00:00"))


class Clock:
    """A clock that stands still until it is told."""

    def __init__(self, now: float = START) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


class RunBuilder:
    """Writes a run directory as trainer and sampler would, one second a step."""

    def __init__(self, path: Path) -> None:
        self.run = RunDir(path)
        self.run.make()
        self.run.plan.write_bytes(planned())
        self.clock = Clock()
        self.trainer = EventWriter(self.run.events / "trainer-0.jsonl", "trainer-0", self.clock)
        self.sampler = EventWriter(self.run.events / "sampler.jsonl", "sampler", self.clock)

    def start(self, steps_total: int = 100, **data: Any) -> RunBuilder:
        about = {"model": "all-MiniLM-L6-v2", "device": "cpu", "precision": "bf16", "hostname": "rented-1"}
        self.trainer.write("run-started", steps_total=steps_total, **{**about, **data})
        return self

    def steps(self, count: int, first: int = 1, loss: Callable[[int], float] | None = None) -> RunBuilder:
        for step in range(first, first + count):
            self.clock.now += 1
            value = loss(step) if loss else 0.2 + 1.4 * math.exp(-step / 30) + 0.08 * math.sin(step * 1.7)
            self.trainer.write(
                "step", step, loss=value, lr=5e-5 * (1 - step / 200), grad_norm=1.25 + 0.3 * math.cos(step), samples=32, tokens=3000,
                padded_tokens=4000, epoch=step / 50, seconds=1.0 + 0.1 * math.sin(step),
                split={"data": 0.1, "forward": 0.3, "backward": 0.5, "optimizer": 0.1},
            )  # fmt: skip
        return self

    def evaluation(self, step: int, accuracy: float, loss: float) -> RunBuilder:
        self.clock.now += 1
        data = {"accuracy": accuracy, "loss": loss, "samples": 300, "seconds": 2.0, "best": True}
        self.trainer.write("evaluation", step, **data)
        return self

    def checkpoint(self, step: int) -> RunBuilder:
        path = str(self.run.checkpoint(step))
        self.trainer.write("checkpoint", step, path=path, seconds=1.2, bytes=91_000_000, reason="interval")
        return self

    def note(self, level: str, msgid: str, **params: Any) -> RunBuilder:
        self.trainer.write("note", level=level, text={"msgid": msgid, "params": params})
        return self

    def host(self, **data: Any) -> RunBuilder:
        usual = {"cpu_pct": 187.0, "rss_bytes": 1_400_000_000, "memory_used_bytes": 9_000_000_000,
                 "memory_limit_bytes": 24_000_000_000, "processes": 3, "threads": 21,
                 "disk_free_bytes": 31_000_000_000}  # fmt: skip
        self.sampler.write("sample-host", **{**usual, **data})
        return self

    def gpu(self, **data: Any) -> RunBuilder:
        self.sampler.write("sample-gpu", **data)
        return self

    def stacks(self, **data: Any) -> RunBuilder:
        self.sampler.write("sample-stacks", **data)
        return self

    def finish(self, outcome: str = "completed", **data: Any) -> RunBuilder:
        self.trainer.write("run-finished", outcome=outcome, **data)
        return self


ONE_4090 = {
    "gpus": [
        {"index": 0, "name": "NVIDIA GeForce RTX 4090", "utilization_pct": 97.0,
         "memory_used_bytes": 20 << 30, "memory_total_bytes": 24 << 30, "temperature_c": 71.0,
         "power_w": 401.0, "power_limit_w": 450.0,
         "sm_clock_mhz": 2520.0, "throttle_reasons": ["sw-thermal"],
         "unread": {"pcie_rx_bytes_per_s": "Not Supported"}}
    ]
}  # fmt: skip
FRAMES = [
    {"function": "forward", "file": "/venv/lib/python3.11/site-packages/transformers/modeling_bert.py",
     "line": 512, "self_share": 0.41, "total_share": 0.72, "process": "trainer 4242"},
    {"function": "step", "file": "optim.py", "line": 61, "self_share": 0.11, "total_share": 0.12,
     "process": "trainer 4242"},
    {"function": "__getitem__", "file": "data.py", "line": 33, "self_share": 0.30, "total_share": 0.35,
     "process": "worker 4250"},
]  # fmt: skip


def whole_run(path: Path) -> RunBuilder:
    """A finished run with everything a screen can show."""
    run = RunBuilder(path).start().steps(50).evaluation(50, 0.91, 0.61).checkpoint(50)
    run.host().gpu(why={"msgid": "this machine has no NVIDIA driver", "params": {}})
    run.stacks(samples=100, errors=2, frames=FRAMES)
    run.note("warn", "the loader waited {share} of the time", share="31 %").steps(50, first=51)
    run.evaluation(100, 0.96, 0.35)
    return run.finish(metrics={"accuracy": 0.96}, final_dir="final", steps=100)


HEALTHY_FACTS = Facts(
    python=ok(Python(version="3.11.9", executable="/opt/venv/bin/python", chosen_by="VIRTUAL_ENV")),
    torch=ok(Torch(version="2.6.0+cu124")),
    driver=Reading(status="failed", why=t("NVML did not answer within {seconds} s", seconds=5)),
)
CAUSE = Finding(
    id="driver-too-old-for-torch-cuda",
    level="fail",
    title=t("Driver {driver} cannot run the CUDA {cuda} of torch", driver="550.90", cuda="12.8"),
    advice=t("Install a torch built for CUDA 12.4: `pip install torch --index-url URL`"),
    evidence=(Evidence(fact="driver.version", value="550.90"), Evidence(fact="torch.cuda", value="12.8")),
    cause_of=("cuda-not-available",),
    fix="torch-for-driver",
)
SYMPTOM = Finding(id="cuda-not-available", level="fail", title=t("torch sees no GPU"))
WARNING = Finding(
    id="small-shm",
    level="warn",
    title=t("/dev/shm has only {size}", size="64 MB"),
    evidence=(Evidence(fact="storage.mounts[2].size_bytes", value="67108864"),),
)


def report(findings: Sequence[Finding] = (CAUSE, SYMPTOM, WARNING), **fields: Any) -> Report:
    usual: dict[str, Any] = {"passed": ("torch_imports", "disk_has_room"), "not_applicable": ("mig_mode",)}
    return Report(diagnoses=fold_symptoms(findings), **{**usual, **fields})


DIFFERENCE = Diff(
    a="a",
    b="b",
    verdict="other-numbers",
    differences=(
        Difference(section="packages", subject="transformers", a="4.48.0", b="4.55.2", verdict="other-numbers",
                   why=t("another release of {name} may compute other things: defaults, algorithms, order of rows",
                         name="transformers"), source="PyTorch, Reproducibility note"),
        Difference(section="environment", subject="OMP_NUM_THREADS", a="8", b="", verdict="same-numbers",
                   why=t("{name} decides how sums are split and rounded", name="OMP_NUM_THREADS")),
        Difference(section="packages", subject="rich", a="14.0", b="15.0", verdict="same-bits",
                   why=t("no number passes through {name}", name="rich")),
    ),
    not_compared=(NotCompared(section="driver", why=t("it was not read in {name}", name="a")),),
    packages_equal=40,
    packages_equal_by_content=38,
)  # fmt: skip


def unread_driver() -> Unanswered:
    why = t("NVML did not answer within {seconds} s", seconds=5)
    return Unanswered(section="driver", why=why, checks=("driver_runs_torch", "driver_is_whole"))


class RecordedWatcher(RunWatcher):
    """The real watcher, told by the record whether the trainer lives."""

    def __init__(self, source: RecordedSource, run: RunDir) -> None:
        super().__init__(run, source.clock)
        self._source = source

    def _ask_alive(self) -> None:
        self.alive = self._source.is_alive

    def poll(self) -> RunState:
        self._source.answer()
        return super().poll()


class RecordedSource:
    """Answers every question from records; remembers what it was asked to do."""

    def __init__(
        self, judged: Report | None = None, runs: Sequence[Path] = (), clock: Clock | None = None
    ) -> None:
        self.judged = judged or report()
        self.run_paths = {path.name: path for path in runs}
        self.clock = clock or Clock()
        self.is_alive: bool | None = None
        self.examined = 0
        self.started: list[str] = []
        self.stopped: list[str] = []
        self.resumed: list[str] = []
        self.fixes: dict[str, Fix] = {}
        """By the finding's id; the others have none."""
        self.applied: list[str] = []
        self.undone: list[str] = []
        self.exported: list[str] = []
        self.expectation: Expected | None = None
        self.failure: Exception | None = None
        """Raised by every question while it is set."""

    def answer(self) -> None:
        if self.failure is not None:
            raise self.failure

    def examine(self) -> Examination:
        self.answer()
        self.examined += 1
        return Examination(Snapshot(facts=HEALTHY_FACTS), self.judged)

    def examine_deeply(self, examination: Examination) -> Examination:
        self.answer()
        steps = (
            DeepStep(name="import", subject="torch", status="ok", seconds=1.2),
            DeepStep(name="matmul", subject="cuda:0", status="failed"),
        )
        facts = msgspec.structs.replace(examination.snapshot.facts, deep=ok(Deep(steps=steps, finished=True)))
        return Examination(Snapshot(facts=facts), self.judged)

    def plan_fix(self, examination: Examination, finding_id: str, subject: str) -> FixPlan | None:
        self.answer()
        finding = next(one for one in self.judged.findings() if one.id == finding_id)
        fix = self.fixes.get(finding_id)
        if fix is None:
            return FixPlan(Proposal(finding=finding, why_not=t("only the provider can change it")))
        previews = tuple((f"+ line {index}",) for index, _ in enumerate(fix.steps))
        return FixPlan(Proposal(finding=finding, fix=fix), previews, (None,) * len(fix.steps))

    def apply_fix(self, examination: Examination, proposal: Proposal, tell: Callable[[str], None]) -> Cured:
        self.answer()
        self.applied.append(proposal.finding.id)
        tell("1. done: a step")
        turn = Turn(id=proposal.finding.id, subject="", before="fail", after=None)
        self.judged = report((WARNING,))
        return Cured("done", "7", None, (turn,), Examination(Snapshot(facts=HEALTHY_FACTS), self.judged))

    def undo_fix(self, examination: Examination, change: str, tell: Callable[[str], None]) -> Cured:
        self.answer()
        self.undone.append(change)
        self.judged = report()
        return Cured("undone", "", None, (), Examination(Snapshot(facts=HEALTHY_FACTS), self.judged))

    def snapshots(self) -> Sequence[SnapshotRow]:
        self.answer()
        here = [SnapshotRow(path, path) for path in self.exported]
        return [*here, SnapshotRow("known-good", "known-good", "torch 2.6", "shipped")]

    def difference(self, a: str, b: str) -> Diff:
        self.answer()
        return msgspec.structs.replace(DIFFERENCE, a=a, b=b)

    def export_difference(self, found: Diff) -> str:
        self.answer()
        self.exported.append(f"doctor-diff-{found.a}-{found.b}.json")
        return self.exported[-1]

    def snapshot_lines(self, key: str, width: int) -> Sequence[str]:
        self.answer()
        return [f"what {key} holds", "x" * width]

    def export_snapshot(self) -> str:
        self.answer()
        self.exported.append("doctor-snapshot-2026-11-30.json")
        return self.exported[-1]

    def compare(self, a: str, b: str, width: int) -> Sequence[str]:
        self.answer()
        return [f"{a} beside {b}", "-" * width]

    def runs(self) -> Sequence[RunRow]:
        self.answer()
        rows = []
        for name in self.run_paths:
            watcher = self.watch(name)
            state = watcher.poll()
            rows.append(RunRow(name, name, watcher.status(), state.step, state.steps_total, 45.0))
        return rows

    def watch(self, name: str) -> Watcher:
        self.answer()
        if name not in self.run_paths:
            raise FileNotFoundError(2, "no run there (no plan.json)", name)
        return RecordedWatcher(self, RunDir(self.run_paths[name]))

    def profiles(self) -> Sequence[ProfileRow]:
        self.answer()
        return [ProfileRow("quickstart", "BBC news"), ProfileRow("chinese-sentiment", "外卖评论情感")]

    def expected(self, name: str) -> Expected | None:
        return self.expectation

    def past(self, name: str) -> Replay:
        self.answer()
        return Replay(RunDir(self.run_paths[name]))

    def plan(self, profile: str, changed: Sequence[str] = ()) -> PlanRow:
        self.answer()
        why = t("the card has bf16 (compute capability {capability})", capability="8.9")
        decisions = (DecisionRow("train.precision", "bf16", why), DecisionRow("threads", "2", "two cores"))
        return PlanRow(profile, decisions, changed=tuple(changed))

    def start(self, profile: str, changed: Sequence[str] = ()) -> str:
        self.answer()
        self.started.append(" ".join((profile, *changed)))
        return next(iter(self.run_paths))

    def resume(self, name: str, approximate: bool = False) -> None:
        self.answer()
        self.resumed.append(f"{name} --approximate" if approximate else name)

    def stop(self, name: str) -> None:
        self.answer()
        self.stopped.append(name)
