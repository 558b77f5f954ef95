"""Where each process of one training stands, side by side: looked at from outside now, or as they left it when they ended."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from doctor.pace import starting_rate
from doctor.pyspy import Sample, Window
from doctor.stacks import hottest, where_time_goes
from runner.dumps import frames_of_dump, where_in
from runner.phases import is_exchange
from runner.rank_record import RankLeft, read_ranks, stack_file
from runner.rundir import RunDir
from runner.standing import Standing, names, standing

WAITS_SHARE = 0.9
"""Of the looks at it: a rank that stood in an exchange at so many of them waited for the others all the time."""
COMES_SHARE = 0.1
"""At no more than so many: it did not wait."""


@dataclass(frozen=True)
class RankStack:
    """One rank."""

    rank: int
    pid: int
    standing: Standing | None
    """None: it is gone."""
    exchange_share: float | None = None
    """Of the looks at it, those at which it stood in an exchange with the others; None: nobody could look."""
    place: str = ""
    """``file:line in function`` where it mostly stood, or stood last."""
    frames: list[dict[str, Any]] = field(default_factory=list)
    """Hottest functions, as :func:`doctor.stacks.hottest` lists them; empty: from what it left behind."""
    sample: Sample | None = None


def living_ranks(run: RunDir) -> list[RankLeft]:
    """Return the ranks of this machine that are there now; none where one process trains.

    A number that another process has got since is not a rank's: its command does not name the run.
    """
    path = run.path.absolute()
    left = [one for one in read_ranks(path) if one.left_at is None]
    return [one for one in left if standing(one.pid) is not None and names(one.pid, path)]


def record_ranks(ranks: Sequence[RankLeft], seconds: int, rate: int | None = None) -> list[RankStack]:
    """Watch all ``ranks`` at the same time for ``seconds``."""
    windows = [(one, Window(one.pid, seconds, rate or starting_rate(50 * len(ranks)))) for one in ranks]
    return [_looked_at(one, window.wait()) for one, window in windows]


def _looked_at(one: RankLeft, sample: Sample) -> RankStack:
    found = where_time_goes(sample.stacks)
    frames = hottest(sample.stacks, limit=20)
    share = None if sample.trouble or not sample.stacks else float(found.get("exchange", 0.0))
    places = [place for place in found.get("places", []) if place["phase"] != "worker"]
    place = places[0] if places else frames[0] if frames else None
    return RankStack(
        one.rank, one.pid, standing(one.pid), share,
        f"{place['file']}:{place['line']} in {place['function']}" if place else "", frames, sample,
    )  # fmt: skip


def left_behind(run: RunDir) -> list[RankStack]:
    """Return where the ranks of a run that has ended stood, from their files in ``stacks/``."""
    found = []
    pids = {one.rank: one.pid for one in read_ranks(run.path)}
    for rank in sorted(pids):
        with contextlib.suppress(OSError):
            text = stack_file(run.path, rank).read_text("utf-8", "replace")
            if place := where_in(text):
                share = float(is_exchange(frames_of_dump(text)))
                found.append(RankStack(rank, pids[rank], None, share, place))
    return found


def awaited(stacks: Sequence[RankStack]) -> RankStack | None:
    """Return the one rank that all others wait for: it is stopped, stuck, or stands outside the exchange; None: nobody is."""
    waiting = [one for one in stacks if (one.exchange_share or 0.0) >= WAITS_SHARE]
    others = [one for one in stacks if one not in waiting]
    held = [one for one in stacks if one.standing and (one.standing.is_stopped or one.standing.is_stuck)]
    if len(held) == 1:
        return held[0]
    if len(others) != 1 or not waiting:
        return None
    (one,) = others
    return one if one.exchange_share is not None and one.exchange_share <= COMES_SHARE else None
