"""Verdicts on waiting for the other processes of one training (data parallel, sharded). Pure.

Where the wait shows depends on the backend. A collective that blocks (gloo, barriers, objects) is a Python frame, or time
in ``backward`` while the CPU sleeps. NCCL's runs on the card and spins there: the card counts as busy and draws little,
and Python stands wherever it next needs a result. A busy card that draws little alone is not enough: small kernels look the
same, so a second witness must speak of the exchange itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from runner.text import Text, t
from runner.verdict_case import (
    DATA_SHARE,
    EXCHANGE_SHARE,
    GPU_BUSY_PCT,
    MEMORY_ACTIVITY_PCT,
    POWER_LOW,
    RANKS_SHARE,
    Case,
    Verdict,
    disagree,
    percent,
)

POWER_HIGH = 0.6
"""A card that draws this share of its limit computes; one that waits in a collective cannot."""
BACKWARD_SHARE = 0.6
BACKWARD_TIMES_FORWARD = 6.0
"""A backward pass computes about twice what the forward pass does, with recomputing three times: the rest of six is a wait."""
MORE_THAN_WHOLE = 1.1
"""Two shares of one time that add up to more contradict each other."""
CPU_SLEEPS_CORES = 0.6
"""Cores' worth of CPU below which a process that computes on the CPU mostly sleeps."""


def ranks(case: Case) -> Verdict | None:
    """Return a verdict where other ranks are waited for, or where the sources disagree on just that."""
    seen = case.window.phase_share("ranks") if case.has_stacks else 0.0
    if seen >= RANKS_SHARE:
        return _against(case, seen) or _waits(
            t("waiting for other ranks in {share} % of looks", share=percent(seen)), ()
        )
    if _card_spins(case):
        return _spinning(case)
    return _sleeping(case)


def _against(case: Case, seen: float) -> Verdict | None:
    """Return what speaks against a wait that the stacks show: a card at work, or a clock that has no room for it."""
    power = case.window.power_share.value if case.gpu_pct is not None else None
    if (case.gpu_pct or 0.0) >= GPU_BUSY_PCT and power is not None and power >= POWER_HIGH:
        return disagree(
            t("stacks see a wait for other ranks in {share} % of looks", share=percent(seen)),
            t(
                "the GPU is busy and draws {power} % of its power limit: it computes meanwhile",
                power=percent(power),
            ),
        )
    data = case.window.split_share("data") if case.has_clock else 0.0
    if data >= DATA_SHARE and data + seen > MORE_THAN_WHOLE:
        return disagree(
            t("stacks see a wait for other ranks in {share} % of looks", share=percent(seen)),
            t("the step clock gives {share} % to waiting for data", share=percent(data)),
        )
    return None


def _card_spins(case: Case) -> bool:
    """Return whether the card counts as busy, draws little and hardly touches its memory."""
    power, memory = case.window.power_share.value, case.window.memory_activity_pct.value
    is_busy = case.gpu_pct is not None and case.gpu_pct >= GPU_BUSY_PCT
    return (
        is_busy
        and power is not None
        and power < POWER_LOW
        and (memory is None or memory < MEMORY_ACTIVITY_PCT)
    )


def _spinning(case: Case) -> Verdict | None:
    exchange = case.window.exchange_share() if case.has_stacks else 0.0
    times = _backward_times_forward(case)
    witnesses = []
    if exchange >= EXCHANGE_SHARE:
        witnesses.append(
            t("stacks see a collective (torch.distributed) in {share} % of looks", share=percent(exchange))
        )
    if case.is_distributed and times is not None:
        witnesses.append(_long_backward(times))
    if not witnesses:
        return None
    power = percent(case.window.power_share.value or 0.0)
    sentence = t("waiting for other ranks: the GPU is busy {share} % of the time and draws only {power} % of its power limit, as in a collective",
                 share=round(case.gpu_pct or 0.0), power=power)  # fmt: skip
    return _waits(sentence, tuple(witnesses))


def _sleeping(case: Case) -> Verdict | None:
    """Return a verdict on a run on the CPU whose backward pass is mostly a wait: gloo sleeps there."""
    cores, times = case.window.cpu_cores.value, _backward_times_forward(case)
    if case.on_gpu is not False or not case.is_distributed or times is None or cores is None:
        return None
    if cores >= CPU_SLEEPS_CORES:
        return None
    sentence = t("waiting for other ranks: {share} % of the time is in backward, and this one uses {cores} {cores:core|cores} of CPU meanwhile",
                 share=percent(case.window.split_share("backward")), cores=round(cores, 1))  # fmt: skip
    return _waits(sentence, (_long_backward(times),))


def _backward_times_forward(case: Case) -> float | None:
    """Return how many times forward's time backward takes, where that is far more than computing explains."""
    if not case.has_clock:
        return None
    forward, backward = case.window.split_share("forward"), case.window.split_share("backward")
    if backward < BACKWARD_SHARE or backward < BACKWARD_TIMES_FORWARD * forward:
        return None
    return backward / max(forward, 0.01)


def _long_backward(times: float) -> Text:
    return t("backward takes {times} times as long as forward (2 to 3 is usual): gradients are exchanged in it",
             times=round(times))  # fmt: skip


def slow_rank(row: Mapping[str, Any]) -> Text:
    """Return which rank the others wait for, from :meth:`runner.rank_paces.RankPaces.slowest`."""
    own, middle = round(row["own_seconds"], 3), round(row["middle_own_seconds"], 3)
    return t("rank {rank} is the slowest: what it does by itself ({parts}) takes {own} s a step, the others' about {middle} s",
             rank=row["rank"], parts=", ".join(row["own_parts"]), own=own, middle=middle)  # fmt: skip


def _waits(sentence: Text, evidence: tuple[Text, ...]) -> Verdict:
    advice = t("look at the slowest rank: its stacks say what it does meanwhile (doctor stacks PID)")
    return Verdict(kind="ranks", sentence=sentence, evidence=evidence, advice=advice)
