"""A long run at a glance: its ends are exact, what happened rarely is there, and the whole comes later."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from doctor import glance as glancing
from doctor.watching import RunWatcher
from runner.events import EventWriter
from runner.rundir import RunDir

STEPS = 4000


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunDir:
    """A run of 4000 steps, with limits so small that it counts as long."""
    for name, value in (
        ("WHOLE_BYTES", 100_000),
        ("HEAD_BYTES", 8_000),
        ("TAIL_BYTES", 16_000),
        ("POINTS", 200),
    ):
        monkeypatch.setattr(glancing, name, value)
    run = RunDir(tmp_path / "long")
    run.make()
    now = [1000.0]
    writer = EventWriter(run.events / "trainer-0.jsonl", "trainer-0", lambda: now[0])
    sampler = EventWriter(run.events / "sampler.jsonl", "sampler", lambda: now[0])
    writer.write("run-started", 0, steps_total=STEPS, device="cpu")
    for step in range(1, STEPS + 1):
        now[0] += 1
        writer.write("step", step, loss=1000 / step, samples=8, tokens=10, padded_tokens=20, seconds=1.0,
                     split={"data": 0.7, "forward": 0.3})  # fmt: skip
        sampler.write("sample-host", cpu_pct=step % 100, disk_free_bytes=1 << 40)
        if step % 500 == 0:
            writer.write("evaluation", step, accuracy=step / STEPS, loss=2.0)
    writer.write("run-finished", STEPS, outcome="completed", steps=STEPS)
    return run


def test_its_ends_are_exact_and_its_middle_is_thinned(run: RunDir) -> None:
    state = glancing.glance(run)
    assert state.is_approximate
    assert (state.step, state.steps_total, state.finished["outcome"]) == (STEPS, STEPS, "completed")
    assert (state.loss.values[0], state.loss.values[-1]) == (1000.0, 1000 / STEPS)
    assert 200 < len(state.loss) < 700
    assert state.loss.steps == sorted(state.loss.steps)
    assert all(
        value == pytest.approx(1000 / step)
        for step, value in zip(state.loss.steps, state.loss.values, strict=True)
    )
    assert state.host["cpu_pct"] == STEPS % 100
    gaps = [b - a for a, b in zip(state.loss.steps, state.loss.steps[1:], strict=False)]
    assert max(gaps) < STEPS / 50


def test_every_evaluation_is_there(run: RunDir) -> None:
    assert [event.step for event in glancing.glance(run).evaluations] == list(range(500, STEPS + 1, 500))


def test_what_was_passed_over_is_no_time_of_silence(run: RunDir) -> None:
    state = glancing.glance(run)
    assert state.longest_gap_s == 1.0
    assert state.windows.whole.split_share("data") == pytest.approx(0.7)


def test_the_whole_replaces_the_glance_and_equals_what_was_followed_live(run: RunDir) -> None:
    watcher, followed = RunWatcher(run), RunWatcher(run)
    watcher.settle()
    first = watcher.state
    assert first.is_approximate
    assert first.samples_seen < 8 * STEPS
    whole = watcher.poll()
    followed.poll()
    assert not whole.is_approximate
    assert whole.samples_seen == 8 * STEPS
    assert watcher.as_dict() == followed.as_dict()
    EventWriter(run.events / "trainer-0.jsonl", "trainer-0").write("step", STEPS + 1, loss=1.0)
    assert watcher.poll().step == STEPS + 1


def test_torn_lines_and_foreign_bytes_are_passed_over(run: RunDir) -> None:
    path = run.events / "trainer-0.jsonl"
    content = path.read_bytes()
    middle = len(content) // 2
    path.write_bytes(
        content[:middle] + b'{"seq": 1, "kind":"evaluation" \xff\n\x00\x00' + content[middle:] + b'{"torn'
    )
    state = glancing.glance(run)
    assert state.step == STEPS
    assert math.isfinite(state.loss.values[-1])


def test_a_short_run_is_read_whole_at_once(run: RunDir, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(glancing, "WHOLE_BYTES", 1 << 30)
    watcher = RunWatcher(run)
    watcher.settle()
    assert not watcher.state.is_approximate
    assert watcher.state.samples_seen == 8 * STEPS
