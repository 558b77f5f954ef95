"""Bad input and hostile surroundings, from outside: a clear line, the right exit code, the rest still answered."""

from __future__ import annotations

import argparse
import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from doctor import commands
from tests.commands_run import doctor

MAIN = "import sys; from doctor.commands import main; sys.exit(main())"


def good_snapshot() -> bytes:
    return b'{"schema": 1, "facts": {"host": {"status": "ok", "value": {"cpu_count": 4}}}}'


@pytest.mark.parametrize(
    ("name", "content", "word"),
    [
        pytest.param("a.json", b"", "not JSON", id="empty"),
        pytest.param("a.json", b"hello", "not JSON", id="text"),
        pytest.param("a.json", good_snapshot()[:-20], "cut short", id="cut in half"),
        pytest.param("a.json", b"[1, 2]", "not a doctor snapshot", id="other JSON"),
        pytest.param("a.json", b'{"facts": {"host": {"status": "fine"}}}', "$.facts.host.status", id="a bad value, with its path"),
        pytest.param("a.json", b'{"schema": 99, "facts": {}}', "schema 99", id="newer than us"),
        pytest.param("a.json", b"\xff\xfe\x00", "not JSON", id="binary"),
        pytest.param("a.json", b'{"facts": ' + b"[" * 100_000, "not JSON", id="nested without end"),
        pytest.param("a.json", b'{"facts": {"driver": {"status": "ok"}}}', "$.facts.driver", id="ok, and nothing read"),
        pytest.param("a.json", b'{"facts": {"host": {"status": "ok", "value": {"memory_total_bytes": -5}}}}', "below zero", id="a size below zero"),
        pytest.param("a.json", b'{"facts": {"torch": {"status": "ok", "value": {"version": "' + b"9" * 5000 + b'"}}}}', "no version", id="a version without end"),
    ],
)  # fmt: skip
def test_a_file_that_is_no_snapshot_is_a_usage_error(
    tmp_path: Path, name: str, content: bytes, word: str
) -> None:
    (tmp_path / name).write_bytes(content)
    done = doctor("check", "--facts", name, cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    assert word in done.stderr
    assert done.stdout == ""
    assert "Traceback" not in done.stderr


def test_a_missing_file_is_a_usage_error_that_names_it(tmp_path: Path) -> None:
    done = doctor("check", "--facts", "nowhere.json", cwd=tmp_path)
    assert (done.returncode, "nowhere.json" in done.stderr) == (2, True)


def test_a_mark_before_the_json_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(b"\xef\xbb\xbf" + good_snapshot())
    assert doctor("check", "--facts", "a.json", cwd=tmp_path).returncode == 0


def test_what_nobody_looked_at_is_not_called_fine(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(good_snapshot())
    english, chinese = "processes on the GPUs", "GPU 上的进程"
    for arguments, words in (([], english), (["--brief"], english), (["--lang", "zh"], chinese)):
        done = doctor("check", "--facts", "a.json", *arguments, cwd=tmp_path)
        assert words.replace(" ", "") in "".join(done.stdout.split()), arguments
        assert "no Python environment" not in done.stdout, "nobody looked for one"


def test_names_in_a_snapshot_cannot_drive_the_terminal(tmp_path: Path) -> None:
    bad = "x\x1b[31m\n\x07"
    facts = {
        section: {"status": "ok", "value": value}
        for section, value in (
            ("python", {"version": bad, "executable": bad}), ("torch", {"version": bad}),
            ("driver", {"version": bad, "cuda_version": bad}), ("gpus", {"items": [{"name": bad * 1000, "index": 0}]}),
            ("platform", {"name": bad}),
        )
    }  # fmt: skip
    (tmp_path / "a.json").write_text(json.dumps({"schema": 1, "label": bad, "facts": facts}))
    for verb in (
        ["check", "--facts"],
        ["check", "--markdown", "--facts"],
        ["snapshot", "show"],
        ["recommend", "--facts"],
    ):
        done = doctor(*verb, "a.json", cwd=tmp_path)
        assert "\x1b" not in done.stdout, verb
        assert "\x07" not in done.stdout, verb
        assert len(done.stdout) < 12_000, verb


def test_a_folder_without_a_snapshot_says_which_file_is_missing(tmp_path: Path) -> None:
    done = doctor("check", "--facts", str(tmp_path))
    assert (done.returncode, f"{tmp_path}/snapshot.json: No such file" in done.stderr) == (2, True)


def test_an_unknown_key_is_noted_and_the_rest_is_judged(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(b'{"schema": 1, "later": 1, "facts": {"quantum": {"status": "ok"}}}')
    done = doctor("check", "--facts", "a.json", "--json", cwd=tmp_path)
    assert done.returncode == 0
    assert json.loads(done.stdout)["not_looked"]


@pytest.mark.parametrize(
    "name", ["doctor.py", "runner.py", "torch.py", "json.py", "msgspec.py", "profiles/quickstart.toml"]
)
def test_files_of_the_users_own_are_not_taken_for_ours(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("raise SystemExit('taken for ours')\n")
    scripts = Path(sys.executable).parent / "doctor"
    if not scripts.exists():
        pytest.skip("the console script is not installed beside this interpreter")
    done = subprocess.run(
        [str(scripts), "check"], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert "taken for ours" not in done.stdout + done.stderr
    assert done.returncode in (0, 1, 3)


def test_a_file_name_that_is_not_utf8_is_survived(tmp_path: Path) -> None:
    (tmp_path / os.fsdecode("训练.txt".encode("gbk"))).write_text("x")
    done = doctor("check", "--json", cwd=tmp_path)
    assert done.returncode in (0, 1, 3)
    json.loads(done.stdout)


@pytest.mark.parametrize(
    "environment",
    [
        pytest.param({"LANG": "C", "LC_ALL": "C", "DOCTOR_LANG": "zh", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}, id="a terminal that is not UTF-8"),
        pytest.param({"HOME": "/nonexistent"}, id="no home"),
        pytest.param({"HOME": "/proc"}, id="a home that cannot be written"),
        pytest.param({"TERM": "dumb", "COLUMNS": "1"}, id="a very narrow terminal"),
        pytest.param({"VIRTUAL_ENV": "/nonexistent", "CONDA_PREFIX": "/nonexistent"}, id="variables that point nowhere"),
        pytest.param({"PATH": "/nonexistent"}, id="an empty PATH"),
        pytest.param({"LD_LIBRARY_PATH": ":::/nonexistent:"}, id="a strange LD_LIBRARY_PATH"),
        pytest.param({"CUDA_VISIBLE_DEVICES": "\x1b[31mred"}, id="an escape in a variable"),
    ],
)  # fmt: skip
def test_check_answers_in_hostile_surroundings(environment: dict[str, str]) -> None:
    done = doctor("check", environment=environment)
    assert done.returncode in (0, 1, 3), done.stderr
    assert "Traceback" not in done.stderr
    assert "\x1b" not in done.stdout
    assert done.stdout


def test_a_reader_that_leaves_early_is_no_error() -> None:
    done = subprocess.run(
        ["bash", "-c", f"'{sys.executable}' -c '{MAIN}' help | head -1; exit ${{PIPESTATUS[0]}}"],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode in (0, 141)
    assert "Traceback" not in done.stderr


def test_a_full_stdout_is_said() -> None:
    if not Path("/dev/full").exists():
        pytest.skip("this machine has no /dev/full")
    done = subprocess.run(
        ["bash", "-c", f"'{sys.executable}' -c '{MAIN}' check > /dev/full"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode != 0
    assert "Traceback" not in done.stderr
    assert "the output cannot be written: No space left on device" in done.stderr


def test_too_few_files_that_may_be_opened_is_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    def opens_too_many(_: object) -> int:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE), "/data/x")

    assert commands._guarded(opens_too_many, argparse.Namespace(), "en") == 3
    assert "may not open more files (Too many open files)" in capsys.readouterr().err


def test_a_file_size_limit_is_one_line_and_no_success(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(good_snapshot())
    done = subprocess.run(
        ["bash", "-c", f"ulimit -f 0; '{sys.executable}' -c '{MAIN}' check --facts a.json --json > out.json"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        cwd=tmp_path,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
    )
    assert done.returncode not in (0, -25)
    assert done.stderr.count("\n") == 1
    assert "File too large" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (("chek",), "did you mean `doctor check`?"),
        (("train.py",), "`doctor lint train.py`"),
        (("error.log",), "`doctor explain error.log`"),
        (("zzz",), "zzz is no verb: `doctor --help`"),
        (("check", "--fail-on", "never"), "invalid choice"),
        (("check", "--python", "/nonexistent"), "/nonexistent"),
        (("run",), "profile"),
        (("run", "no-such-profile"), "no-such-profile"),
        (("watch", "no-such-run"), "no-such-run"),
        (("report", "no-such-run"), "no-such-run"),
        (("help", "no-such-id"), "no-such-id"),
        (("lint", "no-such-file.py"), "no-such-file.py"),
        (("explain", "no-such-file.log"), "no-such-file.log"),
        (("snapshot", "show", "no-such-file.json"), "no-such-file.json"),
        (("stacks", "999999999"), "999999999"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_a_wrong_command_line_names_what_is_wrong(
    tmp_path: Path, arguments: tuple[str, ...], word: str
) -> None:
    done = doctor(*arguments, cwd=tmp_path)
    assert done.returncode in (1, 2, 3)
    assert word in done.stderr
    assert "Traceback" not in done.stderr


def test_no_verb_and_no_terminal_prints_the_help() -> None:
    done = doctor()
    assert (done.returncode, "VERB" in done.stdout) == (0, True)


# ------------------------------------------------------------------------------------------ streams, folder, Ctrl-C
def shell(command: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    words = command.replace("doctor", f"'{sys.executable}' -c '{MAIN}'")
    return subprocess.run(
        ["bash", "-c", words], cwd=cwd, capture_output=True, text=True, timeout=60, check=False
    )


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&-", ">&- 2>&- <&-"])
def test_a_closed_stream_is_no_trouble(closed: str) -> None:
    done = shell(f"doctor check --brief {closed}")
    assert done.stderr == ""
    assert done.returncode in (0, 1, 3)


@pytest.mark.parametrize("verb", ["check", "env list", "runs", "lint .", "snapshot export", "explain x"])
def test_a_folder_that_was_deleted_is_one_line(tmp_path: Path, verb: str) -> None:
    done = shell(f"mkdir gone; cd gone; rmdir ../gone; doctor --lang en {verb}", tmp_path)
    assert done.returncode == 2
    assert done.stderr.splitlines() == [
        "doctor: the folder you are in was deleted: go to another one with cd, and run this again"
    ]


def test_help_needs_no_folder(tmp_path: Path) -> None:
    done = shell("mkdir gone; cd gone; rmdir ../gone; doctor help no-gpu-visible", tmp_path)
    assert (done.returncode, done.stderr) == (0, "")


def test_ctrl_c_before_the_verb_runs_is_quiet() -> None:
    code = (
        "import sys, doctor.commands as c, doctor.commands.parser as p\n"
        "def stopped(*_): raise KeyboardInterrupt\n"
        "p.build_parser = stopped\n"
        "sys.exit(c.main(['check']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (130, "")


@pytest.mark.parametrize("name", ["nonsense", "gpu-matmul-fails,"])
def test_why_of_what_no_check_gives_is_a_usage_error(name: str) -> None:
    done = doctor("check", "--why", name)
    assert (done.returncode, name in done.stderr, done.stdout) == (2, True, "")
