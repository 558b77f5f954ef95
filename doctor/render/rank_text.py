"""The processes of one training in words: all together, who is slow, and a line a rank."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from doctor.language import say
from doctor.render.layout import pad
from runner.events import number, rows
from runner.strings import printable
from runner.text import t
from runner.verdict_ranks import slow_rank

RANKS_SHOWN = 16


def together_line(told: Mapping[str, Any]) -> str:
    """Return how many ranks there are and what they do together."""
    ranks, world = rows(told.get("ranks")), told.get("world_size")
    parts = [say(t("{count} of {world} ranks", count=len(ranks), world=world)) if world and world != len(ranks)
             else say(t("{count} {count:rank|ranks}", count=len(ranks)))]  # fmt: skip
    for name, unit in (("tokens_per_s", say("tokens/s")), ("samples_per_s", say("samples/s"))):
        if (rate := number(told.get(name))) is not None:
            parts.append(f"{rate:.4g} {unit}")
    return " · ".join(parts)


def attention_lines(told: Mapping[str, Any]) -> Iterator[str]:
    """Yield who is waited for, and who is behind."""
    if told.get("slowest"):
        yield say(slow_rank(told["slowest"]))
    if behind := told.get("behind"):
        yield say(
            t(
                "rank {rank} is {steps} {steps:step|steps} behind the first one",
                rank=behind["rank"],
                steps=behind["steps_behind"],
            )
        )


def rank_lines(told: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line a rank: its step, its rate, and how much of a step is its own work."""
    ranks = rows(told.get("ranks"))
    for row in ranks[:RANKS_SHOWN]:
        yield pad(str(row["rank"]), 4) + rank_words(row)
    yield from more_ranks(told)


def more_ranks(told: Mapping[str, Any]) -> Iterator[str]:
    """Yield how many ranks are not shown, where some are not."""
    if (more := len(rows(told.get("ranks"))) - RANKS_SHOWN) > 0:
        yield say(t("... and {count} more", count=more))


def rank_words(row: Mapping[str, Any]) -> str:
    """Return how far and how fast one rank is."""
    parts = [say(t("step {step}", step=row["step"]))]
    tokens, samples = number(row.get("tokens_per_s")), number(row.get("samples_per_s"))
    if tokens is not None:
        parts.append(f"{tokens:.4g} {say('tokens/s')}")
    elif samples is not None:
        parts.append(f"{samples:.4g} {say('samples/s')}")
    own, whole_s = number(row.get("own_seconds")), number(row.get("step_seconds"))
    if own is not None and whole_s:
        parts.append(
            say(t("{own} s of {whole} s a step its own work", own=f"{own:.3g}", whole=f"{whole_s:.3g}"))
        )
    if row.get("outcome"):
        parts.append(printable(str(row["outcome"])))
    return " · ".join(parts)
