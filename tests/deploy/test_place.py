"""An export's folder: whole or not there, and nothing is lost for it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from runner.deploy.place import UNFINISHED, check_target, new_folder, path_key, short_name, weights_sha256
from runner.deploy.records import REPORT
from runner.durable import what_is_wrong
from runner.inputs import InputError
from tests.deploy.test_cards import EXPORTED


def export_into(target: Path, source: str = "/m", run: str = "") -> None:
    with new_folder(target) as making:
        (making / "model.onnx").write_bytes(b"graph")
        report = replace(
            EXPORTED, source=short_name(Path(source)), source_key=path_key(source), run_key=path_key(run)
        )
        (making / REPORT).write_bytes(msgspec.json.encode(report))


def test_the_folder_is_sealed_and_nothing_else_is_left(tmp_path: Path) -> None:
    export_into(tmp_path / "onnx")
    assert what_is_wrong(tmp_path / "onnx") == ""
    assert [path.name for path in tmp_path.iterdir()] == ["onnx"]
    assert not UNFINISHED


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_what_fails_leaves_the_earlier_export_as_it_was(tmp_path: Path, error: BaseException) -> None:
    export_into(tmp_path / "onnx")
    with pytest.raises(type(error)), new_folder(tmp_path / "onnx") as making:
        (making / "model.onnx").write_bytes(b"half")
        raise error
    assert (tmp_path / "onnx" / "model.onnx").read_bytes() == b"graph"
    assert [path.name for path in tmp_path.iterdir()] == ["onnx"]


def test_what_a_killed_export_left_goes_with_the_next_one(tmp_path: Path) -> None:
    code = (
        "import sys, time; from pathlib import Path; from runner.deploy.place import new_folder\n"
        "with new_folder(Path(sys.argv[1])):\n    print('made', flush=True); time.sleep(60)"
    )
    process = subprocess.Popen([sys.executable, "-c", code, str(tmp_path / "onnx")], stdout=subprocess.PIPE)
    assert process.stdout is not None and process.stdout.readline() == b"made\n"
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    assert [path.name[:14] for path in tmp_path.iterdir()] == [".onnx.making-" + os.uname().nodename[0]]
    export_into(tmp_path / "onnx")
    assert [path.name for path in tmp_path.iterdir()] == ["onnx"]


def test_an_earlier_export_of_the_same_model_or_run_may_go(tmp_path: Path) -> None:
    check_target(tmp_path / "new", "/m", "")
    (tmp_path / "empty").mkdir()
    check_target(tmp_path / "empty", "/m", "")
    export_into(tmp_path / "onnx", "/m")
    check_target(tmp_path / "onnx", "/m", "")
    export_into(tmp_path / "onnx", "/runs/a/final", "/runs/a")
    check_target(tmp_path / "onnx", "/runs/a/checkpoints/step-00000040", "/runs/a")
    check_target(tmp_path / "onnx", str(tmp_path / "final"), str(tmp_path))  # the run was moved


def other_model(folder: Path) -> None:
    export_into(folder, "/other")


def own_notes(folder: Path) -> None:
    export_into(folder)
    (folder / "notes.txt").write_text("mine")


def something(folder: Path) -> None:
    folder.mkdir()
    (folder / "config.json").write_text("{}")


@pytest.mark.parametrize(
    ("make", "words"),
    [
        pytest.param(other_model, "is an export of another model (other)", id="another model's"),
        pytest.param(own_notes, "also holds notes.txt", id="a file of one's own among it"),
        pytest.param(something, "holds something that is no export", id="a model's folder"),
        pytest.param(lambda folder: folder.write_text("x"), "is not a folder", id="a file"),
    ],
)
def test_anything_else_is_refused(tmp_path: Path, make: object, words: str) -> None:
    make(tmp_path / "onnx")  # type: ignore[operator]
    with pytest.raises(InputError) as caught:
        check_target(tmp_path / "onnx", "/m", "")
    assert words in str(caught.value)


def test_several_files_of_weights_have_one_hash(tmp_path: Path) -> None:
    assert weights_sha256(tmp_path) == ""
    (tmp_path / "model-00001-of-00002.safetensors").write_bytes(b"a")
    one = weights_sha256(tmp_path)
    (tmp_path / "model-00002-of-00002.safetensors").write_bytes(b"b")
    assert len({one, weights_sha256(tmp_path), ""}) == 3


def test_the_child_ends_with_whoever_started_it_and_removes_what_it_made(tmp_path: Path) -> None:
    """Its stdin is a pipe of theirs: closed, however they ended."""
    home = tmp_path / "home"
    home.mkdir()
    code = (
        "import sys, time; from pathlib import Path; from runner.deploy import place, work\n"
        "work.LEAVE_IN_S = 0.2; work.watch_caller(Path(sys.argv[1]))\n"
        "with place.new_folder(Path(sys.argv[2])):\n    print('made', flush=True)\n    time.sleep(60)"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(home), str(tmp_path / "onnx")], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    assert process.stdin is not None and process.stdout is not None
    assert process.stdout.readline() == b"made\n"
    process.stdin.close()
    begun = time.monotonic()
    assert process.wait(30) != 0
    process.stdout.close()
    assert time.monotonic() - begun < 30
    assert list(tmp_path.iterdir()) == []
