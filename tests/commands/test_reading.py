"""What a person hands over is read whole where that matters, bounded where it must be, in the encoding it has."""

from __future__ import annotations

import io
import json
import os
import threading
from pathlib import Path

import pytest

from doctor.commands.reading import decode, read_tail, scripts_in
from tests.commands_run import doctor

OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB"


@pytest.mark.parametrize("limit", [128, 1000, 1 << 20])
def test_a_lines_number_is_the_files_not_the_tails(limit: int) -> None:
    text = "".join(f"step {number}\n" for number in range(1, 300_000)) + OOM + "\n"
    tail = read_tail(io.BytesIO(text.encode()), limit)
    assert tail.lines_before is not None
    place = tail.text.splitlines().index(OOM) + 1 + tail.lines_before
    assert place == text.splitlines().index(OOM) + 1
    assert len(tail.text) <= limit


def test_the_number_that_is_said_is_the_files(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("step loss 0.5 of an epoch\n" * 400_000 + OOM + "\n")
    done = doctor("explain", "--no-machine", "--json", "log", cwd=tmp_path)
    assert json.loads(done.stdout)["known"][0]["match"]["line_number"] == 400_001


@pytest.mark.parametrize("size", [300 << 20, 2 << 30])
def test_of_a_file_of_gigabytes_only_the_end_is_read_and_lines_count_from_there(
    tmp_path: Path, size: int
) -> None:
    with open(tmp_path / "log", "wb") as file:  # a hole, as a log that was cut while it was written has
        file.truncate(size)
        file.seek(size)
        file.write(f"\n{OOM}\nlast\n".encode())
    done = doctor("explain", "--no-machine", "--json", "log", cwd=tmp_path)
    match = json.loads(done.stdout)["known"][0]["match"]
    assert (match["line_number"], match["line"]) == (-2, OOM)
    assert "line 2 from the end: " in doctor("explain", "--no-machine", "log", cwd=tmp_path).stdout


def test_a_last_line_longer_than_all_that_is_read_is_no_empty_text() -> None:
    tail = read_tail(io.BytesIO(b"x\n" + b"." * 100_000 + OOM.encode() + b"\n"), 1000)
    assert tail.text.endswith(OOM + "\n")


def test_what_a_progress_bar_wrote_over_is_not_shown(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("\r".join(f"{n}%|##| loss 0.5" for n in range(90)) + f"\r{OOM}\n")
    done = doctor("explain", "--no-machine", "log", cwd=tmp_path)
    assert done.stdout.splitlines()[0] == f"line 1: {OOM}"


def test_ctrl_c_ends_a_pipe_that_does_not_end() -> None:
    class Following(io.BytesIO):
        def read1(self, size: int | None = -1, /) -> bytes:
            if piece := super().read1(size):
                return piece
            raise KeyboardInterrupt

    assert read_tail(Following(f"{OOM}\n".encode()), 1000).text == f"{OOM}\n"
    with pytest.raises(KeyboardInterrupt):
        read_tail(Following(b""), 1000)


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        pytest.param("a 训练\n".encode(), "a 训练\n", id="UTF-8"),
        pytest.param("a 训练\n".encode("utf-8-sig"), "a 训练\n", id="UTF-8 with a mark"),
        pytest.param("a 训练\n".encode("utf-16"), "a 训练\n", id="PowerShell's redirection"),
        pytest.param(
            "RuntimeError: 磁盘已满\n".encode("utf-16-le"), "RuntimeError: 磁盘已满\n", id="its mark cut off"
        ),
        pytest.param(
            "RuntimeError: 磁盘已满\n".encode("utf-16-be"),
            "RuntimeError: 磁盘已满\n",
            id="big-endian, no mark",
        ),
        pytest.param("磁盘已满\n".encode("gbk"), "磁盘已满\n", id="GBK"),
        pytest.param(b"\xff\xfa\x80!\n", "\ufffd\ufffd\ufffd!\n", id="none of them"),
    ],
)
def test_a_log_is_decoded_as_what_it_is(raw: bytes, expected: str) -> None:
    assert decode(raw) == expected
    assert read_tail(io.BytesIO(raw), 1 << 20).text == expected


def test_the_colours_of_a_notebook_do_not_hide_an_error() -> None:
    raw = f"\x1b[0;31mtorch.OutOfMemoryError\x1b[0m: {OOM.partition(': ')[2]}\n".encode()
    assert read_tail(io.BytesIO(raw), 1 << 20).text == OOM + "\n"


@pytest.mark.parametrize("stdin", [b"", b" \n\n"], ids=["nothing", "blank lines"])
def test_no_text_is_not_an_unknown_error(stdin: bytes) -> None:
    done = doctor("explain", "--no-machine", stdin=stdin)
    assert (done.returncode, "no text to explain" in done.stderr) == (2, True)


def test_who_asks_for_no_machine_is_not_told_that_it_could_not_be_read() -> None:
    done = doctor("explain", "--no-machine", stdin=b"RuntimeError: CUDA out of memory\n")
    assert "Not looked at, as --no-machine asks" in " ".join(done.stdout.split())
    assert "Could not be looked at" not in done.stdout


# ------------------------------------------------------------------------------------------------ scripts
def test_environments_and_caches_are_not_the_users_scripts(tmp_path: Path) -> None:
    for name in (
        "train.py",
        "a/b.ipynb",
        "venv/x.py",
        ".git/hooks/y.py",
        "node_modules/z.py",
        "__pycache__/w.py",
    ):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    (tmp_path / "venv/pyvenv.cfg").touch()
    (tmp_path / "again").symlink_to(tmp_path)
    assert [str(path.relative_to(tmp_path)) for path in scripts_in(tmp_path)] == ["train.py", "a/b.ipynb"]


@pytest.mark.parametrize(
    ("source", "shown", "code"),
    [
        pytest.param("import torch\nprint('x'\n", "readable.py:2", 1, id="a finding in another"),
        pytest.param("print('x')\n", "0 findings in 1 file", 3, id="nothing in the others is not fine"),
    ],
)
def test_one_script_that_cannot_be_read_does_not_hide_the_others(
    tmp_path: Path, source: str, shown: str, code: int
) -> None:
    (tmp_path / "readable.py").write_text(source)
    (tmp_path / "huge.py").write_bytes(b"#" * (5 << 20))
    done = doctor("lint", ".", cwd=tmp_path)
    assert shown in done.stdout
    assert "huge.py" in done.stderr
    assert done.returncode == code


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        pytest.param(["lint", "nowhere.py"], "No such file", id="lint: a file that is not there"),
        pytest.param(["lint", "."], "no script", id="lint: a folder without scripts is not fine"),
        pytest.param(["lint", "/dev/zero"], "larger than", id="lint: no end"),
        pytest.param(["check", "--script", "/dev/zero"], "larger than", id="check: no end"),
    ],
)  # fmt: skip
def test_what_is_no_script_is_a_usage_error(tmp_path: Path, arguments: list[str], word: str) -> None:
    done = doctor(*arguments, cwd=tmp_path)
    assert (done.returncode, word in done.stderr, done.stdout) == (2, True, "")


def test_a_notebook_may_carry_pictures(tmp_path: Path) -> None:
    cell = {
        "cell_type": "code",
        "source": ["import torch\n"],
        "outputs": [{"data": {"image/png": "A" * (6 << 20)}}],
    }
    (tmp_path / "n.ipynb").write_text(json.dumps({"cells": [cell]}))
    assert doctor("lint", "n.ipynb", cwd=tmp_path).returncode == 0


def test_a_script_is_read_in_the_encoding_it_declares(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_bytes("# -*- coding: gbk -*-\n名字 = (\n".encode("gbk"))
    done = doctor("lint", "train.py", "--json", cwd=tmp_path)
    assert "was never closed" in done.stdout


def test_a_pipe_may_stand_in_for_a_script(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.py")
    writer = threading.Thread(target=(tmp_path / "pipe.py").write_text, args=("import torch\n",), daemon=True)
    writer.start()
    assert doctor("lint", "pipe.py", cwd=tmp_path).returncode == 0


def test_a_scripts_name_cannot_drive_the_terminal(tmp_path: Path) -> None:
    (tmp_path / "a\x1b[31m.py").write_text("x = (\n")
    done = doctor("lint", "a\x1b[31m.py", cwd=tmp_path)
    assert "\\x1b" in done.stdout
    assert "\x1b" not in done.stdout
