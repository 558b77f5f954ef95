"""docs/scale.md shows what the arithmetic says today."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.scale import CARDS, GIB, MODELS, memory_table, tables, wire_bytes
from tests.commands_run import doctor

PAGE = Path(__file__).parent.parent.parent / "docs" / "scale.md"


def test_every_line_of_the_tables_stands_on_the_page() -> None:
    lines = set(PAGE.read_text("utf-8").splitlines())
    assert [line for line in tables() if line and line not in lines] == []


@pytest.mark.parametrize(
    ("cards", "words"),
    [("8", ("ddp",)), ("8", ("zero1",)), ("64", ("zero3",)), ("8", ("zero3", "--offload"))],
    ids=lambda value: value if isinstance(value, str) else " ".join(value),
)
def test_the_command_on_the_page_gives_the_cells_of_its_table(
    tmp_path: Path, cards: str, words: tuple[str, ...]
) -> None:
    line = next(
        line for line in PAGE.read_text("utf-8").splitlines() if line.startswith("`doctor plan --model")
    )
    argv = line.strip("`").split()[1:]
    argv[argv.index("--model") + 1] = str(tmp_path / "config.json")
    (tmp_path / "config.json").write_text(json.dumps(MODELS["8B"]))
    argv[argv.index("--gpus") + 1] = cards
    done = doctor(*argv[:-1], *words, "--json")
    peak = json.loads(done.stdout)["estimate"]["peak_bytes"] / GIB
    row = next(
        one
        for one in memory_table("8B")
        if one.startswith(f"| {words[0]}{', optimizer' if words[1:] else ' |'}")
    )
    assert f"{peak:.0f}" == row.split("|")[2 + CARDS.index(int(cards))].split()[0]


@pytest.mark.parametrize(
    ("strategy", "sent"),
    [
        pytest.param("ddp", 2 * 4e9 * 7 / 8, id="DDP: gradients there and back"),
        pytest.param("zero2", (4e9 + 4e9) * 7 / 8, id="ZeRO-2: gradients there, weights back"),
        pytest.param("zero3", (4e9 + 2 * 4e9) * 7 / 8, id="ZeRO-3: weights twice, gradients once"),
    ],
)
def test_what_a_card_sends_is_counted_by_the_collectives(strategy: str, sent: float) -> None:
    assert wire_bytes(10**9, strategy, 8) == pytest.approx(sent)  # type: ignore[arg-type]
