"""Staged bottlenecks, alive: processes that are held up on purpose, the real sampler beside each, cards from the stand-in NVML.

All of them run at the same time (they mostly sleep), for some twenty seconds.
"""

from __future__ import annotations

import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from doctor.pyspy import find_pyspy
from doctor.watching import RunWatcher
from runner.rundir import RunDir
from runner.verdict import Verdict, verdict_of
from tests.nvml.build import environment, has_compiler, write_scenario

pytestmark = [
    pytest.mark.slow,
    pytest.mark.long,
    pytest.mark.skipif(find_pyspy() is None, reason="py-spy is not installed"),
    pytest.mark.skipif(not has_compiler(), reason="the stand-in NVML is C, and there is no compiler here"),
]
REPO = str(Path(__file__).parent.parent)
SECONDS = 18.0
CARD = "NVIDIA GeForce RTX 4090"

# Files with the names that a training's stacks show.
PARTS = {
    "torch/nn/modules/module.py": "import time\ndef _call_impl(seconds):\n    time.sleep(seconds)\n",
    "torch/autograd/graph.py": "import time\ndef _engine_run_backward(seconds):\n    time.sleep(seconds)\n",
    "torch/utils/data/dataloader.py": "def __next__(dataset):\n    return dataset()\n",
    "torch/serialization.py": "import time\ndef save(seconds):\n    time.sleep(seconds)\n",
}
TRAINING = """
import logging, sys, time
from pathlib import Path
sys.path.insert(0, {parts!r})
sys.path.append({repo!r})
from torch.nn.modules.module import _call_impl
from torch.autograd.graph import _engine_run_backward
from torch.utils.data.dataloader import __next__ as next_batch
from torch.serialization import save
from runner.events import EventWriter

class Slow(logging.Handler):
    def emit(self, record):
        time.sleep({logging})
log = logging.getLogger("train")
log.addHandler(Slow())
log.propagate = False

def read_rows():
    time.sleep({data})
def evaluate():
    _call_impl({evaluation})
def lap(name, begun):
    split[name] = split.get(name, 0.0) + time.monotonic() - begun

writer = EventWriter(Path({events!r}) / "trainer-0.jsonl", "trainer-0")
writer.write("run-started", device={device!r}, steps_total=100_000)
begun, step = time.monotonic(), 0
while time.monotonic() - begun < {seconds}:
    step, at, split = step + 1, time.monotonic(), {{}}
    for name, act in {{"data": lambda: next_batch(read_rows), "copy": lambda: time.sleep({copy}), "forward": lambda: _call_impl({forward}),
                      "backward": lambda: _engine_run_backward({backward})}}.items():
        before = time.monotonic()
        act()
        lap(name, before)
    if {logging}:
        before = time.monotonic()
        log.warning("loss %s", 1.0)
        lap("logging", before)
    if {tells} and step <= {steps}:
        writer.write("step", step, loss=1.0, samples=8, seconds=time.monotonic() - at, split={{**split, **{lie}}})
    if {evaluation}:
        before = time.monotonic()
        evaluate()
        writer.write("evaluation", step, loss=1.0, seconds=time.monotonic() - before)
    if {saving}:
        before = time.monotonic()
        save({saving})
        writer.write("checkpoint", step, seconds=time.monotonic() - before, bytes=10)
writer.write("run-finished", outcome="completed")
"""


@dataclass
class Stage:
    """What holds a training up, the cards beside it, and what is to be said."""

    kind: str
    words: str
    parts: dict[str, Any] = field(default_factory=dict)
    """Seconds of each part of a step, beside 0.1 forward and 0.1 backward."""
    gpu: dict[str, Any] | None = None
    """None: a machine without a driver."""
    device: str = CARD
    options: tuple[str, ...] = ()


IDLE = {"gpu.utilization_pct": 20, "gpu.power_mw": 90000}
BUSY = {"gpu.utilization_pct": 98, "gpu.power_mw": 430000, "gpu.clock_event_reasons": "0x0"}
STAGES: dict[str, Stage] = {
    "slow reads": Stage("data", "read_rows (train.py:", {"data": 0.4}, IDLE),
    "slow reads, no card": Stage("data", "read_rows (train.py:", {"data": 0.4}, None, "cpu"),
    "small kernels": Stage("launch", "launching kernels", {}, IDLE),
    "a card at full work": Stage("compute", "busy 98 %", {}, BUSY),
    "a hot card": Stage("throttled", "hw-thermal", {}, {**BUSY, "gpu.clock_event_reasons": "0x48"}),
    "pageable copies": Stage("copying", "copying to the GPU", {"copy": 0.3}, IDLE),
    "an evaluation each step": Stage("evaluating", "evaluating", {"evaluation": 0.5}, IDLE),
    "a checkpoint each step": Stage("saving", "saving", {"saving": 0.5}, IDLE),
    "a slow logger": Stage("logging", "logging takes", {"logging": 0.4}, IDLE),
    "a card that spins": Stage("unknown", "power limit", {}, {**BUSY, "gpu.power_mw": 110000}),
    "a clock that says data where nothing waits for any": Stage("unknown", "disagree", {"lie": {"data": 0.9}}, IDLE),
    "a wait for data beside a busy card": Stage("unknown", "disagree", {"data": 0.5}, BUSY),
    "nobody could look": Stage("unknown", "neither stacks nor GPU", {"data": 0.5}, None, CARD, ("--no-stacks",)),
    "four steps so far": Stage("unknown", "yet", {"steps": 4}, IDLE),
    "a script that tells no steps": Stage("unknown", "tells no step times", {"tells": False}, IDLE),
}  # fmt: skip


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Verdict]:
    """Run every stage, all at once; return what is said of each while it goes on."""
    begun = {name: start(tmp_path_factory.mktemp("stage"), stage) for name, stage in STAGES.items()}
    try:
        time.sleep(SECONDS)
        return {name: said(run) for name, (run, _) in begun.items()}
    finally:
        for _, processes in begun.values():
            for process in processes:
                process.kill()
                process.wait()


def start(folder: Path, stage: Stage) -> tuple[RunDir, list[subprocess.Popen[bytes]]]:
    run = RunDir(folder / "run")
    run.make()
    for name, text in PARTS.items():
        path = folder / "parts" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        for package in list(path.relative_to(folder / "parts").parents)[:-1]:
            (folder / "parts" / package / "__init__.py").touch()
    values = {"data": 0.0, "copy": 0.0, "forward": 0.1, "backward": 0.1, "logging": 0, "evaluation": 0, "saving": 0, "lie": {},
              "tells": True, "steps": 10**9, **stage.parts}  # fmt: skip
    script = folder / "train.py"
    script.write_text(
        TRAINING.format(
            parts=str(folder / "parts"),
            repo=REPO,
            events=str(run.events),
            device=stage.device,
            seconds=4 * SECONDS,
            **values,
        )
    )
    training = subprocess.Popen([sys.executable, str(script)])
    scenario: str | Path = "none"
    if stage.gpu is not None:
        scenario = write_scenario(folder / "card.conf", "healthy-4090", stage.gpu)
    argv = [sys.executable, "-m", "doctor.sampler", str(run.path), "--pid", str(training.pid), *stage.options]
    return run, [training, subprocess.Popen(argv, env=environment(scenario))]


def said(run: RunDir) -> Verdict:
    watcher = RunWatcher(run)
    state = watcher.poll()
    return verdict_of(state, "running", time.time())


@pytest.mark.parametrize("name", STAGES)
def test_what_holds_a_training_up_is_named_or_cannot_be_told(name: str, verdicts: dict[str, Verdict]) -> None:
    stage, found = STAGES[name], verdicts[name]
    assert found.kind == stage.kind, found
    assert stage.words in str(found.sentence)
    if found.is_known:
        assert found.advice is not None
