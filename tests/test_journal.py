"""The journal: written before the act, one doctor at a time, and nothing done where it cannot be written."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from doctor.journal import Journal, JournalError, locked
from doctor.model import SetVariable, WriteFile
from doctor.state_dir import config_dir, state_dir
from tests.curing import a_fix, carry_out, picture, take_back

ROOT = Path(__file__).parent.parent


def a_step(home: Path) -> WriteFile:
    return WriteFile(path=str(home / "file"), content="new\n")


def test_what_was_there_is_on_disk_before_it_is_touched(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("old\n")
    seen: list[str] = []

    def look(number: int, step: object) -> bool:
        seen.append((tmp_path / "file").read_text())
        return True

    carry_out(tmp_path / "state", a_step(tmp_path), confirm=look)
    (entry,) = json.loads("[" + (tmp_path / "state/journal/1.1.json").read_text() + "]")
    assert seen == ["old\n"]
    assert entry["before"]["kind"] == "file" and entry["outcome"] == "done"
    assert (tmp_path / "state/journal/1.1.kept/before").read_text() == "old\n"


def test_the_journal_is_for_its_owner_only(tmp_path: Path) -> None:
    carry_out(tmp_path / "state", a_step(tmp_path))
    assert (tmp_path / "state/journal").stat().st_mode & 0o077 == 0
    assert (tmp_path / "state/journal/1.1.json").stat().st_mode & 0o077 == 0


def test_changes_are_counted_on_and_listed_in_order(tmp_path: Path) -> None:
    for number in range(11):
        carry_out(tmp_path / "state", WriteFile(path=str(tmp_path / "f"), content=str(number)))
    journal = Journal(tmp_path / "state")
    assert [change.id for change in journal.changes()] == [str(number) for number in range(1, 12)]
    assert [entry.id for entry in journal.entries()][-2:] == ["10.1", "11.1"]
    assert [entry.id for entry in journal.entries("1")] == ["1.1"]


def test_a_damaged_entry_is_named_and_not_guessed_at(tmp_path: Path) -> None:
    carry_out(tmp_path / "state", a_step(tmp_path))
    (tmp_path / "state/journal/1.1.json").write_text('{"id": "1.1"')
    with pytest.raises(JournalError, match=r"1\.1\.json cannot be read"):
        Journal(tmp_path / "state").entries()


def test_damaged_bytes_are_never_put_back(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("old\n")
    carry_out(tmp_path / "state", a_step(tmp_path))
    (tmp_path / "state/journal/1.1.kept/before").write_text("oops")
    why = take_back(tmp_path / "state", "1")
    assert why is not None and "damaged" in str(why)
    assert (tmp_path / "file").read_text() == "new\n"


def test_an_unknown_change_is_no_change(tmp_path: Path) -> None:
    with pytest.raises(LookupError):
        take_back(tmp_path / "state", "7")


def test_what_is_dropped_is_forgotten_with_its_bytes(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("old\n")
    carry_out(tmp_path / "state", a_step(tmp_path))
    with locked(tmp_path / "state") as journal:
        journal.drop("1")
    assert list((tmp_path / "state/journal").iterdir()) == []


# ---------------------------------------------------------------------------------------- two doctors
def test_a_second_doctor_leaves_with_a_clear_line(tmp_path: Path) -> None:
    told: list[str] = []
    with locked(tmp_path), pytest.raises(JournalError, match=f"another doctor .pid {os.getpid()}."):  # noqa: SIM117
        with locked(tmp_path, wait_s=0.2, waiting=told.append):
            raise AssertionError("two hold the lock")
    assert told == [str(os.getpid())]


_WORK = """
import sys
import tempfile
from pathlib import Path
from tests.curing import carry_out, take_back
from doctor.model import SetVariable
name, root = sys.argv[1], Path(sys.argv[2])
for number in range(15):
    done = carry_out(root / "state", SetVariable(name=f"{name}{number}", value="1", file=str(root / "env.sh")))
    assert done.outcome == "done", done
    if number % 3 == 0:
        assert take_back(root / "state", done.change) is None
"""


def test_two_doctors_at_once_both_get_their_work_done(tmp_path: Path) -> None:
    both = [
        subprocess.Popen([sys.executable, "-c", _WORK, name, str(tmp_path)], cwd=ROOT, stderr=subprocess.PIPE)
        for name in ("A", "B")
    ]
    assert [(process.communicate()[1], process.returncode) for process in both] == [(b"", 0), (b"", 0)]
    lines = (tmp_path / "env.sh").read_text().splitlines()
    wanted = {f"export {name}{number}=1" for name in "AB" for number in range(15) if number % 3}
    assert {line for line in lines if line.startswith("export")} == wanted
    assert len(Journal(tmp_path / "state").changes()) == 30


# ---------------------------------------------------------------------------------------- nowhere to write
def in_child(tmp_path: Path, limit_bytes: int, *steps: WriteFile | SetVariable) -> str:
    """Carry out ``steps`` in a child whose files may not grow over ``limit_bytes``; return what it says."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit_bytes, limit_bytes))
            import signal

            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            try:
                said = carry_out(tmp_path / "state", *steps).outcome
            except JournalError as error:
                said = f"journal: {error}"
            os.write(writer, said.encode())
        finally:
            os._exit(0)
    os.close(writer)
    os.waitpid(child, 0)
    return os.read(reader, 4000).decode()


@pytest.mark.parametrize("limit_bytes", [0, 100, 300, 500, 700, 1000, 3000, 6000])
def test_on_a_full_disk_all_is_done_or_nothing(tmp_path: Path, limit_bytes: int) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "file").write_text("old\n" * 200)
    before = picture(tmp_path)
    steps = (
        WriteFile(path=str(home / "small"), content="x"),
        WriteFile(path=str(home / "file"), content="new\n" * 1200),
    )
    said = in_child(tmp_path, limit_bytes, *steps)
    if said == "done":
        assert limit_bytes >= 4800
        assert take_back(tmp_path / "state", "1") is None
    for change in Journal(tmp_path / "state").half_done():  # named at the next start, and gone back from
        assert take_back(tmp_path / "state", change.id) is None
    assert picture(tmp_path) == before, said


def test_a_folder_that_cannot_be_written_stops_everything(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file in its place")
    with pytest.raises(JournalError, match=r"nothing was changed.*DOCTOR_STATE_DIR"):
        carry_out(tmp_path / "state", a_step(tmp_path))
    assert not (tmp_path / "file").exists()


def test_a_home_that_cannot_be_written_is_said_and_nothing_is_left(tmp_path: Path) -> None:
    applied = carry_out(tmp_path / "state", WriteFile(path="/proc/self/nothing", content="x"))
    assert applied.outcome == "failed"
    assert Journal(tmp_path / "state").half_done() == []


def test_a_read_only_home_stops_everything() -> None:
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        home.mkdir()
        home.chmod(0o555)
        Path(folder).chmod(0o755)
        child = os.fork()
        if child == 0:
            status = 1
            try:
                if os.geteuid() == 0:
                    os.setuid(65534)
                try:
                    carry_out(home / "state", a_step(home))
                except JournalError as error:
                    status = 0 if "nothing was changed" in str(error) else 2
            finally:
                os._exit(status)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert list(home.iterdir()) == []
        home.chmod(0o755)


@pytest.mark.parametrize(
    ("environ", "state", "config"),
    [
        ({"DOCTOR_STATE_DIR": "/s", "DOCTOR_CONFIG_DIR": "/c"}, "/s", "/c"),
        ({"XDG_STATE_HOME": "/x", "XDG_CONFIG_HOME": "/y"}, "/x/rundoctor", "/y/rundoctor"),
    ],
    ids=["named", "XDG"],
)
def test_the_folders_follow_the_variables(environ: dict[str, str], state: str, config: str) -> None:
    assert (str(state_dir(environ)), str(config_dir(environ))) == (state, config)


def test_a_fix_without_steps_is_closed_at_once(tmp_path: Path) -> None:
    assert a_fix().steps == ()
    assert carry_out(tmp_path / "state").outcome == "done"
    assert Journal(tmp_path / "state").half_done() == []
