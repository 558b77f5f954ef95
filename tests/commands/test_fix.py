"""``doctor fix``, ``undo`` and ``journal`` as a person types them: shown first, done on a yes, judged again, taken back."""

from __future__ import annotations

import json
import os
import pty
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest

from doctor.acts import Keeper, act_for
from doctor.journal import Journal
from doctor.model import Change, Fix, SetVariable, WriteFile, t
from tests.commands_run import doctor
from tests.curing import carry_out, picture
from tests.wheels import make_venv, make_wheel

BAD = {"CUDA_LAUNCH_BLOCKING": "1"}
ID = "debug-variable-left-on"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    (folder / ".bashrc").write_text("# mine\n")
    make_venv(tmp_path / "venv", tmp_path)
    return folder


def run(home: Path, *arguments: str, stdin: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
    values = {"HOME": str(home), "VIRTUAL_ENV": str(home.parent / "venv"), **BAD, **environment}
    return doctor(*arguments, environment=values, stdin=stdin, cwd=home)


@pytest.mark.parametrize("option", [(), ("--dry-run",)], ids=["nobody to ask", "dry run"])
def test_without_a_yes_the_plan_is_shown_and_nothing_is_done(home: Path, option: tuple[str, ...]) -> None:
    before = picture(home.parent, without=("venv",))
    done = run(home, "fix", ID, *option)
    assert done.returncode == 0
    assert "+unset CUDA_LAUNCH_BLOCKING" in done.stdout and "can be undone" in done.stdout
    assert ("Nothing was changed" in done.stderr) is (option == ())
    assert picture(home.parent, without=("venv",)) == before


def test_a_fix_is_done_judged_again_and_undone_to_the_byte(home: Path) -> None:
    before = picture(home)
    done = run(home, "fix", ID, "--yes")
    assert done.returncode == 0, done.stderr
    assert f"WARN -> gone  [{ID}]" in done.stdout
    listed = json.loads(run(home, "journal", "--json").stdout)
    assert [entry["outcome"] for entry in listed["entries"]] == ["done", "done"]
    assert listed["half_done"] == []
    assert run(home, "undo", "--yes").returncode == 0
    after = {name: item for name, item in picture(home).items() if not name.startswith(".local")}
    assert after == before


def test_a_new_shell_has_what_the_fix_set(home: Path) -> None:
    assert run(home, "fix", "--yes", OMP_NUM_THREADS="512").returncode == 0
    shell = subprocess.run(
        ["bash", "-c", '. ~/.bashrc; printf "%s %s" "${CUDA_LAUNCH_BLOCKING-unset}" "$OMP_NUM_THREADS"'],
        env={"HOME": str(home), "OMP_NUM_THREADS": "512", **BAD}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    off, threads = shell.stdout.split()
    assert off == "unset" and 0 < int(threads) < 512
    checked = run(home, "check", "--json", OMP_NUM_THREADS=threads, CUDA_LAUNCH_BLOCKING="")
    assert "thread-count-above-cpus" not in checked.stdout


def test_a_second_fix_in_a_session_that_did_not_read_the_file_does_nothing(home: Path) -> None:
    run(home, "fix", ID, "--yes")
    again = run(home, "fix", ID, "--yes")
    assert "new shells have this already" in again.stdout
    assert len(json.loads(run(home, "journal", "--json").stdout)["changes"]) == 1


def test_a_recorded_machine_is_planned_for_and_never_touched(home: Path) -> None:
    facts = Path(__file__).parent.parent / "machines/cpu-wheel-on-4090.json"
    done = run(home, "fix", "--facts", str(facts), "--yes")
    assert done.returncode == 0 and "torch-cpu-only-build" in done.stdout
    assert not (home / ".local").exists()


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("fix", "no-such-finding"), 2, "no finding that the doctor knows"),
        (("undo", "7", "--yes"), 2, "no change 7"),
        (("journal", "--drop", "7"), 2, "no change 7"),
        (("fix", "--data", "/nowhere.csv"), 2, "cannot read /nowhere.csv"),
    ],
    ids=["an unknown id", "an unknown change", "dropping what is not there", "data that is not there"],
)
def test_a_wrong_line_is_said_and_ends_with_two(
    home: Path, arguments: tuple[str, ...], code: int, says: str
) -> None:
    done = run(home, *arguments)
    assert (done.returncode, says in done.stderr) == (code, True), done.stderr


def test_a_finding_that_is_not_here_is_nothing_to_mend(home: Path) -> None:
    done = run(home, "fix", "shm-too-small", "--yes")
    assert done.returncode == 0 and "nothing to mend" in done.stdout


def test_nothing_was_changed_yet_is_said(home: Path) -> None:
    assert "changed nothing" in run(home, "journal").stdout
    assert "no change that could be undone" in run(home, "undo", "--yes").stdout


def test_a_gbk_file_becomes_utf8_and_comes_back(home: Path) -> None:
    file, raw = home / "train.csv", "标题,标签\n天气很好,1\n".encode("gb18030") * 50
    file.write_bytes(raw)
    done = run(home, "fix", "file-encoding-not-utf8", "--data", str(file), "--yes")
    assert "FAIL -> gone" in done.stdout, done.stdout + done.stderr
    assert file.read_text("utf-8").startswith("标题,标签")
    assert (home / "train.csv.original").read_bytes() == raw
    assert run(home, "undo", "--yes").returncode == 0
    assert file.read_bytes() == raw and not (home / "train.csv.original").exists()


def test_a_file_whose_name_is_gbk_too_is_written_anew_and_comes_back(home: Path) -> None:
    name = "训练.csv".encode("gb18030").decode("utf-8", "surrogateescape")
    raw = "标题\n天气很好\n".encode("gb18030") * 50
    (home / name).write_bytes(raw)
    done = run(home, "fix", "file-encoding-not-utf8", "--data", name, "--yes")
    assert "FAIL -> gone" in done.stdout, done.stdout + done.stderr
    assert (home / name).read_text("utf-8").startswith("标题")
    assert run(home, "undo", "--yes").returncode == 0
    assert (home / name).read_bytes() == raw


_IN_A_SMALL_HOME = """
mount -t tmpfs -o size=300m tmpfs {home} && mount --bind {disk} {disk} || exit 77
mkdir -p {home}/.cache/huggingface/hub && echo weights > {home}/.cache/huggingface/hub/model
HF_OLD=$(cat {home}/.cache/huggingface/hub/model)
{doctor} fix hf-cache-on-small-disk --yes || exit 1
test -L {home}/.cache/huggingface && test "$(cat {home}/.cache/huggingface/hub/model)" = "$HF_OLD" || exit 2
. {home}/.config/rundoctor/env.sh && test "$HF_HOME" = {disk}/hf || exit 3
{doctor} check --why hf-cache-on-small-disk
{doctor} undo --yes || exit 4
test ! -L {home}/.cache/huggingface && test "$(cat {home}/.cache/huggingface/hub/model)" = weights || exit 5
test ! -e {disk}/hf || exit 6
"""


def test_a_cache_on_a_small_disk_moves_to_the_large_one_and_back(tmp_path: Path) -> None:
    """On two real file systems, in a mount name space of its own."""
    if shutil.disk_usage(tmp_path).free < 25 << 30:
        pytest.skip("the large disk of this test needs 25 GB free")
    home, disk = tmp_path / "home", tmp_path / "disk"
    home.mkdir()
    disk.mkdir()
    make_wheel(tmp_path, "transformers", "4.49.0")
    make_venv(tmp_path / "venv", tmp_path, "transformers==4.49.0")
    code = "import sys; from doctor.commands import main; sys.exit(main())"
    script = _IN_A_SMALL_HOME.format(home=home, disk=disk, doctor=f"{sys.executable} -c '{code}'")
    environment = {
        "PATH": os.environ["PATH"], "HOME": str(home), "VIRTUAL_ENV": str(tmp_path / "venv"), "DOCTOR_LANG": "en",
        "DOCTOR_STATE_DIR": str(tmp_path / "state"), "TMPDIR": str(disk),
    }  # fmt: skip
    try:
        done = subprocess.run(
            ["unshare", "-rm", "sh", "-c", script],
            env=environment,
            cwd=Path(__file__).parent.parent.parent,
            capture_output=True,
            text=True,
            timeout=120,
        )
    except FileNotFoundError:
        pytest.skip("there is no unshare here")
    if done.returncode == 77 or "unshare" in done.stderr:
        pytest.skip("this container may not mount anything")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "-> gone  [hf-cache-on-small-disk]" in done.stdout


def test_a_journal_that_cannot_be_written_stops_before_anything_is_done(home: Path) -> None:
    (home / "state").write_text("")
    done = run(home, "fix", ID, "--yes", DOCTOR_STATE_DIR=str(home / "state"))
    assert done.returncode == 1 and "nothing was changed" in done.stderr
    assert (home / ".bashrc").read_text() == "# mine\n"


# ---------------------------------------------------------------------------------------- cut off
def cut_off(home: Path) -> None:
    """Leave a change as a kill leaves it: its second step begun, its file written."""
    state, file = home / ".local/state/rundoctor", str(home / "env.sh")
    steps = (SetVariable(name="A", value="1", file=file), WriteFile(path=str(home / "b"), content="b"))
    carry_out(state, steps[0])
    journal = Journal(state)
    change = journal.changes()[0]
    entry = journal.entry(change, 2, steps[1])
    before = act_for(steps[1]).look(steps[1], Keeper(journal, entry.id))
    journal.write(msgspec.structs.replace(entry, before=before))
    journal.write(Change(id=change.id, at=change.at, fix=Fix(id=ID, title=t("x"), steps=steps)))


def test_what_was_cut_off_is_named_before_anything_else_is_done(home: Path) -> None:
    cut_off(home)
    done = run(home, "fix", ID, "--yes")
    assert done.returncode == 1
    assert "change 1" in done.stderr and "cut off" in done.stderr and "doctor undo 1" in done.stderr
    assert "CUT OFF" in run(home, "journal").stdout
    assert "change 1" in run(home, "check", "--brief").stderr


def test_a_plan_for_a_recorded_machine_neither_reads_nor_asks_this_one(home: Path, tmp_path: Path) -> None:
    trap = tmp_path / "trap"
    trap.write_text(f"#!/bin/sh\ntouch {tmp_path}/sprung\n")
    trap.chmod(0o755)
    facts = json.loads((Path(__file__).parent.parent / "machines/cpu-wheel-on-4090.json").read_text())
    facts["facts"]["python"]["value"] |= {"executable": str(trap), "writable": True}
    (tmp_path / "facts.json").write_text(json.dumps(facts))
    done = run(home, "fix", "--facts", str(tmp_path / "facts.json"))
    assert f"{trap} -m pip install" in done.stdout, done.stdout + done.stderr
    assert not (tmp_path / "sprung").exists()


# ---------------------------------------------------------------------------------------- in a terminal
def in_terminal(home: Path, answers: str, *arguments: str) -> str:
    """Run ``doctor`` on a terminal, type ``answers`` one a question, and return what it showed."""
    master, slave = pty.openpty()
    values = {
        **os.environ,
        "HOME": str(home),
        "VIRTUAL_ENV": str(home.parent / "venv"),
        "DOCTOR_LANG": "en",
        "NO_COLOR": "1",
        **BAD,
    }
    code = "import sys; from doctor.commands import main; sys.exit(main())"
    process = subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        env=values,
        cwd=home,
    )
    os.close(slave)
    shown, left, end = "", list(answers), time.monotonic() + 60
    while time.monotonic() < end:
        if not select.select([master], [], [], 0.2)[0]:
            if process.poll() is not None:
                break
            continue
        try:
            shown += os.read(master, 65536).decode("utf-8", "replace")
        except OSError:  # the terminal closed with the last process
            break
        if left and shown.rstrip(" ").endswith(("[y/N/a(ll)]", "[Enter]?", "[y/N]")):
            os.write(master, (left.pop(0) + "\n").encode())
            shown += "\n"
    process.wait(10)
    os.close(master)
    return shown


def test_each_step_is_asked_for_and_a_no_stops(home: Path) -> None:
    shown = in_terminal(home, "yn", "fix", ID)
    assert "step 1 of 2" in shown and "stopped after 1 step;" in shown
    assert (home / ".config/rundoctor/env.sh").exists()
    assert (home / ".bashrc").read_text() == "# mine\n"


def test_all_answers_for_the_rest(home: Path) -> None:
    shown = in_terminal(home, "a", "fix", ID)
    assert "step 2 of 2" not in shown and "WARN -> gone" in shown


@pytest.mark.parametrize(("answer", "left"), [("b", []), ("f", ["b", "env.sh"])], ids=["go back", "finish"])
def test_what_was_cut_off_is_repaired_as_the_person_says(home: Path, answer: str, left: list[str]) -> None:
    cut_off(home)
    shown = in_terminal(home, answer + "aa", "fix", ID)
    assert "cut off half way" in shown
    assert sorted(name for name in ("b", "env.sh") if (home / name).exists()) == left, shown
    assert Journal(home / ".local/state/rundoctor").half_done() == []
