"""Every kind of step on real files: done, checked, undone, and the bytes compared; refused where the object changed since."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from doctor.acts.managed_block import with_variable
from doctor.apply import drop
from doctor.journal import Journal, locked
from doctor.model import (
    AddLine,
    MovePath,
    RecodeFile,
    RemovePath,
    Run,
    SetVariable,
    Step,
    StopProcess,
    WriteFile,
)
from doctor.probes import Context
from doctor.probes.proc_table import see
from tests.curing import carry_out, picture, take_back

CHINESE = "标题,标签\n今天天气很好,1\n".encode("gb18030")


@pytest.fixture
def world(tmp_path: Path) -> Path:
    """A home with a start file and a model cache, a data disk, a GBK file."""
    home = tmp_path / "home"
    snapshot = home / "cache/hub/models--x/snapshots/1"
    snapshot.mkdir(parents=True)
    blobs = home / "cache/hub/models--x/blobs"
    blobs.mkdir()
    (blobs / "abc").write_bytes(os.urandom(200_000))
    (blobs / "abc").chmod(0o600)
    (snapshot / "model.bin").symlink_to("../../blobs/abc")
    (home / ".bashrc").write_bytes(b"# mine\nexport A=1")
    (home / ".bashrc").chmod(0o640)
    os.utime(home / ".bashrc", ns=(10**18, 10**18))
    (home / "train.csv").write_bytes(CHINESE)
    (home / "site/~orch").mkdir(parents=True)
    (home / "site/~orch/lib.so").write_bytes(b"\x7fELF")
    (tmp_path / "data").mkdir()
    return tmp_path


def steps_of(world: Path) -> dict[str, Step]:
    home = world / "home"
    return {
        "a variable in a file that is not there": SetVariable(
            name="HF_HOME", value="/data/hf", file=str(home / ".config/rundoctor/env.sh")
        ),
        "a line in the start file": AddLine(path=str(home / ".bashrc"), line=". env.sh"),
        "a file over another": WriteFile(path=str(home / "train.csv"), content="a,b\n"),
        "a new file": WriteFile(path=str(home / "new/constraints.txt"), content="torch==2.6.0\n"),
        "a cache to another disk": MovePath(
            source=str(home / "cache"), target=str(world / "data/deep/cache")
        ),
        "a single file to another disk": MovePath(
            source=str(home / "train.csv"), target=str(world / "data/train.csv")
        ),
        "remains put aside": RemovePath(path=str(home / "site/~orch")),
        "a text written as UTF-8": RecodeFile(
            path=str(home / "train.csv"), encoding="gb18030", kept=str(home / "train.csv.original")
        ),
        "something that is not there, moved": MovePath(
            source=str(home / "nothing"), target=str(world / "data/nothing")
        ),
        "a command with its way back": Run(
            argv=("touch", str(home / "made")), undo=("rm", str(home / "made"))
        ),
    }


NAMES = list(steps_of(Path("/nowhere")))


@pytest.mark.parametrize("name", NAMES)
def test_what_a_step_did_is_undone_to_the_byte(world: Path, name: str) -> None:
    before = picture(world)
    applied = carry_out(world / "state", steps_of(world)[name])
    assert applied.outcome == "done"
    assert name.startswith("something that is not there") or picture(world) != before
    assert take_back(world / "state", applied.change) is None
    assert picture(world) == before


def test_all_steps_of_one_fix_are_undone_from_the_last_to_the_first(world: Path) -> None:
    before = picture(world)
    chosen = [step for name, step in steps_of(world).items() if "single" not in name and "over" not in name]
    applied = carry_out(world / "state", *chosen)
    assert applied.outcome == "done"
    assert take_back(world / "state", applied.change) is None
    assert picture(world) == before


def test_a_moved_cache_is_found_under_its_old_path(world: Path) -> None:
    model = world / "home/cache/hub/models--x/snapshots/1/model.bin"
    held = model.read_bytes()
    carry_out(world / "state", steps_of(world)["a cache to another disk"])
    assert (world / "home/cache").is_symlink()
    assert model.read_bytes() == held
    assert not (world / "data/deep/cache").is_symlink()


def test_what_was_downloaded_since_moves_back_too(world: Path) -> None:
    applied = carry_out(world / "state", steps_of(world)["a cache to another disk"])
    (world / "home/cache/new").write_text("later")
    assert take_back(world / "state", applied.change) is None
    assert (world / "home/cache/new").read_text() == "later"
    assert not (world / "data/deep").exists()


@pytest.mark.parametrize(
    ("name", "change", "says"),
    [
        pytest.param("a file over another", lambda w: (w / "home/train.csv").write_text("x"), "changed since", id="a file written since"),
        pytest.param("a new file", lambda w: (w / "home/new/constraints.txt").write_text("x"), "changed since", id="our file edited"),
        pytest.param("a text written as UTF-8", lambda w: (w / "home/train.csv").write_text("x"), "changed since", id="the recoded text edited"),
        pytest.param("a text written as UTF-8", lambda w: (w / "home/train.csv.original").unlink(), "gone", id="the kept original deleted"),
        pytest.param("remains put aside", lambda w: (w / "home/site/~orch").mkdir(), "again", id="something new in its place"),
        pytest.param("a cache to another disk", lambda w: (w / "data/deep/cache").rename(w / "data/other"), "gone", id="the moved cache moved on"),
        pytest.param("a line in the start file", lambda w: (w / "home/.bashrc").write_text("new\n"), "changed since", id="our line deleted by hand"),
    ],
)  # fmt: skip
def test_undo_refuses_what_changed_since_and_touches_nothing(
    world: Path, name: str, change: object, says: str
) -> None:
    applied = carry_out(world / "state", steps_of(world)[name])
    change(world)  # type: ignore[operator]
    before = picture(world)
    why = take_back(world / "state", applied.change)
    assert why is not None and says in str(why)
    assert picture(world) == before
    (entry,) = Journal(world / "state").entries()
    assert entry.outcome == "done"


def test_a_start_file_edited_elsewhere_loses_only_our_line(world: Path) -> None:
    applied = carry_out(world / "state", steps_of(world)["a line in the start file"])
    with (world / "home/.bashrc").open("a") as file:
        file.write("conda activate x\n")
    assert take_back(world / "state", applied.change) is None
    assert (world / "home/.bashrc").read_text() == "# mine\nexport A=1\nconda activate x\n"


@pytest.mark.parametrize("order", [("1", "2"), ("2", "1")], ids=["oldest first", "newest first"])
def test_two_fixes_share_the_file_and_the_line_and_come_out_in_any_order(
    world: Path, order: tuple[str, str]
) -> None:
    before, file = picture(world), str(world / "home/.config/rundoctor/env.sh")
    line = AddLine(path=str(world / "home/.bashrc"), line=f". {file}")
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        assert (
            carry_out(world / "state", SetVariable(name=name, value="4", file=file), line).outcome == "done"
        )
    assert (world / "home/.bashrc").read_text().count("rundoctor") == 2  # the path and the mark of one line
    assert take_back(world / "state", order[0]) is None
    assert "rundoctor" in (world / "home/.bashrc").read_text()
    assert take_back(world / "state", order[1]) is None
    after = {name: item for name, item in picture(world).items() if item[0] != "folder"}
    assert {name: item[:3] for name, item in after.items()} == {
        name: item[:3] if name != "home/.bashrc" or order == ("2", "1") else (*item[:2], item[2] + b"\n")
        for name, item in before.items()
        if item[0] != "folder"
    }


@pytest.mark.parametrize(
    "value",
    ["/data/hf", "", 'it\'s $HOME `x` "y"', "a b", None],
    ids=["path", "empty", "quotes", "blank", "unset"],
)
def test_a_shell_reads_the_very_value(tmp_path: Path, value: str | None) -> None:
    file = tmp_path / "env.sh"
    file.write_text(with_variable("", "X", value))
    done = subprocess.run(
        ["sh", "-c", f'. {file}; printf %s "${{X-not set}}"'],
        env={"X": "old"},
        capture_output=True,
        check=True,
    )
    assert done.stdout.decode() == ("not set" if value is None else value)


def test_a_failing_step_takes_the_earlier_ones_back(world: Path) -> None:
    before = picture(world)
    steps = steps_of(world)
    applied = carry_out(world / "state", steps["a cache to another disk"], Run(argv=("false",)))
    assert applied.outcome == "failed" and "failed" in str(applied.error)
    assert picture(world) == before
    assert Journal(world / "state").half_done() == []


def test_a_no_stops_the_fix_and_leaves_what_was_agreed(world: Path) -> None:
    steps = steps_of(world)
    applied = carry_out(
        world / "state",
        steps["a new file"],
        steps["remains put aside"],
        confirm=lambda number, step: number == 1,
    )
    assert (applied.outcome, applied.done) == ("stopped", 1)
    assert (world / "home/new/constraints.txt").exists() and (world / "home/site/~orch").exists()


@pytest.mark.parametrize(
    ("step", "says"),
    [
        pytest.param(lambda w: MovePath(source=str(w / "home/cache"), target=str(w / "home/site")), "already", id="a target in use"),
        pytest.param(lambda w: MovePath(source=str(w / "home/cache"), target=str(w / "home/cache/in")), "inside", id="into itself"),
        pytest.param(lambda w: RecodeFile(path=str(w / "home/cache/hub/models--x/blobs/abc"), encoding="utf-16", kept=str(w / "k")), "throughout", id="not that encoding"),
        pytest.param(lambda w: StopProcess(pid=1, started_ticks=see(Context(), 1).start_ticks, command="init"), "", id="pid 1"),  # type: ignore[union-attr]
    ],
)  # fmt: skip
def test_what_cannot_be_done_safely_is_refused_before_anything_is_touched(
    world: Path, step: object, says: str
) -> None:
    before = picture(world)
    applied = carry_out(world / "state", step(world))  # type: ignore[operator]
    assert applied.outcome == "failed" and says in str(applied.error)
    assert picture(world) == before


def test_a_cache_in_use_is_not_moved(world: Path) -> None:
    with (world / "home/cache/hub/models--x/blobs/abc").open("rb"):
        applied = carry_out(world / "state", steps_of(world)["a cache to another disk"])
    assert applied.outcome == "failed" and str(os.getpid()) in str(applied.error)


def test_a_deleted_cache_is_said_to_have_no_way_back(world: Path) -> None:
    applied = carry_out(world / "state", RemovePath(path=str(world / "home/cache"), keep=False))
    assert applied.outcome == "done" and not (world / "home/cache").exists()
    (entry,) = Journal(world / "state").entries()
    assert "fills itself again" in entry.undo
    assert take_back(world / "state", applied.change) is None
    assert Journal(world / "state").entries()[0].outcome == "done"


@pytest.mark.parametrize("path", ["/", "~", "/proc"])
def test_no_fix_deletes_what_is_never_a_cache(
    world: Path, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(world / "home"))
    step = RemovePath(path=str(world / "home") if path == "~" else path, keep=False)
    applied = carry_out(world / "state", step)
    assert applied.outcome == "failed" and "never deleted" in str(applied.error)


def test_what_was_put_aside_is_freed_when_its_change_is_dropped(world: Path) -> None:
    carry_out(world / "state", steps_of(world)["remains put aside"])
    with locked(world / "state") as journal:
        drop(journal, journal.changes()[0])
    assert not (world / "home/site/~orch").exists()
    assert list((world / "home/site").iterdir()) == []
    assert Journal(world / "state").changes() == []


# ---------------------------------------------------------------------------------------- processes
def a_process(code: str) -> tuple[subprocess.Popen[bytes], StopProcess]:
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    assert process.stdout is not None and process.stdout.readline()
    seen = see(Context(), process.pid)
    assert seen is not None
    return process, StopProcess(pid=process.pid, started_ticks=seen.start_ticks, command="python")


def test_a_process_is_asked_before_it_is_killed(tmp_path: Path) -> None:
    process, step = a_process("import time; print('up', flush=True); time.sleep(60)")
    assert carry_out(tmp_path, step).outcome == "done"
    assert process.wait() == -signal.SIGTERM


def test_a_process_that_does_not_listen_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("doctor.acts.processes.GRACE_S", 0.3)
    code = "import signal, time; signal.signal(15, signal.SIG_IGN); print('up', flush=True); time.sleep(60)"
    process, step = a_process(code)
    assert carry_out(tmp_path, step).outcome == "done"
    assert process.wait() == -signal.SIGKILL


def test_another_process_of_the_same_number_is_left_alone(tmp_path: Path) -> None:
    process, step = a_process("import time; print('up', flush=True); time.sleep(60)")
    other = StopProcess(pid=step.pid, started_ticks=step.started_ticks - 1, command=step.command)
    assert carry_out(tmp_path, other).outcome == "done"
    time.sleep(0.1)
    assert process.poll() is None
    process.kill()
    process.wait()


def test_an_ended_process_is_said_to_have_no_way_back(tmp_path: Path) -> None:
    process, step = a_process("import time; print('up', flush=True); time.sleep(60)")
    carry_out(tmp_path, step)
    process.wait()
    assert take_back(tmp_path, "1") is None
    (entry,) = Journal(tmp_path).entries()
    assert entry.outcome == "done" and "brought back" in entry.undo
