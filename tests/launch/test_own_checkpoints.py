"""The checkpoints of somebody else's script: whose they are, which one is the newest, and whether it is whole."""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from doctor.own_checkpoints import checkpoints_at, newest_whole, written_since
from doctor.own_files import roots_of
from doctor.own_script import script_of
from doctor.whole_files import folder_trouble, trouble_in


def safetensors(values: int = 4) -> bytes:
    header = json.dumps({"w": {"dtype": "F32", "shape": [values], "data_offsets": [0, 4 * values]}}).encode()
    return len(header).to_bytes(8, "little") + header + b"\0" * 4 * values


def zipped(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("archive/data.pkl", b"x" * 1000)


def trainers(folder: Path, step: int, at: float) -> Path:
    """Write a checkpoint as Trainer does, last touched at ``at``."""
    path = folder / f"checkpoint-{step}"
    path.mkdir(parents=True)
    (path / "model.safetensors").write_bytes(safetensors())
    zipped(path / "optimizer.pt")
    zipped(path / "rng_state.pth")
    (path / "trainer_state.json").write_text(json.dumps({"global_step": step}))
    for one in path.iterdir():
        os.utime(one, (at, at))
    os.utime(path, (at, at))
    return path


def lightnings(folder: Path, name: str, at: float) -> Path:
    path = folder / "lightning_logs" / "version_0" / "checkpoints" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    zipped(path)
    os.utime(path, (at, at))
    return path


def names(folder: Path, argv: list[str] | None = None, pattern: str = "") -> list[str]:
    return [one.path.name for one in checkpoints_at(folder, argv or ["python", "train.py"], pattern)]


def test_the_newest_comes_first_whoever_wrote_it(tmp_path: Path) -> None:
    trainers(tmp_path / "out", 20, 1000.0)
    trainers(tmp_path / "out", 40, 2000.0)
    lightnings(tmp_path, "epoch=1-step=30.ckpt", 1500.0)
    assert names(tmp_path) == ["checkpoint-40", "epoch=1-step=30.ckpt", "checkpoint-20"]
    assert checkpoints_at(tmp_path, ["python"])[1].step == 30


def test_a_folder_that_is_only_called_so_is_none(tmp_path: Path) -> None:
    (tmp_path / "epoch_1").mkdir()
    (tmp_path / "epoch_1" / "picture.png").write_bytes(b"x")
    (tmp_path / ".git" / "checkpoint-1").mkdir(parents=True)
    assert names(tmp_path) == []


@pytest.mark.parametrize("word", ["{out}", "--output_dir={out}", "trainer.root={out}"])
def test_a_folder_that_the_command_names_is_looked_into(tmp_path: Path, word: str) -> None:
    (tmp_path / "code").mkdir()
    trainers(tmp_path / "disk", 5, 1000.0)
    argv = ["python", "train.py", word.format(out=tmp_path / "disk")]
    assert names(tmp_path / "code", argv) == ["checkpoint-5"] and names(tmp_path / "code") == []


def test_a_named_folder_inside_is_looked_into_once(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    assert roots_of(tmp_path, ["python", "--out", "out", "--again", "out"]) == [tmp_path]


@pytest.mark.parametrize("word", ["x" * 5000, "--config={" + "y" * 5000 + "}", "a\0b", "\udcff"])
def test_a_word_that_no_file_can_be_called_is_no_folder(tmp_path: Path, word: str) -> None:
    assert roots_of(tmp_path, ["python", word]) == [tmp_path]
    assert script_of(["python", word + ".py"], tmp_path) is None


def test_a_pattern_takes_the_place_of_the_known_names(tmp_path: Path) -> None:
    trainers(tmp_path, 20, 1000.0)
    for number in (1, 2):
        (tmp_path / f"model_{number}.pt").write_bytes(b"old form")
        os.utime(tmp_path / f"model_{number}.pt", (1000.0 + number, 1000.0 + number))
    assert names(tmp_path, pattern="model_*.pt") == ["model_2.pt", "model_1.pt"]


def test_what_lay_there_before_the_run_is_not_its_own(tmp_path: Path) -> None:
    old, again = trainers(tmp_path, 900, 1000.0), trainers(tmp_path, 10, 1000.0)
    before = {one.path: one.modified_ns for one in checkpoints_at(tmp_path, ["python"])}
    os.utime(again / "optimizer.pt", (3000.0, 3000.0))
    trainers(tmp_path, 20, 2000.0)
    own = [one.path.name for one in written_since(checkpoints_at(tmp_path, ["python"]), before)]
    assert own == ["checkpoint-10", "checkpoint-20"] and old.name not in own


def cut(name: str) -> Callable[[Path], None]:
    def do(folder: Path) -> None:
        path = folder / name
        path.write_bytes(path.read_bytes()[:-3])

    return do


def emptied(folder: Path) -> None:
    (folder / "optimizer.pt").write_bytes(b"")


def without_state(folder: Path) -> None:
    (folder / "trainer_state.json").unlink()


def only_begun(folder: Path) -> None:
    for path in folder.iterdir():
        if path.name != "model.safetensors":
            path.unlink()


def a_shard_short(folder: Path) -> None:
    shards = {
        "weight_map": {"w": "model-00001-of-00002.safetensors", "v": "model-00002-of-00002.safetensors"}
    }
    (folder / "model.safetensors.index.json").write_text(json.dumps(shards))
    (folder / "model-00001-of-00002.safetensors").write_bytes(safetensors())


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        (cut("model.safetensors"), "model.safetensors is cut short"),
        (cut("optimizer.pt"), "optimizer.pt is cut short"),
        (cut("trainer_state.json"), "trainer_state.json is cut short"),
        (emptied, "optimizer.pt is empty"),
        (without_state, "trainer_state.json is missing"),
        (only_begun, "trainer_state.json is missing"),
        (a_shard_short, "model-00002-of-00002.safetensors is missing"),
    ],
    ids=["weights cut", "optimizer cut", "state cut", "empty", "no state", "only begun", "a shard short"],
)
def test_a_damaged_newest_is_passed_over_and_named(
    tmp_path: Path, harm: Callable[[Path], None], said: str
) -> None:
    good = trainers(tmp_path, 20, 1000.0)
    bad = trainers(tmp_path, 40, 2000.0)
    assert folder_trouble(bad) is None
    harm(bad)
    newest, damaged = newest_whole(checkpoints_at(tmp_path, ["python"]))
    assert newest is not None and newest.path == good
    ((one, trouble),) = damaged
    assert one.path == bad and str(trouble).startswith(said)


def test_a_cut_lightning_checkpoint_is_not_whole(tmp_path: Path) -> None:
    path = lightnings(tmp_path, "last.ckpt", 1000.0)
    assert trouble_in(path) is None
    path.write_bytes(path.read_bytes()[:-30])
    assert trouble_in(path) is not None


def test_the_older_form_of_torchs_files_is_taken_as_it_is(tmp_path: Path) -> None:
    """It has no end that could be looked for: nothing speaks against it."""
    (tmp_path / "model.pt").write_bytes(b"\x80\x02\x8a\nl\xfc")
    assert trouble_in(tmp_path / "model.pt") is None
