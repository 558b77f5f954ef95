"""Real small trainings, held up on purpose, watched by the real sampler: the verdict names what holds them up."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from doctor.pyspy import find_pyspy
from doctor.watching import RunWatcher
from runner.rundir import RunDir
from runner.verdict import Verdict, verdict_of

pytestmark = [
    pytest.mark.train,
    pytest.mark.long,
    pytest.mark.skipif(find_pyspy() is None, reason="py-spy is not installed"),
]

TRAINING = """
import sys, time
sys.path.insert(0, {repo!r})
import torch
from pathlib import Path
from torch.utils.data import DataLoader, Dataset
from runner.events import EventWriter

torch.set_num_threads(1)
model = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.ReLU(), torch.nn.Linear(512, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
writer = EventWriter(Path({events!r}) / "trainer-0.jsonl", "trainer-0")

class Texts(Dataset):
    def __len__(self):
        return 100_000
    def __getitem__(self, index):
        return self.clean(index), index % 2
    def clean(self, index):
        time.sleep({clean_s})  # the slow transform
        return torch.full((256,), float(index % 7))

def evaluate():
    end = time.monotonic() + {evaluate_s}
    while time.monotonic() < end:
        with torch.no_grad():
            model(torch.ones(512, 256))

writer.write("run-started", device="cpu", steps_total=100_000)
begun = time.monotonic()
step, before = 0, time.monotonic()
loader = iter(DataLoader(Texts(), batch_size=8, num_workers={workers}))
while time.monotonic() - begun < {seconds}:
    step += 1
    inputs, labels = next(loader)
    loaded = time.monotonic()
    loss = torch.nn.functional.cross_entropy(model(inputs), labels)
    forward = time.monotonic()
    loss.backward()
    backward = time.monotonic()
    optimizer.step(); optimizer.zero_grad()
    now = time.monotonic()
    writer.write("step", step, loss=float(loss.detach()), samples=8, seconds=now - before, split={{
        "data": loaded - before, "forward": forward - loaded, "backward": backward - forward, "optimizer": now - backward}})
    if {evaluate_s}:
        evaluate()
        writer.write("evaluation", step, loss=1.0, seconds=time.monotonic() - now)
    before = time.monotonic()
writer.write("run-finished", outcome="completed")
"""


def watched(
    tmp_path: Path, seconds: float = 18, clean_s: float = 0.0, evaluate_s: float = 0.0, workers: int = 0
) -> Verdict:
    """Train with a real sampler beside it and return the verdict on the whole."""
    run = RunDir(tmp_path / "run")
    run.make()
    repo = str(Path(__file__).parent.parent)
    script = tmp_path / "train.py"
    script.write_text(
        TRAINING.format(
            repo=repo,
            events=str(run.events),
            seconds=seconds,
            clean_s=clean_s,
            evaluate_s=evaluate_s,
            workers=workers,
        )
    )
    training = subprocess.Popen([sys.executable, str(script)])
    sampler = subprocess.Popen(
        [sys.executable, "-m", "doctor.sampler", str(run.path), "--pid", str(training.pid)]
    )
    try:
        assert training.wait(seconds * 4 + 60) == 0
        sampler.wait(30)
    finally:
        for process in (training, sampler):
            if process.poll() is None:
                process.kill()
                process.wait()
    watcher = RunWatcher(run)
    watcher.alive = False
    state = watcher.poll()
    return verdict_of(state, "completed", time.time())


def test_a_slow_transform_is_named_with_its_line(tmp_path: Path) -> None:
    found = watched(tmp_path, clean_s=0.01)
    assert found.kind == "data", found
    assert "clean (train.py:" in str(found.sentence)
    assert set(found.sources) >= {"clock", "stacks", "host"}


def test_a_slow_transform_in_a_worker_is_named_with_its_line(tmp_path: Path) -> None:
    found = watched(tmp_path, clean_s=0.01, workers=1)
    assert found.kind == "data", found
    assert "clean (train.py:" in str(found.sentence)
    assert "workers" in str(found.advice)


def test_an_evaluation_after_each_step_is_named(tmp_path: Path) -> None:
    found = watched(tmp_path, evaluate_s=0.3)
    assert found.kind == "evaluating", found


TOGETHER = """
import os, sys, time
sys.path.insert(0, {repo!r})
import torch
from pathlib import Path
from runner.events import EventWriter

torch.set_num_threads(1)
torch.distributed.init_process_group("gloo")
rank = torch.distributed.get_rank()
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(64, 64))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
writer = EventWriter(Path({events!r}) / f"trainer-{{rank}}.jsonl", f"trainer-{{rank}}")
writer.write("run-started", device="cpu", steps_total=100_000, world_size=2)
begun, step, before = time.monotonic(), 0, time.monotonic()
for step in range(1, {steps}):
    if rank:
        time.sleep(0.2)  # the slow one
    loss = model(torch.ones(8, 64)).sum()
    forward = time.monotonic()
    loss.backward()
    backward = time.monotonic()
    optimizer.step(); optimizer.zero_grad()
    now = time.monotonic()
    writer.write("step", step, loss=1.0, samples=8, seconds=now - before, split={{
        "forward": forward - before, "backward": backward - forward, "optimizer": now - backward}})
    before = now
writer.write("run-finished", outcome="completed")
"""


def test_the_faster_of_two_ranks_is_said_to_wait_for_the_other(tmp_path: Path) -> None:
    run = RunDir(tmp_path / "run")
    run.make()
    script = tmp_path / "train.py"
    repo = str(Path(__file__).parent.parent)
    script.write_text(TOGETHER.format(repo=repo, events=str(run.events), steps=80))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    meeting = {**os.environ, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "WORLD_SIZE": "2"}
    ranks = [
        subprocess.Popen([sys.executable, str(script)], env={**meeting, "RANK": str(rank)}) for rank in (0, 1)
    ]
    sampler = subprocess.Popen(
        [sys.executable, "-m", "doctor.sampler", str(run.path), "--pid", str(ranks[0].pid)]
    )
    try:
        assert [process.wait(180) for process in ranks] == [0, 0]
        sampler.wait(30)
    finally:
        for process in (*ranks, sampler):
            if process.poll() is None:
                process.kill()
                process.wait()
    (run.events / "trainer-1.jsonl").unlink()  # the first rank's own view
    watcher = RunWatcher(run)
    watcher.alive = False
    found = verdict_of(watcher.poll(), "completed", time.time())
    assert found.kind == "ranks", found
    assert "times as long as forward" in str([str(text) for text in found.evidence])
