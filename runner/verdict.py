"""Where a run's time goes, in one sentence, judged from three independent sources. Pure.

The trainer's own step clock, Python stacks, and GPU and host samples. A cause is named when a source shows it plainly and no
other contradicts; where sources disagree or are missing the answer is "cannot tell", with the reason.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from runner.text import Text, t
from runner.verdict_case import HUNG_CPU_CORES, HUNG_SAME_PLACE, Case, Verdict, percent, unknown
from runner.verdict_device import copying, cpu_work, gpu_work, throttled
from runner.verdict_host import cpu_limit, data, evaluating, logging, saving
from runner.verdict_ranks import ranks, slow_rank
from runner.window import Window

__all__ = ["Case", "Verdict", "device_is_gpu", "is_worth_saying", "judge", "verdict_of"]


def judge(case: Case) -> Verdict:
    """Return where the time goes. Order matters: what holds up everything else is asked first."""
    if case.silent_s is not None:
        return msgspec.structs.replace(_silent(case), sources=case.sources())
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
        parts = sorted(case.window.split_s.items(), key=lambda pair: -pair[1])[:3]
        shown = ", ".join(f"{name} {percent(seconds / case.window.span_s)} %" for name, seconds in parts)
        return unknown(t("cannot tell: nothing stands out ({parts})", parts=shown))
    return unknown(
        t("cannot tell: the trainer tells no step times, and what was seen beside it shows no single cause")
    )


# -- silence
def _silent(case: Case) -> Verdict:
    window, quiet = case.window, round(case.silent_s or 0.0)
    if not case.has_stacks:
        return unknown(t("silent for {seconds} s; cannot tell why: no stacks were seen since", seconds=quiet))
    for phase, kind, words in (
        ("ranks", "ranks", t("silent for {seconds} s: waiting for other ranks", seconds=quiet)),
        ("saving", "saving", t("silent for {seconds} s: saving", seconds=quiet)),
        ("evaluation", "evaluating", t("silent for {seconds} s: evaluating", seconds=quiet)),
    ):
        if window.phase_share(phase) >= HUNG_SAME_PLACE:
            return Verdict(kind=kind, sentence=words, evidence=tuple(_standing(window)))
    place, looks = max(window.top.items(), key=lambda item: item[1], default=(None, 0.0))
    cores = window.cpu_cores.value
    if (
        place is None
        or looks < HUNG_SAME_PLACE * window.stack_samples
        or cores is None
        or cores > HUNG_CPU_CORES
    ):
        return unknown(
            t("silent for {seconds} s, yet it moves or computes; cannot tell whether it hangs", seconds=quiet)
        )
    return Verdict(
        kind="hung",
        sentence=t("hung: silent for {seconds} s, at {place} all the time", seconds=quiet,
                   place=f"{place[0]} ({place[1]}:{place[2]})"),
        evidence=tuple(_standing(window)),
        advice=t("the whole stack is in the run's folder stacks/; stop the run and resume it once the cause is gone"),
    )  # fmt: skip


def _standing(window: Window) -> list[Text]:
    own = window.place("data", "worker", "ranks", "saving", "evaluation", "other")
    return [t("in your code: {place}", place=f"{own[0]} ({own[1]}:{own[2]})")] if own else []


# -- evidence
def _evidence(case: Case) -> list[Text]:
    window, out = case.window, []
    if case.has_clock:
        parts = sorted(window.split_s.items(), key=lambda pair: -pair[1])[:4]
        shown = ", ".join(f"{name} {percent(seconds / window.span_s)} %" for name, seconds in parts)
        out.append(t("step clock, {steps} {steps:step|steps}: {parts}", steps=window.steps, parts=shown))
    if case.has_stacks:
        phases = sorted(window.phases.items(), key=lambda pair: -pair[1])[:4]
        shown = ", ".join(f"{name} {percent(weight / window.stack_samples)} %" for name, weight in phases)
        out.append(
            t(
                "stacks, {looks} {looks:look|looks}: {parts}",
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


# -- of a run
def verdict_of(state: Any, status: str, now: float) -> Verdict:
    """Return the verdict on a :class:`runner.state.RunState`: of its newest minute, or of the whole where it is over."""
    on_gpu, told = device_is_gpu(state.started), state.started.get("world_size")
    together = told if isinstance(told, int) else None
    if status == "stalled" and state.last_trainer_t is not None:
        silent_s = now - state.last_trainer_t
        return judge(
            Case(
                window=state.windows.since(state.last_trainer_t + 5),
                on_gpu=on_gpu,
                silent_s=silent_s,
                ranks_told=together,
            )
        )
    over = status not in ("running", "starting", "stalled")
    window = state.windows.whole if over else state.windows.recent()
    verdict = judge(Case(window=window, on_gpu=on_gpu, ranks_told=together))
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
