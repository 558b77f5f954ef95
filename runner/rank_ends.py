"""How a run of several processes ended, told by what its ranks left behind and by who was still there: the culprit is named."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from runner.dumps import where_in
from runner.events import read_events
from runner.rank_record import RankLeft, stack_file
from runner.rank_watch import Awaited
from runner.rundir import RunDir
from runner.signals import EXIT_SAVED
from runner.start import Start
from runner.text import Text, t

ABORTED = "Fatal Python error: Aborted"
"""What :mod:`faulthandler` writes above its dump on SIGABRT."""


def first_to_fail(
    left: Sequence[RankLeft], start: Start, awaited: Sequence[Awaited] = ()
) -> RankLeft | Awaited | None:
    """Return the rank that brought the run down.

    It is the first that failed by itself; else one that is gone without a word; else the one that the others waited for;
    else the first that lost the others, whose sentence says which machine. Whoever lost the others left later than the
    culprit, with an error that is not its own.
    """
    failed = [one for one in left if one.left_at is not None and one.code not in (0, EXIT_SAVED)]
    by_themselves = [one for one in failed if not one.exchange]
    waited_for = {one.rank for one in awaited}
    gone = [one for one in left if one.left_at is None and one.rank not in waited_for]
    held_fast = [one for one in awaited if one.standing.is_stopped or one.standing.is_stuck]
    if held_fast and not by_themselves:
        return held_fast[0]
    if gone and len(gone) < start.nproc:
        return min(gone, key=lambda one: one.rank)
    if awaited and not by_themselves and any(one.exchange == "timed-out" for one in failed):
        return awaited[0]
    if awaited and not failed and not gone:
        return awaited[0]
    return min(by_themselves or failed or gone, key=lambda one: one.left_at or 0.0, default=None)


def aborted_as_lost(run: RunDir, left: Sequence[RankLeft]) -> list[RankLeft]:
    """Return the records with those that NCCL's watchdog ended as what they are: ranks that waited for another in vain.

    It aborts the process, which leaves no word but the dump of its stacks. Asked only where somebody was still there.
    """
    return [
        replace(one, left_at=one.started_at, code=1, exchange="timed-out")
        if one.left_at is None and ABORTED in _stacks_of(run, one.rank)
        else one
        for one in left
    ]


def why_of(culprit: RankLeft | Awaited, run: RunDir) -> Text:
    """Return why the run ended."""
    if isinstance(culprit, Awaited):
        return _waited_for(culprit, run)
    if culprit.left_at is None:
        return t(
            "rank {rank} (process {pid}) is gone without a word: it was killed, or crashed outside Python. The other ranks left; "
            "where they stood is in stacks/. Go on with: doctor run --resume RUN", rank=culprit.rank, pid=culprit.pid,
        )  # fmt: skip
    error = last_error(run, culprit.rank)
    if culprit.exchange:
        return t("{why}. Where each rank stood is in stacks/", why=error or "-")
    return t(
        "rank {rank} failed first, and the others left with it: {why}", rank=culprit.rank, why=error or "-"
    )


def _waited_for(one: Awaited, run: RunDir) -> Text:
    told: dict[str, str | int] = {"rank": one.rank, "pid": one.pid, "place": place_of(run, one.rank) or "?"}
    if one.standing.is_stopped:
        return t("all waited for rank {rank} (process {pid}), which was stopped at {place} (SIGSTOP, a debugger, or its container was paused). "
                 "The stacks of all ranks are in stacks/. Go on with: doctor run --resume RUN", **told)  # fmt: skip
    if one.standing.is_stuck:
        return t("all waited for rank {rank} (process {pid}), which is stuck in the kernel ({function}) at {place}: a disk, a network disk or a "
                 "driver does not answer (dmesg). The stacks of all ranks are in stacks/. Go on with: doctor run --resume RUN",
                 **told, function=one.standing.waits_in or "?")  # fmt: skip
    return t("all waited for rank {rank} (process {pid}), which did not come: it was at {place}. The stacks of all ranks are in stacks/. "
             "Go on with: doctor run --resume RUN", **told)  # fmt: skip


def place_of(run: RunDir, rank: int) -> str:
    """Return where a rank stood when it last wrote its stack; empty: it wrote none."""
    return where_in(_stacks_of(run, rank))


def _stacks_of(run: RunDir, rank: int) -> str:
    try:
        return stack_file(run.path, rank).read_text("utf-8", "replace")
    except OSError:
        return ""


def last_error(run: RunDir, rank: int) -> str:
    """Return what a rank said of its own end; empty: nothing."""
    error = ""
    for event, _ in read_events(run.events / f"trainer-{rank}.jsonl"):
        if event.kind in ("run-started", "run-finished"):
            error = str(event.data.get("error") or "")
    return error


def agree(run: RunDir, first: RankLeft, culprit: RankLeft) -> bool:
    """Return whether the first rank of this machine ended, and said so, for the culprit's reason: all do that agreed to end."""
    if culprit.left_at is None or first.rank == culprit.rank:
        return culprit.left_at is not None
    same = first.code == culprit.code and not first.exchange
    return same and last_error(run, first.rank) == last_error(run, culprit.rank)
