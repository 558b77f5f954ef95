"""Verdicts on the step itself: copying, a throttled or busy or idle card, the CPU's computing. Pure.

Each function returns None where it has nothing to say.
"""

from __future__ import annotations

from runner.text import t
from runner.verdict_case import (
    COMPUTE_SHARE,
    CONTRADICTED_AT,
    CPU_FULL,
    DATA_SHARE,
    EXCHANGE_SHARE,
    GPU_BUSY_PCT,
    GPU_IDLE_PCT,
    MEMORY_ACTIVITY_PCT,
    POWER_LOW,
    SLOWDOWNS,
    THROTTLED_LOOKS,
    Case,
    Verdict,
    disagree,
    percent,
    unknown,
)


def copying(case: Case) -> Verdict | None:
    told = case.window.split_share("copy", "h2d") if case.has_clock else 0.0
    if told < DATA_SHARE or case.on_gpu is False:
        return None
    if case.gpu_pct is None:
        return unknown(
            t(
                "cannot tell: copying to the GPU takes {share} %, and the GPU could not be read",
                share=percent(told),
            )
        )
    return Verdict(
        kind="copying",
        sentence=t("copying to the GPU takes {share} % of the time", share=percent(told)),
        advice=t("pin the loader's memory (pin_memory=True) and copy with non_blocking=True"),
    )


def throttled(case: Case) -> Verdict | None:
    if not case.has_gpu or (case.gpu_pct or 0.0) < GPU_IDLE_PCT:
        return None  # a card that waits may be as slow as it likes
    looks, window = case.window.gpu_looks, case.window
    reason, count = max(
        ((name, window.throttled.get(name, 0)) for name in SLOWDOWNS), key=lambda pair: pair[1]
    )
    if count < THROTTLED_LOOKS * looks:
        return None
    return Verdict(
        kind="throttled",
        sentence=t(
            "the GPU is throttled in {share} % of looks: {reason}",
            share=percent(count / looks),
            reason=reason,
        ),
        advice=t("nothing in the script helps: tell the provider, or move to another machine"),
    )


def gpu_work(case: Case) -> Verdict | None:
    utilization = case.gpu_pct
    if utilization is None or case.on_gpu is False:
        return None
    if utilization >= GPU_BUSY_PCT:
        return _busy_gpu(case, utilization)
    if utilization < GPU_IDLE_PCT:
        return _idle_gpu(case, utilization)
    return None


def _busy_gpu(case: Case, utilization: float) -> Verdict:
    power, memory = case.window.power_share.value, case.window.memory_activity_pct.value
    if case.has_clock and case.compute_share < 1 - COMPUTE_SHARE:
        return disagree(
            t("the GPU is busy {share} % of the time", share=round(utilization)),
            t("the step clock gives {share} % to computing", share=percent(case.compute_share)),
        )
    if power is not None and power < POWER_LOW and (memory is None or memory < MEMORY_ACTIVITY_PCT):
        return unknown(
            t("cannot tell: the GPU counts as busy {share} % of the time but draws {power} % of its power limit "
              "(small kernels, or waiting for other cards)", share=round(utilization), power=percent(power))
        )  # fmt: skip
    if memory is not None and memory >= MEMORY_ACTIVITY_PCT:
        return Verdict(
            kind="memory",
            sentence=t(
                "the GPU's memory sets the speed: it is read or written {share} % of the time",
                share=round(memory),
            ),
            advice=t(
                "lower precision (bf16), fused kernels (optimizer fused=True, torch.compile, SDPA) move fewer bytes"
            ),
        )
    if power is None and not case.has_clock:
        return unknown(
            t("cannot tell: the GPU counts as busy, and neither its power nor the step clock was seen")
        )
    return Verdict(
        kind="compute",
        sentence=t(
            "the GPU's computing sets the speed: it is busy {share} % of the time", share=round(utilization)
        ),
        advice=t("that is how it should be; faster still: lower precision, less padding, a larger card"),
    )


def _idle_gpu(case: Case, utilization: float) -> Verdict:
    seen = case.window.phase_share("forward", "backward", "optimizer") if case.has_stacks else None
    busy = round(utilization)
    if not case.has_clock:
        return unknown(
            t(
                "cannot tell why the GPU is busy only {share} % of the time: the trainer tells no step times",
                share=busy,
            )
        )
    if case.compute_share < COMPUTE_SHARE:
        return unknown(
            t(
                "cannot tell why the GPU is busy only {share} % of the time: the step clock shows no single cause",
                share=busy,
            )
        )
    exchange = case.window.exchange_share() if case.has_stacks else 0.0
    if exchange >= EXCHANGE_SHARE:
        return unknown(
            t("cannot tell why the GPU is busy only {share} % of the time: a collective is seen in {exchange} % of looks, which may be a wait for other ranks or the exchange itself",
              share=busy, exchange=percent(exchange))
        )  # fmt: skip
    if seen is not None and seen < CONTRADICTED_AT * case.compute_share:
        return disagree(
            t("the step clock gives {share} % to computing", share=percent(case.compute_share)),
            t("stacks see it in {share} % of looks", share=percent(seen)),
        )
    return Verdict(
        kind="launch",
        sentence=t("launching kernels sets the speed: the GPU is busy only {share} % of the time while the step computes",
                   share=round(utilization)),
        advice=t("larger batches, torch.compile, a fused optimizer; no .item(), .cpu() or print of a tensor in each step"),
    )  # fmt: skip


def cpu_work(case: Case) -> Verdict | None:
    if case.on_gpu is not False or not case.has_clock or case.compute_share < COMPUTE_SHARE:
        return None
    if case.cpu_share is None:
        return unknown(t("cannot tell: the steps compute, and how busy the cores are could not be read"))
    if case.cpu_share < CPU_FULL:
        return unknown(
            t("cannot tell: the steps compute, and only {used} of {cores} {cores:core is|cores are} in use",
              used=round(case.window.cpu_cores.value or 0.0, 1), cores=round(case.window.cores_usable or 0.0, 1))
        )  # fmt: skip
    return Verdict(
        kind="compute",
        sentence=t(
            "the CPU's computing sets the speed: {share} % of the usable cores are busy",
            share=percent(min(1.0, case.cpu_share)),
        ),
        advice=t("a GPU, a smaller model, bf16 where the CPU has it, or less padding"),
    )
