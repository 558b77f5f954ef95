"""A process that is no run of ours on the run's screen: the same panes, no key that stops it, and its end said."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from doctor.process_watch import ProcessWatcher
from doctor.tui.app import DoctorApp
from doctor.tui.live import LiveSource
from tests.tui.driving import NARROW, WIDE, keys_shown, press, sees

JOB = """
import time
for step in range(1, 400):
    print(f"step={step} loss={2 / step:.4f} lr=1e-4", flush=True)
    time.sleep(0.1)
"""


@pytest.fixture
def job(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    with open(tmp_path / "train.log", "wb") as log:
        process = subprocess.Popen([sys.executable, "-c", JOB], stdout=log)
    end = time.monotonic() + 20
    while not (tmp_path / "train.log").stat().st_size and time.monotonic() < end:
        time.sleep(0.05)
    yield process
    process.kill()
    process.wait()


@pytest.mark.parametrize("size", [NARROW, WIDE], ids=["80x24", "160x48"])
async def test_a_foreign_job_is_shown_and_cannot_be_stopped(
    job: subprocess.Popen[bytes], size: tuple[int, int]
) -> None:
    watcher = ProcessWatcher(job.pid)
    app = DoctorApp(LiveSource(None, watcher), run=watcher.name)
    async with app.run_test(size=size) as pilot:
        await sees(pilot, str(job.pid), "learning rate")
        assert "Stop" not in keys_shown(pilot)
        assert "Resume" not in keys_shown(pilot)
        await press(pilot, "s")
        assert len(app.screen_stack) == 2, "no question was asked: it is not ours to stop"
        if size == NARROW:
            await press(pilot, "f6")
        await sees(pilot, "resident")
        job.kill()
        job.wait()
        await sees(pilot, "process ended")
        assert "Resume" not in keys_shown(pilot)
        if size == NARROW:
            await press(pilot, "f8")
        await sees(pilot, "the process has ended")
    watcher.close()
