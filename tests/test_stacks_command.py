"""``doctor stacks``: a living process in every form, and each rank of several on one page."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path

import pytest

from doctor.pyspy import find_pyspy
from doctor.render.flame_svg import flame_svg
from doctor.render.stack_forms import SCHEMA, collapsed, speedscope
from doctor.stack_groups import by_rank
from doctor.stacks import parse_raw
from tests.commands_run import doctor

SVG = "{http://www.w3.org/2000/svg}"
RAW = """\
process 5:"torchrun";thread (5): MainThread;wait (launch.py:1) 10
process 5:"torchrun";process 7:"python t.py";thread (7): MainThread;<module> (t.py:1);step (t.py:2) 6
process 5:"torchrun";process 7:"python t.py";thread (7): MainThread;<module> (t.py:1);load;all (t.py:3) 4
process 5:"torchrun";process 7:"python t.py";thread (70): pin;run (queue.py:3) 10
process 5:"torchrun";process 7:"python t.py";process 9:"python t.py";thread (9): MainThread;read (d.py:4) 10
process 5:"torchrun";process 8:"python t.py";thread (8): MainThread;<module> (t.py:1);all_reduce (torch/distributed/distributed_c10d.py:9) 10
"""
RANKS = {7: 0, 9: 0, 8: 1}
"""A loader worker inherits its rank's variables."""


def test_each_rank_is_a_group_of_its_own_with_its_workers() -> None:
    groups = by_rank(parse_raw(RAW), RANKS)
    assert [(group.name, group.pid, sorted({stack.pid for stack in group.stacks})) for group in groups] == [
        ("rank 0", 7, [7, 9]),
        ("rank 1", 8, [8]),
    ]
    assert all(stack.pids[0] == group.pid for group in groups for stack in group.stacks)


def test_without_ranks_all_is_one_group() -> None:
    (group,) = by_rank(parse_raw(RAW), {})
    assert (group.name, group.pid, len(group.stacks)) == ("", 5, 6)
    assert by_rank([], {}) == []


def test_collapsed_lines_are_those_of_flamegraph_pl() -> None:
    lines = collapsed(by_rank(parse_raw(RAW), RANKS)).splitlines()
    assert "rank 0;trainer 7;main thread;<module> (t.py:1);step (t.py:2) 6" in lines
    assert "rank 0;child 9;main thread;read (d.py:4) 10" in lines
    assert sum(int(line.rpartition(" ")[2]) for line in lines) == 40


def test_speedscope_has_a_profile_a_thread_in_seconds_and_every_index_leads_somewhere() -> None:
    tree = json.loads(speedscope(by_rank(parse_raw(RAW), RANKS), rate=10, name="t"))
    assert tree["$schema"] == SCHEMA
    frames = tree["shared"]["frames"]
    names = {profile["name"]: profile for profile in tree["profiles"]}
    first = names["rank 0 / trainer 7 / main thread"]
    assert first["endValue"] == pytest.approx(1.0)
    assert [frames[index]["name"] for index in first["samples"][0]] == ["<module>", "step"]
    assert all(
        index < len(frames)
        for profile in tree["profiles"]
        for sample in profile["samples"]
        for index in sample
    )


def test_the_flame_graph_is_sound_xml_with_boxes_as_wide_as_their_share() -> None:
    root = ET.fromstring(flame_svg(by_rank(parse_raw(RAW), RANKS), 'a <title> & "more"'))
    titles = [box.findtext(f"{SVG}title") or "" for box in root.iter(f"{SVG}g")]
    widths = {
        box.findtext(f"{SVG}title"): float(rect.get("width", ""))
        for box in root.iter(f"{SVG}g")
        if (rect := box.find(f"{SVG}rect")) is not None
    }
    assert widths["step (t.py:2) 60.0 %"] == pytest.approx(
        0.6 * widths["<module> (t.py:1) 100.0 %"], rel=0.01
    )
    assert not any("queue.py" in title for title in titles)  # a thread that only waits is no picture


BUSY = """
import time
def inner(n): return sum(i * i for i in range(n))
def busy():
    end = time.time() + 60
    while time.time() < end: inner(20000)
busy()
"""


@pytest.fixture
def busy() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([sys.executable, "-c", BUSY])
    yield process
    process.kill()
    process.wait()


@pytest.mark.skipif(find_pyspy() is None, reason="py-spy is not installed")
@pytest.mark.parametrize("name", ["a.svg", "a.json", "a.folded", "a.txt"])
def test_a_living_process_is_written_in_the_form_of_the_files_ending(
    busy: subprocess.Popen[bytes], tmp_path: Path, name: str
) -> None:
    path = tmp_path / name
    done = doctor("stacks", str(busy.pid), "--seconds", "1", "--output", str(path))
    assert done.returncode == 0, done.stderr
    assert str(path) in done.stdout
    text = path.read_text()
    assert "inner" in text
    if name == "a.svg":
        ET.fromstring(text)
    if name == "a.json":
        assert json.loads(text)["profiles"]


RANK = """
import time
def {name}():
    time.sleep(60)
{name}()
"""


@pytest.mark.skipif(find_pyspy() is None, reason="py-spy is not installed")
def test_two_ranks_below_a_launcher_are_on_one_page(tmp_path: Path) -> None:
    launcher = (
        "import os, subprocess, sys\n"
        "ranks = [subprocess.Popen([sys.executable, name], env={**os.environ, 'RANK': str(rank), 'WORLD_SIZE': '2'})\n"
        "         for rank, name in enumerate(sys.argv[1:])]\n"
        "for one in ranks: one.wait()\n"
    )
    scripts = [tmp_path / "first.py", tmp_path / "second.py"]
    for script in scripts:
        script.write_text(RANK.format(name=script.stem))
    process = subprocess.Popen([sys.executable, "-c", launcher, *map(str, scripts)], start_new_session=True)
    try:
        time.sleep(2)
        text = doctor("stacks", str(process.pid), "--seconds", "1").stdout
    finally:
        os.killpg(process.pid, 9)
        process.wait()
    before, after = text.split("rank 1, process")
    assert "rank 0, process" in before
    assert "first.py" in before and "second.py" not in before
    assert "second.py" in after and "first.py" not in after


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("1", "--seconds", "0"), "--seconds"),
        (("1", "--format", "dance"), "dance"),
        (("nowhere",), "nowhere"),
    ],
    ids=["no time", "no such form", "no such run"],
)
def test_what_cannot_be_done_is_a_usage_error(words: tuple[str, ...], says: str) -> None:
    done = doctor("stacks", *words)
    assert done.returncode == 2
    assert says in done.stderr and "Traceback" not in done.stderr


@pytest.mark.skipif(find_pyspy() is None, reason="py-spy is not installed")
def test_a_file_that_cannot_be_written_is_named(busy: subprocess.Popen[bytes], tmp_path: Path) -> None:
    done = doctor("stacks", str(busy.pid), "--seconds", "1", "--output", str(tmp_path / "nowhere" / "a.svg"))
    assert done.returncode == 2
    assert "nowhere" in done.stderr


def test_of_a_run_that_is_over_the_newest_stack_that_was_kept_is_named(tmp_path: Path) -> None:
    from tests.tui.recorded import whole_run

    run = whole_run(tmp_path / "done").run
    assert "kept" not in doctor("stacks", str(run.path)).stderr
    run.stacks.mkdir(exist_ok=True)
    (run.stacks / "standing-rank-0.txt").write_text("")
    (run.stacks / "silent-20261130-120000.txt").write_text("process 7: state S")
    done = doctor("stacks", str(run.path))
    assert done.returncode == 1
    assert "silent-20261130-120000.txt" in done.stderr
