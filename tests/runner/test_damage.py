"""A run directory that cannot be read says so and where; one that is merely young, or was cut off by a kill, does not."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from doctor.render.run_text import screen
from doctor.watching import RunWatcher, summarise
from runner.damage import damage_of
from runner.events import EventWriter
from runner.rundir import RunDir
from tests.runner.tiny import make_run


def no_plan_inside(run: RunDir) -> Path:
    run.plan.write_bytes(b"\x00" * 900)
    return run.plan


def a_plan_cut_short(run: RunDir) -> Path:
    run.plan.write_bytes(run.plan.read_bytes()[:-200])
    return run.plan


def a_plan_changed(run: RunDir) -> Path:
    run.plan.write_text(run.plan.read_text().replace('"batch_size": 8', '"batch_size": 9'))
    return run.plan


def events_of_zeros(run: RunDir) -> Path:
    """What a disk that lost its power leaves: the length is right, the content is gone."""
    path = run.events / "trainer-0.jsonl"
    path.write_bytes(b"\x00" * (2 << 20))
    return path


def events_of_something_else(run: RunDir) -> Path:
    path = run.events / "trainer-0.jsonl"
    path.write_bytes(b"<html>\n<body>502</body>\n")
    return path


def a_file_for_a_folder(run: RunDir) -> Path:
    run.events.rmdir()
    run.events.write_text("")
    return run.events


DAMAGES = [no_plan_inside, a_plan_cut_short, a_plan_changed, events_of_zeros, events_of_something_else,
           a_file_for_a_folder]  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_damage_is_named_with_its_path_wherever_the_run_is_shown(
    tmp_path: Path, damage: Callable[[RunDir], Path]
) -> None:
    run = make_run(tmp_path)
    path = damage(run)
    (text,) = damage_of(run)
    assert str(path) in str(text)
    watcher = RunWatcher(run)
    assert watcher.poll() is watcher.state and watcher.status() == "damaged"
    assert str(path) in watcher.as_dict()["damage"][0] and watcher.as_dict()["status"] == "damaged"
    shown = screen("run", watcher.state, watcher.status(), 0.0, width=200)
    assert any(path.name in line for line in shown), shown
    row = summarise(run)
    assert row.status == "damaged" and str(path) in row.damage[0]


def a_run_just_made(run: RunDir) -> None:
    pass


def a_first_line_half_written(run: RunDir) -> None:
    (run.events / "trainer-0.jsonl").write_bytes(b'{"seq": 0, "t": 17')


def a_line_torn_by_a_kill(run: RunDir) -> None:
    path = run.events / "trainer-0.jsonl"
    EventWriter(path, "trainer-0").write("run-started", 0)
    with open(path, "ab") as file:
        file.write(b'{"seq": 1, "t"')
    EventWriter(path, "trainer-0").write("step", 1, loss=0.5)


def no_events_folder(run: RunDir) -> None:
    shutil.rmtree(run.events)


def a_plan_of_a_newer_release(run: RunDir) -> None:
    plan = json.loads(run.plan.read_bytes())
    run.plan.write_text(json.dumps(plan | {"schema": 99}))


SOUND = [a_run_just_made, a_first_line_half_written, a_line_torn_by_a_kill, no_events_folder,
         a_plan_of_a_newer_release]  # fmt: skip


@pytest.mark.parametrize("story", SOUND, ids=lambda story: story.__name__)
def test_what_is_only_young_or_cut_off_is_not_called_damaged(
    tmp_path: Path, story: Callable[[RunDir], None]
) -> None:
    run = make_run(tmp_path)
    story(run)
    assert damage_of(run) == []
    watcher = RunWatcher(run)
    watcher.poll()
    assert watcher.status() != "damaged" and summarise(run).status != "damaged"
