"""What cannot be continued to the bit is refused; what a person accepts is written down wherever the run is read later."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from runner.checkpoint import checkpoint_folders
from runner.durable import seal_folder
from runner.rundir import RunDir
from tests.runner.test_trainer import StopAfter
from tests.runner.tiny import events, make_run, outcome, train

pytestmark = pytest.mark.train


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> RunDir:
    """A run of twenty steps, stopped after seven."""
    run = make_run(tmp_path_factory.mktemp("begun"), ["train.epochs=1"])
    assert train(run, stop=StopAfter(10)) == 143
    return run


@pytest.fixture
def run(begun: RunDir, tmp_path: Path) -> RunDir:
    shutil.copytree(begun.path, tmp_path / "run")
    return RunDir(tmp_path / "run")


def as_if_begun_with(run: RunDir, **conditions: str | int) -> None:
    """Rewrite the checkpoints as those conditions would have left them."""
    for _, folder in checkpoint_folders(run):
        state = json.loads((folder / "state.json").read_bytes())
        assert set(conditions) <= set(state)
        (folder / "state.json").write_text(json.dumps(state | conditions))
        seal_folder(folder)


OTHER: dict[str, dict[str, str | int]] = {
    "other thread count": {"threads": 2},
    "other card": {"device_name": "NVIDIA A100-SXM4-80GB"},
    "other torch": {"torch_version": "2.6.0+cu124"},
    "other transformers": {"transformers_version": "4.48.0"},
    "other CPU": {"cpu_capability": "AVX2"},
}


@pytest.mark.parametrize("conditions", OTHER.values(), ids=OTHER.keys())
def test_other_conditions_are_refused_by_name_and_accepted_only_in_writing(
    run: RunDir, conditions: dict[str, str | int]
) -> None:
    as_if_begun_with(run, **conditions)
    ((name, was),) = conditions.items()
    assert train(run, resume=True) == 1
    assert f"{name}: {was} -> " in str(outcome(run)["error"])
    assert "--approximate" in str(outcome(run)["error"])
    before = len(events(run, "step"))
    assert train(run, resume=True, approximate=True) == 0, outcome(run)
    assert len(events(run, "step")) > before
    assert any("approximately" in event.data["text"]["msgid"] for event in events(run, "note"))
    for folder in (run.checkpoint(20), run.final):
        (entry,) = json.loads((folder / "manifest.json").read_bytes())["approximate"]
        assert f"{name}: {was} -> " in entry
    assert json.loads((run.final / "metrics.json").read_bytes())["approximate"] == [entry]


def test_a_run_continued_twice_keeps_both_differences(run: RunDir) -> None:
    as_if_begun_with(run, threads=2)
    assert train(run, stop=StopAfter(4), resume=True, approximate=True) == 143
    as_if_begun_with(run, torch_version="2.6.0")
    assert train(run, resume=True, approximate=True) == 0
    entries = json.loads((run.final / "manifest.json").read_bytes())["approximate"]
    assert len(entries) == 2 and "threads" in entries[0] and "torch_version" in entries[1]


def test_what_was_not_recorded_is_no_difference(run: RunDir) -> None:
    """Checkpoints of an older runner do not say which instructions or which transformers they were made with."""
    as_if_begun_with(run, cpu_capability="", transformers_version="")
    assert train(run, resume=True) == 0
    assert json.loads((run.final / "manifest.json").read_bytes())["approximate"] == []


@pytest.mark.parametrize("approximate", [False, True], ids=["exactly", "approximately"])
def test_another_batch_geometry_is_another_plan_and_refused_in_any_case(
    run: RunDir, tmp_path: Path, approximate: bool
) -> None:
    other = make_run(tmp_path / "other", ["train.epochs=1", "train.batch_size=16"])
    shutil.copy(other.plan, run.plan)
    assert train(run, resume=True, approximate=approximate) == 1
    assert "another plan" in str(outcome(run)["error"])
    shutil.rmtree(run.data)  # even where the rows were prepared anew, the checkpoint is not theirs
    assert train(run, resume=True, approximate=approximate) == 1
    assert "another plan" in str(outcome(run)["error"]) and "checkpoint" in str(outcome(run)["error"])


def test_a_plan_changed_by_hand_is_not_taken(run: RunDir, capsys: pytest.CaptureFixture[str]) -> None:
    plan = json.loads(run.plan.read_bytes())
    plan["profile"]["train"]["batch_size"] = 16
    run.plan.write_text(json.dumps(plan))
    assert train(run, resume=True) == 1
    assert "was changed after it was made" in capsys.readouterr().err
