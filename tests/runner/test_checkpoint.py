"""Checkpoints: damage is found and survived, a full disk costs a warning, the best one stays."""

from __future__ import annotations

import json
import resource
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from runner.checkpoint import checkpoint_folders, newest_good, read_state
from runner.durable import publish_folder, seal_folder, what_is_wrong
from runner.rundir import RunDir
from tests.runner.test_trainer import StopAfter
from tests.runner.tiny import events, final_hash, make_run, outcome, train


def folder_with(tmp_path: Path) -> Path:
    folder = tmp_path / "making"
    (folder / "inner").mkdir(parents=True)
    (folder / "weights").write_bytes(bytes(1000))
    (folder / "inner" / "state").write_text("{}")
    seal_folder(folder)
    return folder


def test_a_sealed_folder_is_believed(tmp_path: Path) -> None:
    assert what_is_wrong(folder_with(tmp_path)) == ""


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def remove(path: Path) -> None:
    path.unlink()


DAMAGES: dict[str, Callable[[Path], None]] = {"one bit flipped": flip, "cut short": cut, "missing": remove}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES.keys())
@pytest.mark.parametrize("name", ["weights", "inner/state", "manifest.json"])
def test_any_damage_is_found(tmp_path: Path, name: str, damage: Callable[[Path], None]) -> None:
    folder = folder_with(tmp_path)
    damage(folder / name)
    assert what_is_wrong(folder) != ""


def test_publishing_replaces_what_had_the_name(tmp_path: Path) -> None:
    target = tmp_path / "final"
    target.mkdir()
    (target / "old").write_text("old")
    publish_folder(folder_with(tmp_path), target)
    assert not (target / "old").exists() and what_is_wrong(target) == ""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> RunDir:
    run = make_run(tmp_path_factory.mktemp("whole"))
    assert train(run) == 0
    return run


def stopped_run(whole: RunDir, tmp_path: Path) -> RunDir:
    """A run stopped after 12 steps, with checkpoints of steps 10 and 12."""
    run = make_run(tmp_path, [f"data.train={whole.path.parent / 'rows.csv'}"], "run")
    assert train(run, stop=StopAfter(18)) == 143
    assert len(checkpoint_folders(run)) == 2
    return run


@pytest.mark.train
@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES.keys())
@pytest.mark.parametrize(
    "name", ["model.safetensors", "optimizer.safetensors", "state.json", "manifest.json"]
)
def test_a_damaged_checkpoint_is_named_and_the_one_before_used(
    whole: RunDir, tmp_path: Path, name: str, damage: Callable[[Path], None]
) -> None:
    run = stopped_run(whole, tmp_path)
    (newest, folder), (before, _) = checkpoint_folders(run)
    damage(folder / name)
    assert train(run, resume=True) == 0
    warnings = [event.data["text"] for event in events(run, "note") if event.data["level"] == "warn"]
    assert any("damaged" in text["msgid"] and text["params"]["path"] == str(folder) for text in warnings)
    assert events(run, "run-started")[-1].data["resumed_from_step"] == before < newest
    assert final_hash(run) == final_hash(whole)


@pytest.mark.train
def test_all_checkpoints_damaged_begins_again_and_says_so(whole: RunDir, tmp_path: Path) -> None:
    run = stopped_run(whole, tmp_path)
    for _, folder in checkpoint_folders(run):
        flip(folder / "model.safetensors")
    assert train(run, resume=True) == 0
    assert any("begins again" in event.data["text"]["msgid"] for event in events(run, "note"))
    assert final_hash(run) == final_hash(whole)


@pytest.mark.train
def test_a_damaged_newer_checkpoint_pushes_no_good_one_out(whole: RunDir, tmp_path: Path) -> None:
    """Step 12 is damaged and one is kept: what is saved from step 0 on is older by its number, and good."""
    run = make_run(tmp_path, [f"data.train={whole.path.parent / 'rows.csv'}", "train.keep_last=1"], "run")
    assert train(run, stop=StopAfter(18)) == 143
    for _, folder in checkpoint_folders(run):
        flip(folder / "model.safetensors")
    assert train(run, resume=True, stop=StopAfter(9)) == 143
    good = newest_good(run, lambda bad: None)
    assert good is not None and good < run.checkpoint(10)
    assert train(run, resume=True) == 0
    assert not what_is_wrong(run.checkpoint(40)) and not run.checkpoint(12).exists()
    assert final_hash(run) == final_hash(whole)


@pytest.mark.train
def test_the_best_checkpoint_is_not_restored_where_it_is_damaged(whole: RunDir, tmp_path: Path) -> None:
    common = [f"data.train={whole.path.parent / 'rows.csv'}", "train.evaluate_every=3", "train.lr=3e-2"]
    last = make_run(tmp_path, common, "last")
    run = make_run(tmp_path, [*common, "train.restore_best=true"], "best")
    assert train(last) == 0 and train(run) == 0
    assert final_hash(run) != final_hash(last), "the best weights are not the last"
    again = make_run(tmp_path, [*common, "train.restore_best=true"], "again")
    assert train(again, stop=StopAfter(80)) == 143
    best = read_state(newest_good(again, lambda bad: None) or again.path).best_window
    flip(again.checkpoint(best or 0) / "model.safetensors")
    assert train(again, resume=True) == 0
    assert final_hash(again) == final_hash(last)
    assert any("is damaged ({why})" in event.data["text"]["msgid"] for event in events(again, "note"))


@pytest.mark.train
def test_data_changed_since_is_refused(whole: RunDir, tmp_path: Path) -> None:
    run = stopped_run(whole, tmp_path)
    flip(run.data / "train.ids.bin")
    assert train(run, resume=True) == 1
    assert "changed since the run began" in str(outcome(run)["error"])


@pytest.fixture
def small_files() -> Iterator[Callable[[int], None]]:
    """Sets the largest file that this process may write, as a full disk would; lifted afterwards."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    yield lambda size: resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.train
def test_a_checkpoint_that_cannot_be_written_leaves_the_training_alone(
    whole: RunDir, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every write of weights fails until step 25; the run goes on, warns, saves later, and ends the same."""
    from runner import checkpoint

    write, failures = checkpoint.write_tensors, iter(range(4))

    def failing(path: Path, tensors: object) -> None:
        if next(failures, None) is not None:
            with open(path, "wb") as file:
                file.write(b"part of it")
            raise OSError(28, "No space left on device")
        write(path, tensors)  # type: ignore[arg-type]

    monkeypatch.setattr(checkpoint, "write_tensors", failing)
    run = make_run(tmp_path, [f"data.train={whole.path.parent / 'rows.csv'}"])
    assert train(run) == 0
    warnings = [event for event in events(run, "note") if "was not written" in event.data["text"]["msgid"]]
    assert [event.step for event in warnings] == [5, 10, 15, 20]
    assert [event.step for event in events(run, "checkpoint")] == [25, 30, 35, 40]
    assert not list(run.checkpoints.glob(".making-*"))
    assert final_hash(run) == final_hash(whole)


@pytest.mark.train
def test_a_file_limit_during_a_save_is_a_warning(
    whole: RunDir, tmp_path: Path, small_files: Callable[[int], None]
) -> None:
    run = make_run(tmp_path, [f"data.train={whole.path.parent / 'rows.csv'}", "train.steps=12"])
    small_files(60_000)
    assert train(run) == 1, "the final model does not fit either, and that is said"
    assert len(events(run, "step")) == 12
    assert any("was not written" in event.data["text"]["msgid"] for event in events(run, "note"))


@pytest.mark.train
def test_no_free_space_is_found_before_writing(
    whole: RunDir, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import shutil

    usage = shutil.disk_usage("/")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=1000))
    run = make_run(tmp_path, [f"data.train={whole.path.parent / 'rows.csv'}", "train.steps=12"])
    assert train(run, stop=StopAfter(8)) == 1, "asked to stop, and could not save: that is a failure"
    notes = [event.data["text"]["params"] for event in events(run, "note") if event.data["level"] == "warn"]
    assert any(params.get("free") == 1000 for params in notes)
    assert checkpoint_folders(run) == []


@pytest.mark.train
def test_the_last_ones_and_the_best_are_kept(whole: RunDir, tmp_path: Path) -> None:
    overrides = ["train.keep_last=1", "train.evaluate_every=5", "train.restore_best=true", "train.epochs=4"]
    run = make_run(tmp_path, [*overrides, f"data.train={whole.path.parent / 'rows.csv'}"])
    assert train(run) == 0
    best = max(events(run, "evaluation"), key=lambda event: (event.data["accuracy"], -(event.step or 0)))
    assert [window for window, _ in checkpoint_folders(run)] == sorted({80, best.step or 0}, reverse=True)
    assert json.loads((run.checkpoints / "latest.json").read_bytes())["window"] == 80
