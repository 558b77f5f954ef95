"""Where a run's time goes, in one sentence, judged from three independent sources. Pure.

The trainer's own step clock, Python stacks, and GPU and host samples. A cause is named when a source shows it plainly and no
other contradicts; where sources disagree or are missing the answer is "cannot tell", with the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from runner.part_names import part_name
from runner.text import Text, t
from runner.verdict_case import Case, Verdict, percent, unknown
from runner.verdict_device import copying, cpu_work, gpu_work, throttled
from runner.verdict_host import cpu_limit, data, evaluating, logging, saving
from runner.verdict_ranks import ranks, slow_rank
from runner.verdict_silence import is_paused, is_still, silent, still

__all__ = ["Case", "Verdict", "device_is_gpu", "is_worth_saying", "judge", "verdict_of"]


def judge(case: Case) -> Verdict:
    """Return where the time goes. Order matters: what holds up everything else is asked first."""
    if case.silent_s is not None:
        return msgspec.structs.replace(silent(case), sources=case.sources())
    early = _too_early(case)
    rules: tuple[Callable[[Case], Verdict | None], ...] = (
        evaluating, saving, ranks, cpu_limit, data, logging, copying, throttled, gpu_work, cpu_work,
    )  # fmt: skip
    found = (
        early
        or next((verdict for rule in rules if (verdict := rule(case))), None)
        or _nothing_stands_out(case)
    )
    evidence = found.evidence + tuple(_evidence(case))
    return msgspec.structs.replace(found, evidence=evidence, sources=case.sources())


def _too_early(case: Case) -> Verdict | None:
    window = case.window
    if not case.has_clock and window.split_s:
        return unknown(t("cannot tell yet: only {steps} {steps:step|steps} so far", steps=window.steps))
    if case.sources() in ((), ("host",)) and not window.evaluation_s:
        return unknown(t("cannot tell: neither the trainer's step clock nor stacks nor a GPU was seen"))
    return None


def _nothing_stands_out(case: Case) -> Verdict:
    if case.has_clock:
        shown = _shares(case.window.split_s, case.window.span_s, 3)
        return unknown(t("cannot tell: nothing stands out ({parts!t})", parts=shown))
    return unknown(
        t("cannot tell: the trainer tells no step times, and what was seen beside it shows no single cause")
    )


# -- evidence
def _evidence(case: Case) -> list[Text]:
    window, out = case.window, []
    if case.has_clock:
        shown = _shares(window.split_s, window.span_s)
        out.append(t("step clock, {steps} {steps:step|steps}: {parts!t}", steps=window.steps, parts=shown))
    if case.has_stacks:
        shown = _shares(window.phases, window.stack_samples)
        out.append(
            t(
                "stacks, {looks} {looks:look|looks}: {parts!t}",
                looks=round(window.stack_samples),
                parts=shown or "-",
            )
        )
    if case.gpu_pct is not None:
        out.append(t("GPU busy {share} % of the time", share=round(case.gpu_pct)))
    if case.cpu_share is not None:
        out.append(t("CPU: {used} of {cores} {cores:core|cores}", used=round(window.cpu_cores.value or 0.0, 1),
                     cores=round(window.cores_usable or 0.0, 1)))  # fmt: skip
    return out


def _shares(weights: Mapping[str, float], whole: float, most: int = 4) -> str:
    """Return the largest parts as a list of names, each with its share."""
    largest = sorted(weights.items(), key=lambda pair: -pair[1])[:most]
    return ", ".join(f"{part_name(name)} {percent(weight / whole)} %" for name, weight in largest)


# -- of a run
def verdict_of(state: Any, status: str, now: float) -> Verdict:
    """Return the verdict on a :class:`runner.state.RunState`: of its newest minute, or of the whole where it is over."""
    told = state.started.get("world_size")
    case = Case(
        window=state.windows.whole,
        on_gpu=device_is_gpu(state.started),
        ranks_told=told if isinstance(told, int) else None,
        standing=state.standing,
    )
    if status == "stalled" and state.last_trainer_t is not None:
        window = state.windows.since(state.last_trainer_t + 5)
        return judge(msgspec.structs.replace(case, window=window, silent_s=now - state.last_trainer_t))
    if status not in ("running", "starting"):
        return _with_slow_rank(judge(case), state)
    if not state.last and (found := _standing_still(case, state)) is not None:
        return found
    if (found := _stopped_by_signal(case, state, now)) is not None:
        return found
    return _with_slow_rank(judge(msgspec.structs.replace(case, window=state.windows.recent())), state)


def _stopped_by_signal(case: Case, state: Any, now: float) -> Verdict | None:
    """Return that a signal has stopped one of the run's processes, which is known before a silence is long; None: none has."""
    if state.last_trainer_t is None:
        return None
    window = state.windows.since(state.last_trainer_t + 5)
    if not is_paused(window):
        return None
    return judge(msgspec.structs.replace(case, window=window, silent_s=now - state.last_trainer_t))


def _standing_still(case: Case, state: Any) -> Verdict | None:
    """Return what is said of a program that tells no steps; None: it goes on, or nobody knows."""
    seconds, window = state.windows.still(is_still)
    return still(msgspec.structs.replace(case, window=window), seconds)


def _with_slow_rank(verdict: Verdict, state: Any) -> Verdict:
    slow = state.ranks.slowest() if verdict.kind == "ranks" else None
    return (
        verdict
        if slow is None
        else msgspec.structs.replace(verdict, evidence=(*verdict.evidence, slow_rank(slow)))
    )


def is_worth_saying(verdict: Verdict, status: str, step: int) -> bool:
    """Return whether people want to read it: that a run over long since cannot be judged helps nobody."""
    return verdict.is_known or status == "stalled" or (status == "running" and step > 0)


def device_is_gpu(started: dict[str, Any]) -> bool | None:
    device = started.get("device")
    return None if not device else not str(device).startswith("cpu")
