"""Verdicts on a trainer that says nothing: it hangs, it is paused, it waits for others, or it cannot be told. Pure.

Calling a long compilation, evaluation, download or save a hang costs a run its life, so a hang is what nothing contradicts:
one place for a long time, no CPU, no GPU, no disk, no network. Everything else that is silent is said to be that.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from runner.phases import is_network
from runner.text import Text, t
from runner.verdict_case import HUNG_CPU_CORES, HUNG_SAME_PLACE, Case, Verdict, unknown
from runner.window import Window

HUNG_AFTER_S = 120.0
"""Shorter silences are said, with the place, and not called a hang."""
HUNG_AFTER_SLOW_S = 300.0
"""Where it waits for a file system or for the network: a server that comes back lets it go on."""
STILL_AFTER_S = 300.0
"""Of a program that tells no steps, so its silence says nothing."""
STILL_CPU_CORES = 0.05
GPU_WORKS_PCT = 5.0
DISK_MOVES = 4e3
"""Bytes a second, of the run's own processes."""
NETWORK_MOVES = 2e5
"""Bytes a second, of the container: somebody who watches over SSH takes 30 kB."""
MIN_HOST_LOOKS = 5
ASKS_AFTER_S = 20.0
# read(/dev/pts/0)
_KEYBOARD = ("read(/dev/pts/", "read(/dev/tty")


def silent(case: Case) -> Verdict:
    """Return what a trainer is doing that was heard to tell steps and tells none any more."""
    window, quiet = case.window, round(case.silent_s or 0.0)
    if is_paused(window):
        return _paused(case, quiet)
    if (asks := _asks(case, quiet)) is not None:
        return asks
    if not case.has_stacks:
        return _unseen(case, quiet)
    known = _known_phase(case, quiet)
    if known is not None:
        return known
    if (moves := _moves(case)) is not None:
        return unknown(moves, (*_standing(case),))
    place = window.standing(HUNG_SAME_PLACE)
    if place is None or window.cpu_cores.value is None:
        return unknown(
            t("silent for {seconds!d}, yet it moves or computes; cannot tell whether it hangs", seconds=quiet)
        )
    after_s = HUNG_AFTER_SLOW_S if _is_blocked(window) or is_network(place[1]) else HUNG_AFTER_S
    if quiet < after_s:
        words = t("silent for {seconds!d}, at {place}, where nothing moves; too short a time to call it hung",
                  seconds=quiet, place=_shown(place))  # fmt: skip
        return unknown(words, (*_standing(case),))
    return _hung(case, quiet, place)


def still(case: Case, seconds: float) -> Verdict | None:
    """Return what a program does that tells no steps and has stood at one place for ``seconds``; None: nothing to say."""
    window, rounded = case.window, round(seconds)
    if is_paused(window):
        return _paused(case, rounded)
    if (asks := _asks(case, rounded)) is not None:
        return asks
    place = window.standing(HUNG_SAME_PLACE)
    if seconds < STILL_AFTER_S or not case.has_stacks or place is None or _moves(case) is not None:
        return None
    if _is_blocked(window):
        return _hung(case, rounded, place)
    words = t("stands still for {seconds!d} at {place}: no CPU, disk or network is used. It tells no steps, so it may wait on purpose",
              seconds=rounded, place=_shown(place))  # fmt: skip
    return Verdict(kind="still", sentence=words, evidence=tuple(_standing(case)))


def is_still(window: Window) -> bool:
    """Return whether nothing in a span of some seconds contradicts that a program stands still."""
    cores = window.cpu_cores.value
    return (
        (window.cpu_cores.count > 0 or window.stack_samples > 0)
        and (cores or 0.0) <= STILL_CPU_CORES
        and (not window.stack_samples or window.standing(HUNG_SAME_PLACE) is not None)
    )


def is_paused(window: Window) -> bool:
    return window.paused.count >= MIN_HOST_LOOKS and (window.paused.value or 0.0) >= HUNG_SAME_PLACE


def _is_blocked(window: Window) -> bool:
    return window.blocked.count >= MIN_HOST_LOOKS and (window.blocked.value or 0.0) >= HUNG_SAME_PLACE


def _paused(case: Case, quiet: int) -> Verdict:
    return Verdict(
        kind="hung",
        sentence=t("paused for {seconds!d}: a signal has stopped the process (SIGSTOP, or Ctrl-Z)", seconds=quiet),
        evidence=tuple(_standing(case)),
        advice=t("let it go on with `kill -CONT PID`, for each of its processes in state T (`ps -o pid,stat,args`)"),
    )  # fmt: skip


def _asks(case: Case, quiet: int) -> Verdict | None:
    """Return that it waits for somebody to type, where one of its processes reads from a terminal; None: none does."""
    asking = next(
        (wait for wait in _waits(case.standing) if str(wait.get("call")).startswith(_KEYBOARD)), None
    )
    if asking is None or quiet < ASKS_AFTER_S or (case.window.cpu_cores.value or 0.0) > STILL_CPU_CORES:
        return None
    own = case.window.place("data", "worker", "ranks", "saving", "evaluation", "other")
    place = _shown(own[:3]) if own else str(asking["call"])
    return Verdict(
        kind="still",
        sentence=t("has waited for the keyboard for {seconds!d}, at {place}", seconds=quiet, place=place),
        evidence=tuple(_standing(case)),
        advice=t(
            "answer it in its terminal; or take the question out: a login, `trust_remote_code`, a breakpoint()"
        ),
    )


def _unseen(case: Case, quiet: int) -> Verdict:
    """Without looks from outside the trainer's own dumps are what there is: they name a place and prove no standstill."""
    told = case.standing.get("place")
    if not isinstance(told, str) or not told:
        return unknown(t("silent for {seconds!d}; cannot tell why: no stacks were seen since", seconds=quiet))
    words = t("silent for {seconds!d}; its own dumps have it at {place}, and nobody could look from outside", seconds=quiet, place=told)  # fmt: skip
    return unknown(words, (*_standing(case),))


def _known_phase(case: Case, quiet: int) -> Verdict | None:
    for phase, kind, words in (
        ("ranks", "ranks", t("silent for {seconds!d}: waiting for other ranks", seconds=quiet)),
        ("saving", "saving", t("silent for {seconds!d}: saving", seconds=quiet)),
        ("evaluation", "evaluating", t("silent for {seconds!d}: evaluating", seconds=quiet)),
    ):
        if case.window.phase_share(phase) >= HUNG_SAME_PLACE:
            return Verdict(kind=kind, sentence=words, evidence=tuple(_standing(case)))
    return None


def _moves(case: Case) -> Text | None:
    """Return what contradicts a standstill; None: nothing was seen to move."""
    window, quiet = case.window, round(case.silent_s or 0.0)
    disk, network = window.disk_bytes_per_s.value or 0.0, window.network_bytes_per_s.value or 0.0
    if (window.cpu_cores.value or 0.0) > HUNG_CPU_CORES:
        return t(
            "silent for {seconds!d}, yet it moves or computes; cannot tell whether it hangs", seconds=quiet
        )
    if case.gpu_pct is not None and case.gpu_pct >= GPU_WORKS_PCT:
        return t("silent for {seconds!d}, yet the GPU is busy {share} % of the time; cannot tell whether it hangs",
                 seconds=quiet, share=round(case.gpu_pct))  # fmt: skip
    if disk >= DISK_MOVES:
        return t("silent for {seconds!d}, yet it reads or writes {size} kB/s; cannot tell whether it hangs",
                 seconds=quiet, size=round(disk / 1e3))  # fmt: skip
    if network >= NETWORK_MOVES:
        return t("silent for {seconds!d}, yet the network moves {size} kB/s; cannot tell whether it hangs",
                 seconds=quiet, size=round(network / 1e3))  # fmt: skip
    return None


def _hung(case: Case, quiet: int, place: tuple[str, str, int]) -> Verdict:
    window = case.window
    worker = window.place("worker")
    if _is_blocked(window):
        sentence = t("hung: for {seconds!d} in a read or write that does not return (state D), at {place}",
                     seconds=quiet, place=_shown(place))  # fmt: skip
        advice = t(
            "a disk or a network file system does not answer (`dmesg`, `df`); such a process ends only when it does"
        )
    elif window.phase_share("data") >= HUNG_SAME_PLACE and worker is not None:
        sentence = t("hung: silent for {seconds!d}, waiting for a loader worker that stands at {place}",
                     seconds=quiet, place=_shown(worker[:3]))  # fmt: skip
        advice = _stop_advice()
    else:
        sentence = t(
            "hung: silent for {seconds!d}, at {place} all the time", seconds=quiet, place=_shown(place)
        )
        advice = _stop_advice()
    return Verdict(kind="hung", sentence=sentence, evidence=tuple(_standing(case)), advice=advice)


def _stop_advice() -> Text:
    return t(
        "the whole stack is in the run's folder stacks/; stop the run and resume it once the cause is gone"
    )


def _shown(place: tuple[str, str, int]) -> str:
    return f"{place[0]} ({place[1]}:{place[2]})"


def _standing(case: Case) -> Iterator[Text]:
    """Yield where it stands: the user's own line, what the kernel says of each process, and the file with all of it."""
    own = case.window.place("data", "worker", "ranks", "saving", "evaluation", "other")
    if own:
        yield t("in your code: {place}", place=_shown(own[:3]))
    for wait in _waits(case.standing):
        yield t("process {pid}: {call}, state {state}", pid=str(wait.get("pid")), call=str(wait.get("call") or "?"),
                state=str(wait.get("state") or "?"))  # fmt: skip
    if case.standing.get("file"):
        yield t("the whole stack: {path}", path=str(case.standing["file"]))


def _waits(standing: dict[str, Any]) -> list[dict[str, Any]]:
    waits = standing.get("waits")
    return [wait for wait in waits[:4] if isinstance(wait, dict)] if isinstance(waits, list) else []
