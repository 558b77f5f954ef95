"""Verdicts on what is not the step's own computing: evaluating, saving, the container's CPU, data, logging. Pure.

Each function returns None where it has nothing to say.
"""

from __future__ import annotations

from runner.text import Text, t
from runner.verdict_case import (
    CGROUP_THROTTLED_PCT,
    COMPUTE_SHARE,
    CONTRADICTED_AT,
    DATA_SHARE,
    DATA_SHARE_STACKS_ALONE,
    GPU_BUSY_PCT,
    GPU_IDLE_PCT,
    MIN_GPU_LOOKS,
    SIDE_SHARE,
    WORKER_SHARE,
    Case,
    Verdict,
    disagree,
    percent,
    unknown,
)


def evaluating(case: Case) -> Verdict | None:
    window = case.window
    told = min(1.0, window.evaluation_s / window.span_s) if window.span_s else 0.0
    seen = window.phase_share("evaluation") if case.has_stacks else 0.0
    if told >= SIDE_SHARE:
        share = told
    elif not case.has_clock and not window.evaluation_s and seen >= DATA_SHARE_STACKS_ALONE:
        share = seen
    else:
        return None
    return Verdict(
        kind="evaluating",
        sentence=t("evaluating takes {share} % of the time", share=percent(share)),
        advice=t(
            "evaluate less often, or on a smaller held-out part (train.evaluate_every; eval_steps in Trainer)"
        ),
    )


def saving(case: Case) -> Verdict | None:
    window = case.window
    told = min(1.0, window.saving_s / window.span_s) if window.span_s else 0.0
    seen = window.phase_share("saving") if case.has_stacks else None
    if seen is None or seen < SIDE_SHARE:  # a save in the background takes its seconds and holds nothing up
        return None
    if case.has_clock and told < CONTRADICTED_AT * seen and case.compute_share > COMPUTE_SHARE:
        return disagree(
            t("stacks see saving in {share} % of looks", share=percent(seen)),
            t("the step clock gives {share} % to computing", share=percent(case.compute_share)),
        )
    return Verdict(
        kind="saving",
        sentence=t("saving takes {share} % of the time", share=percent(seen)),
        advice=t("save less often, or onto a faster disk (not a network disk)"),
    )


def cpu_limit(case: Case) -> Verdict | None:
    stopped = case.window.cgroup_throttled_pct
    if stopped.count < MIN_GPU_LOOKS or (stopped.value or 0.0) < CGROUP_THROTTLED_PCT:
        return None
    if case.gpu_pct is not None and case.gpu_pct >= GPU_IDLE_PCT:
        return None  # the card is kept busy all the same
    if case.on_gpu is not False and case.gpu_pct is None:
        return unknown(
            t("cannot tell: the container is stopped at its CPU limit, and the GPU could not be read")
        )
    return Verdict(
        kind="cpu-limit",
        sentence=t(
            "the container's CPU limit stops it in {share} % of the scheduler's periods",
            share=round(stopped.value or 0.0),
        ),
        advice=t("use fewer loader workers and threads than the limit has cores, or rent more cores"),
    )


def data(case: Case) -> Verdict | None:
    told = case.window.split_share("data") if case.has_clock else None
    seen = case.window.phase_share("data") if case.has_stacks else None
    wanted = DATA_SHARE if told is not None else DATA_SHARE_STACKS_ALONE
    if max(told or 0.0, seen or 0.0) < wanted:
        return None
    against = _against_data(case, told, seen)
    if against is not None:
        return against
    share = seen or 0.0 if told is None else told
    if share < wanted:
        return None
    where = _data_place(case)
    return Verdict(
        kind="data",
        sentence=t("waiting for data {share} % of the time, at {place}", share=percent(share), place=where)
        if where
        else t("waiting for data {share} % of the time", share=percent(share)),
        advice=_data_advice(case, where),
    )


def _against_data(case: Case, told: float | None, seen: float | None) -> Verdict | None:
    if (
        told is None
        and seen is not None
        and case.window.steps == 0
        and case.gpu_pct is None
        and case.on_gpu is not False
    ):
        cores = case.window.cpu_cores.value
        if cores is None or (cores >= 0.5 and not case.window.has_workers):
            return unknown(t("cannot tell: only the stacks were seen"))
    if told is not None and seen is not None and min(told, seen) < CONTRADICTED_AT * max(told, seen):
        return disagree(
            t("the step clock gives {share} % to waiting for data", share=percent(told)),
            t("stacks see it in {share} % of looks", share=percent(seen)),
        )
    if case.gpu_pct is not None and case.gpu_pct >= GPU_BUSY_PCT:
        return disagree(
            t(
                "the trainer waits for data {share} % of the time",
                share=percent(max(told or 0.0, seen or 0.0)),
            ),
            t("the GPU is busy {share} % of it", share=round(case.gpu_pct)),
        )
    if told is not None and seen is None and case.gpu_pct is None and case.on_gpu is not False:
        return unknown(
            t("cannot tell: the step clock gives {share} % to waiting for data, and neither stacks nor GPU were seen",
              share=percent(told))
        )  # fmt: skip
    return None


def _data_place(case: Case) -> str:
    """Return where data is loaded: in the workers where they are busy, else where the trainer waits; "" unseen."""
    if not case.has_stacks:
        return ""
    place = case.window.place("worker")
    if place is None or place[3] < WORKER_SHARE:
        place = case.window.place("data") or place
    return f"{place[0]} ({place[1]}:{place[2]})" if place else ""


def _data_advice(case: Case, where: str) -> Text:
    if case.window.has_workers:
        return t("make what the workers do there cheaper (prepare it once beforehand), or add loader workers")
    if where:
        return t(
            "prepare that once beforehand, or load in workers: DataLoader(num_workers=N), N at most the usable cores"
        )
    return t("load in workers (DataLoader(num_workers=N)) from a local disk; `doctor stacks` shows the line")


def logging(case: Case) -> Verdict | None:
    told = case.window.split_share("logging") if case.has_clock else 0.0
    seen = case.window.phase_share("logging") if case.has_stacks else 0.0
    if max(told, seen) < SIDE_SHARE:
        return None
    place = case.window.place("logging")
    where = f"{place[0]} ({place[1]}:{place[2]})" if place else "?"
    return Verdict(
        kind="logging",
        sentence=t(
            "logging takes {share} % of the time, at {place}", share=percent(max(told, seen)), place=where
        ),
        advice=t("log every so many steps, and read the loss from the device only then"),
    )
