"""A picture of every screen, narrow and wide, in both languages: clock, machine and runs stand still, so pictures do.

Pictures are text (see :mod:`tests.tui.pictures`) of the pinned textual, whose own parts (scroll bars, fields) are in them.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

import pytest

from doctor import language
from doctor.expectations import Expected
from doctor.model import Fix, SetVariable, t
from tests.tui.driving import NARROW, WIDE, at_rest, driven, press, sees
from tests.tui.pictures import hold_against, picture
from tests.tui.recorded import CAUSE, Clock, RecordedSource, report, unread_driver
from tests.tui.scenes import crowded_run, four_ranks, rich_run

DRAWN_BY = "8.2.8"
pytestmark = pytest.mark.skipif(
    version("textual") != DRAWN_BY, reason=f"the pictures were drawn by textual {DRAWN_BY}"
)
SIZES = {"80x24": NARROW, "160x48": WIDE}
RUN = "quickstart-20261130-061500"
CROWDED = "eight-cards-20261130-071500"
RANKS = "four-ranks-20261130-081500"


class Scene(NamedTuple):
    """How a screen is come to, and a word of it that stands there in both languages."""

    keys: tuple[str, ...]
    word: str
    run: str = ""
    is_readonly: bool = False
    sizes: tuple[str, ...] = ("80x24", "160x48")


SCENES = {
    "machine": Scene((), "550.90"),
    "facts": Scene(("tab",), "3.11.9", sizes=("80x24",)),
    "machine-readonly": Scene((), "550.90", is_readonly=True, sizes=("80x24",)),
    "fix": Scene(("f",), "HF_HOME"),
    "question": Scene(("f", "a"), "n/Esc"),
    "profiles": Scene(("2", "enter"), "train.precision"),
    "change": Scene(("2", "c", "3"), "train.max_length"),
    "runs": Scene(("3",), RUN),
    "compare": Scene(("3", "m", "down", "c"), "beside"),
    "snapshots": Scene(("4", "enter"), "what known-good holds"),
    "difference": Scene(("4", "x", "m", "up", "d"), "OMP_NUM_THREADS"),
    "help": Scene(("question_mark",), "Ctrl+P"),
    "curves": Scene((), "100/100", RUN),
    "gpu-and-host": Scene(("tab",), "NVIDIA GeForce RTX 4090", RUN, sizes=("80x24",)),
    "stacks": Scene(("tab", "tab"), "__getitem__", RUN, sizes=("80x24",)),
    "icicle": Scene(("i",), "_worker_loop", RUN),
    "events": Scene(("f8",), "+00:51", RUN, sizes=("80x24",)),
    "trainer-log": Scene(("o",), "tokenizers forked", RUN, sizes=("80x24",)),
    "eight-cards": Scene(("f6",), "GPU is lost", CROWDED),
    "ranks-and-xid": Scene(("f6",), "GPU3", RANKS),
    "filter": Scene(("slash", *"shm"), "/shm", sizes=("80x24",)),
    "looking-back": Scene(("left_square_bracket",) * 4, "+01:01", RUN),
    "logarithmic": Scene(("g",), "100/100", RUN, sizes=("80x24",)),
}  # fmt: skip


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("runs")
    return [rich_run(folder / RUN), crowded_run(folder / CROWDED), four_ranks(folder / RANKS)]


@pytest.fixture
def source(runs: list[Path]) -> RecordedSource:
    source = RecordedSource(report(unanswered=(unread_driver(),)), runs=runs, clock=Clock(1_790_000_150.0))
    steps = (SetVariable(name="HF_HOME", value="/root/autodl-tmp/hf", file="/root/.bashrc"),)
    source.fixes[CAUSE.id] = Fix(id=CAUSE.id, title=t("keep the cache on the data disk"), steps=steps)
    source.expectation = Expected(
        memory_low_bytes=17 << 30, memory_peak_bytes=19 << 30, flops_per_token=1.5e10
    )
    return source


@pytest.fixture
def utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Times of day as in Greenwich, wherever the test runs."""
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize(
    ("name", "size"), [(name, size) for name, scene in SCENES.items() for size in scene.sizes]
)
async def test_the_screen_is_the_picture(
    source: RecordedSource, chinese: None, utc: None, name: str, size: str, lang: str
) -> None:
    language.use_language(lang)
    scene = SCENES[name]
    async with driven(source, SIZES[size], run=scene.run or None, is_readonly=scene.is_readonly) as pilot:
        await sees(pilot, "/100" if scene.run else "550.90")
        for key in scene.keys:
            await press(pilot, key)
        await sees(pilot, scene.word)
        await at_rest(pilot)
        hold_against(f"{name}-{size}-{lang}", picture(pilot))


def test_no_picture_is_of_a_screen_that_is_not_there() -> None:
    wanted = {
        f"{name}-{size}-{lang}"
        for name, scene in SCENES.items()
        for size in scene.sizes
        for lang in ("en", "zh")
    }
    from tests.tui.pictures import FOLDER

    assert {path.stem for path in FOLDER.glob("*.txt")} == wanted
