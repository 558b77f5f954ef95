"""Where the processes of one training stand, side by side: who is waited for, and what each of them does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from doctor.language import say
from doctor.rank_stacks import RankStack, awaited
from doctor.render.run_text import frame_line
from runner.text import Text, t

FRAMES = 8


def rank_stack_lines(ranks: Sequence[RankStack]) -> Iterator[str]:
    """Yield a line for the whole, then a block for each rank."""
    late = awaited(ranks)
    if late is not None:
        yield say(t("the others wait for rank {rank} (process {pid})", rank=late.rank, pid=late.pid))
    for one in ranks:
        yield ""
        yield say(t("{name}, process {pid}:", name=f"rank {one.rank}", pid=one.pid)) + " " + say(_doing(one))
        if one.place:
            yield "  " + one.place
        if one.sample is not None and one.sample.trouble:
            yield "  " + say(t("no stacks: {why}", why=say(one.sample.trouble.why)))
        yield from (frame_line(frame) for frame in one.frames[:FRAMES])


def _doing(one: RankStack) -> Text:
    if one.standing is not None and one.standing.is_stopped:
        return t("stopped by a signal (state T)")
    if one.standing is not None and one.standing.is_stuck:
        return t("in a read or write that does not return (state D)")
    if one.standing is None:
        return t("gone; it stood last at")
    if one.exchange_share is None:
        return t("not seen")
    return t("waits for the others in {share} % of looks", share=round(100 * one.exchange_share))
