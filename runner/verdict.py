"""Where a run's time goes, in one sentence, judged from three independent sources. Pure.

The trainer's own step clock, Python stacks, and GPU and host samples. A cause is named when a source shows it plainly and no
other contradicts; where sources disagree or are missing the answer is "cannot tell", with the reason.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from runner.text import Text, t
from runner.window import Window

MIN_STEPS = 5
"""Fewer steps say nothing of a run: the first ones load kernels, fill queues and warm caches."""
MIN_SPAN_S = 3.0
MIN_STACK_LOOKS = 30
"""With 30 looks a true share of one half is seen as 0.32 to 0.68 (95 %): enough for halves, not for tenths."""
MIN_GPU_LOOKS = 5

DATA_SHARE = 0.25
"""A quarter of the time: removing it gains a third more speed. Prefetching loaders show under 5 %."""
DATA_SHARE_STACKS_ALONE = 0.6
"""Without the trainer's clock the stacks are the only witness: then most looks must agree."""
WORKER_SHARE = 0.25
"""Share of looks at the loader's workers at one place from which on that place is what they are busy with."""
SIDE_SHARE = 0.35
"""Evaluating, saving, logging: deliberate work, so it must take much before it is called the bottleneck."""
RANKS_SHARE = 0.4
CONTRADICTED_AT = 0.25
"""Two sources disagree when one sees less than a quarter of the share that the other sees."""
COMPUTE_SHARE = 0.6
GPU_BUSY_PCT = 85.0
GPU_IDLE_PCT = 60.0
"""Between the two a card is neither plainly busy nor plainly waiting. NVML's figure is the share of time with any kernel
on the card, so "idle" is certain and "busy" is not: see POWER_LOW."""
POWER_LOW = 0.4
"""A card that counts as busy and draws under 40 % of its limit runs small kernels, or spins in a collective."""
MEMORY_ACTIVITY_PCT = 60.0
"""Share of time in which device memory was read or written: dense matrix products stay well below."""
THROTTLED_LOOKS = 0.5
"""Share of looks with a thermal or hardware reason; single ones come with every load peak."""
SLOWDOWNS = ("hw-thermal", "sw-thermal", "power-brake", "hw-slowdown")
"""Reasons that mean something is wrong. A power cap alone is how cards normally run under full load."""
CGROUP_THROTTLED_PCT = 25.0
"""Share of scheduler periods in which the container was stopped at its CPU limit."""
CPU_FULL = 0.75
"""Share of the usable cores in use that counts as computing at full width."""
HUNG_SAME_PLACE = 0.95
"""A hung thread stands at one place; a long computation moves."""
HUNG_CPU_CORES = 0.2


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """One answer: ``kind`` for programs, ``sentence`` for people."""

    kind: str
    """data, launch, compute, memory, throttled, ranks, evaluating, saving, logging, copying, cpu-limit, hung, unknown."""
    sentence: Text
    evidence: tuple[Text, ...] = ()
    advice: Text | None = None
    sources: tuple[str, ...] = ()
    """Which of ``clock stacks gpu host`` had something to say."""

    @property
    def is_known(self) -> bool:
        return self.kind != "unknown"


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """What is judged."""

    window: Window
    on_gpu: bool | None = None
    """None: nobody said where it computes."""
    silent_s: float | None = None
    """Set where the trainer is called stalled: ``window`` then covers the silence."""

    # -- what each source can be asked
    @property
    def has_clock(self) -> bool:
        return (
            bool(self.window.split_s) and self.window.steps >= MIN_STEPS and self.window.span_s >= MIN_SPAN_S
        )

    @property
    def has_stacks(self) -> bool:
        return self.window.stack_samples >= MIN_STACK_LOOKS

    @property
    def has_gpu(self) -> bool:
        return self.on_gpu is not False and self.window.gpu_looks >= MIN_GPU_LOOKS

    @property
    def gpu_pct(self) -> float | None:
        return self.window.utilization_pct.value if self.has_gpu else None

    @property
    def cpu_share(self) -> float | None:
        cores, usable = self.window.cpu_cores.value, self.window.cores_usable
        return None if cores is None or not usable else cores / usable

    @property
    def compute_share(self) -> float:
        return self.window.split_share("forward", "backward", "optimizer")

    def sources(self) -> tuple[str, ...]:
        has = {"clock": self.has_clock, "stacks": self.has_stacks, "gpu": self.has_gpu,
               "host": self.window.cpu_cores.count > 0}  # fmt: skip
        return tuple(name for name, there in has.items() if there)


def judge(case: Case) -> Verdict:
    """Return where the time goes. Order matters: what holds up everything else is asked first."""
    if case.silent_s is not None:
        return msgspec.structs.replace(_silent(case), sources=case.sources())
    early = _too_early(case)
    rules: tuple[Callable[[Case], Verdict | None], ...] = (
        _evaluating, _saving, _ranks, _cpu_limit, _data, _logging, _copying, _throttled, _gpu_work, _cpu_work,
    )  # fmt: skip
    found = (
        early
        or next((verdict for rule in rules if (verdict := rule(case))), None)
        or _nothing_stands_out(case)
    )
    evidence = found.evidence + tuple(_evidence(case))
    return msgspec.structs.replace(found, evidence=evidence, sources=case.sources())


def unknown(why: Text) -> Verdict:
    return Verdict(kind="unknown", sentence=why)


def _percent(share: float) -> int:
    return round(100 * share)


def _too_early(case: Case) -> Verdict | None:
    window = case.window
    if not case.has_clock and window.split_s:
        return unknown(t("cannot tell yet: only {steps} {steps:step|steps} so far", steps=window.steps))
    if case.sources() in ((), ("host",)) and not window.evaluation_s:
        return unknown(t("cannot tell: neither the trainer's step clock nor stacks nor a GPU was seen"))
    return None


def _disagree(one: Text, other: Text) -> Verdict:
    return Verdict(kind="unknown", sentence=t("cannot tell: the sources disagree"), evidence=(one, other))


# -- what is not a step
def _evaluating(case: Case) -> Verdict | None:
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
        sentence=t("evaluating takes {share} % of the time", share=_percent(share)),
        advice=t(
            "evaluate less often, or on a smaller held-out part (train.evaluate_every; eval_steps in Trainer)"
        ),
    )


def _saving(case: Case) -> Verdict | None:
    window = case.window
    told = min(1.0, window.saving_s / window.span_s) if window.span_s else 0.0
    seen = window.phase_share("saving") if case.has_stacks else None
    if seen is None or seen < SIDE_SHARE:  # a save in the background takes its seconds and holds nothing up
        return None
    if case.has_clock and told < CONTRADICTED_AT * seen and case.compute_share > COMPUTE_SHARE:
        return _disagree(
            t("stacks see saving in {share} % of looks", share=_percent(seen)),
            t("the step clock gives {share} % to computing", share=_percent(case.compute_share)),
        )
    return Verdict(
        kind="saving",
        sentence=t("saving takes {share} % of the time", share=_percent(seen)),
        advice=t("save less often, or onto a faster disk (not a network disk)"),
    )


def _ranks(case: Case) -> Verdict | None:
    seen = case.window.phase_share("ranks") if case.has_stacks else 0.0
    if seen < RANKS_SHARE:
        return None
    return Verdict(
        kind="ranks",
        sentence=t("waiting for other ranks in {share} % of looks", share=_percent(seen)),
        advice=t("look at the slowest rank: its stacks say what it does meanwhile (doctor stacks PID)"),
    )


# -- the host
def _cpu_limit(case: Case) -> Verdict | None:
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


def _data(case: Case) -> Verdict | None:
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
        sentence=t("waiting for data {share} % of the time, at {place}", share=_percent(share), place=where)
        if where
        else t("waiting for data {share} % of the time", share=_percent(share)),
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
        return _disagree(
            t("the step clock gives {share} % to waiting for data", share=_percent(told)),
            t("stacks see it in {share} % of looks", share=_percent(seen)),
        )
    if case.gpu_pct is not None and case.gpu_pct >= GPU_BUSY_PCT:
        return _disagree(
            t(
                "the trainer waits for data {share} % of the time",
                share=_percent(max(told or 0.0, seen or 0.0)),
            ),
            t("the GPU is busy {share} % of it", share=round(case.gpu_pct)),
        )
    if told is not None and seen is None and case.gpu_pct is None and case.on_gpu is not False:
        return unknown(
            t("cannot tell: the step clock gives {share} % to waiting for data, and neither stacks nor GPU were seen",
              share=_percent(told))
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


def _logging(case: Case) -> Verdict | None:
    told = case.window.split_share("logging") if case.has_clock else 0.0
    seen = case.window.phase_share("logging") if case.has_stacks else 0.0
    if max(told, seen) < SIDE_SHARE:
        return None
    place = case.window.place("logging")
    where = f"{place[0]} ({place[1]}:{place[2]})" if place else "?"
    return Verdict(
        kind="logging",
        sentence=t(
            "logging takes {share} % of the time, at {place}", share=_percent(max(told, seen)), place=where
        ),
        advice=t("log every so many steps, and read the loss from the device only then"),
    )


def _copying(case: Case) -> Verdict | None:
    told = case.window.split_share("copy", "h2d") if case.has_clock else 0.0
    if told < DATA_SHARE or case.on_gpu is False:
        return None
    if case.gpu_pct is None:
        return unknown(
            t(
                "cannot tell: copying to the GPU takes {share} %, and the GPU could not be read",
                share=_percent(told),
            )
        )
    return Verdict(
        kind="copying",
        sentence=t("copying to the GPU takes {share} % of the time", share=_percent(told)),
        advice=t("pin the loader's memory (pin_memory=True) and copy with non_blocking=True"),
    )


# -- the step itself
def _throttled(case: Case) -> Verdict | None:
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
            share=_percent(count / looks),
            reason=reason,
        ),
        advice=t("nothing in the script helps: tell the provider, or move to another machine"),
    )


def _gpu_work(case: Case) -> Verdict | None:
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
        return _disagree(
            t("the GPU is busy {share} % of the time", share=round(utilization)),
            t("the step clock gives {share} % to computing", share=_percent(case.compute_share)),
        )
    if power is not None and power < POWER_LOW and (memory is None or memory < MEMORY_ACTIVITY_PCT):
        return unknown(
            t("cannot tell: the GPU counts as busy {share} % of the time but draws {power} % of its power limit "
              "(small kernels, or waiting for other cards)", share=round(utilization), power=_percent(power))
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
    if seen is not None and seen < CONTRADICTED_AT * case.compute_share:
        return _disagree(
            t("the step clock gives {share} % to computing", share=_percent(case.compute_share)),
            t("stacks see it in {share} % of looks", share=_percent(seen)),
        )
    return Verdict(
        kind="launch",
        sentence=t("launching kernels sets the speed: the GPU is busy only {share} % of the time while the step computes",
                   share=round(utilization)),
        advice=t("larger batches, torch.compile, a fused optimizer; no .item(), .cpu() or print of a tensor in each step"),
    )  # fmt: skip


def _cpu_work(case: Case) -> Verdict | None:
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
            share=_percent(min(1.0, case.cpu_share)),
        ),
        advice=t("a GPU, a smaller model, bf16 where the CPU has it, or less padding"),
    )


def _nothing_stands_out(case: Case) -> Verdict:
    if case.has_clock:
        parts = sorted(case.window.split_s.items(), key=lambda pair: -pair[1])[:3]
        shown = ", ".join(f"{name} {_percent(seconds / case.window.span_s)} %" for name, seconds in parts)
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
        shown = ", ".join(f"{name} {_percent(seconds / window.span_s)} %" for name, seconds in parts)
        out.append(t("step clock, {steps} {steps:step|steps}: {parts}", steps=window.steps, parts=shown))
    if case.has_stacks:
        phases = sorted(window.phases.items(), key=lambda pair: -pair[1])[:4]
        shown = ", ".join(f"{name} {_percent(weight / window.stack_samples)} %" for name, weight in phases)
        out.append(t("stacks, {looks} {looks:look|looks}: {parts}", looks=round(window.stack_samples), parts=shown or "-"))
    if case.gpu_pct is not None:
        out.append(t("GPU busy {share} % of the time", share=round(case.gpu_pct)))
    if case.cpu_share is not None:
        out.append(t("CPU: {used} of {cores} {cores:core|cores}", used=round(window.cpu_cores.value or 0.0, 1),
                     cores=round(window.cores_usable or 0.0, 1)))  # fmt: skip
    return out


# -- of a run
def verdict_of(state: Any, status: str, now: float) -> Verdict:
    """Return the verdict on a :class:`runner.state.RunState`: of its newest minute, or of the whole where it is over."""
    on_gpu = device_is_gpu(state.started)
    if status == "stalled" and state.last_trainer_t is not None:
        silent_s = now - state.last_trainer_t
        return judge(
            Case(window=state.windows.since(state.last_trainer_t + 5), on_gpu=on_gpu, silent_s=silent_s)
        )
    over = status not in ("running", "starting", "stalled")
    return judge(Case(window=state.windows.whole if over else state.windows.recent(), on_gpu=on_gpu))


def is_worth_saying(verdict: Verdict, status: str, step: int) -> bool:
    """Return whether people want to read it: that a run over long since cannot be judged helps nobody."""
    return verdict.is_known or status == "stalled" or (status == "running" and step > 0)


def device_is_gpu(started: dict[str, Any]) -> bool | None:
    device = started.get("device")
    return None if not device else not str(device).startswith("cpu")
