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
from tests.nvml.build import environment, has_compiler
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


@pytest.mark.skipif(not has_compiler(), reason="no C compiler for the stand-in NVML")
@pytest.mark.parametrize(
    ("scenario", "words"),
    [
        ("8xh100", (" 0  97 %", "668 W / 700 W", " 7   0 %", "481516", "outside this container")),
        ("lost-card", ("GPU is lost", "! ECC 2")),
        ("throttled", ("hw-thermal", "power-brake", "990 MHz")),
        ("mig", ("MIG", "Not Supported")),
        ("hung", ("could not be read: NVML",)),
    ],
)  # fmt: skip
def test_every_card_is_on_the_screen_as_the_driver_says_it(scenario: str, words: tuple[str, ...]) -> None:
    """In a process of its own, since the loader finds the stand-in library when a program starts."""
    root = str(Path(__file__).parent.parent.parent)
    variables = {**environment(scenario), "PYTHONPATH": root, "DOCTOR_LANG": "en"}
    argv = [sys.executable, "-m", "benchmarks.gpu_tools", "--ours"]
    done = subprocess.run(argv, env=variables, capture_output=True, text=True, timeout=120, cwd=root)
    assert done.returncode == 0, done.stderr
    for word in words:
        assert word in done.stdout, done.stdout
