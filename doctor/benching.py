"""Settings of a profile compared: interleaved pairs of short runs, each in a fresh process, on the same samples and seed."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from doctor.bench_advice import change, has, own_settings
from doctor.bench_cost import BEFORE as BEFORE_NAME
from doctor.bench_cost import runs_of
from doctor.bench_journal import Journal, journal_path
from doctor.bench_levers import Lever, combined, levers_of, with_settings
from doctor.bench_order import BenchError, OutOfTime, Tell
from doctor.bench_records import Comparison
from doctor.bench_runs import (
    Bench,
    BenchOptions,
    Variant,
    steps_worth,
)
from doctor.bench_variants import changed_beside_itself, choose, itself, joined, losers, rows_of, winners
from doctor.launch import LaunchError
from doctor.model import Snapshot
from doctor.prove import place_of
from doctor.render.layout import human_seconds
from doctor.running import plan_run
from runner.plan import Plan, make_plan
from runner.profile import ModelSection, Profile
from runner.text import Text, t

TOGETHER_SHARE = 0.3
"""Of the time, kept for what won together."""
EVAL_ROWS = 16


def short(profile: Profile, steps: int) -> Profile:
    """Return ``profile`` as one epoch over just enough samples, evaluated and saved never."""
    rows = steps * profile.train.batch_size
    return with_settings(profile, {
        "data.train_limit": rows, "data.eval_limit": EVAL_ROWS, "train.epochs": 1, "train.steps": None,
        "train.evaluate_every": "end", "train.checkpoint_every": "end", "train.trackers": [], "train.patience": None, "train.non_finite": "halt",
    })  # fmt: skip


def bench_profile(plan: Plan, snapshot: Snapshot, python: str, options: BenchOptions, tell: Tell) -> Comparison:  # fmt: skip
    """Measure each lever alone, then what is to be changed and those that were proven faster together, against *before*.

    Raises:
        BenchError: *before* cannot be trained here.
        KeyboardInterrupt: before anything was measured.
    """
    begun, load = time.monotonic(), os.getloadavg()[0]
    journal = Journal(journal_path(plan.profile, place_of(snapshot, plan), os.environ), tell)
    if options.anew:
        journal.forget()
    bench = Bench(plan.profile, plan.machine, snapshot, python, options, journal, tell)
    try:
        skipped = _make_ready(bench, plan)
        bench.deadline = bench.end - 60 * options.minutes * TOGETHER_SHARE
        stopped = _until(bench, bench.variants)
        bench.deadline = bench.end
        if not isinstance(stopped, _Broken):
            stopped = _rest_of_the_time(bench, plan) or (stopped if bench.is_unfinished else None)
    except OutOfTime:
        raise BenchError(t("one run of before alone took all the time: --minutes gives it more")) from None
    finally:
        bench.close()
    own, won, profile = own_settings(plan), winners(bench.variants), plan.profile
    return Comparison(
        profile=profile.run.name, device=plan.machine.gpu_name or plan.machine.device, model=_model_name(profile.model),
        batch_size=profile.train.batch_size, max_length=profile.train.max_length, steps=bench.steps, pairs_wanted=options.pairs,
        rows=rows_of(bench.before, bench.variants, skipped), winners=combined(won), change=change(own, won, losers(bench.variants)),
        in_profile=[lever.name for lever in won if has(own, lever.settings)], notes=bench.notes,
        is_kept=journal.keeps, seconds=time.monotonic() - begun,
        stopped=stopped.text if stopped else None, load_begin=load, load_end=os.getloadavg()[0],
    )  # fmt: skip


def _make_ready(bench: Bench, plan: Plan) -> list[Lever]:
    """Try *before*, settle how many steps a run has, and what is to be measured; return the levers that are not."""
    options, begun = bench.options, time.monotonic()
    bench.tell(t("first one run of before that does not count: it makes the token ids and tells how long a run takes"))  # fmt: skip
    bench.profile = short(bench.profile, bench.steps)
    tried = bench.fit_before()
    bench.steps = bench.known_steps or steps_worth(tried)
    bench.profile = short(bench.profile, bench.steps)
    bench.cost.took(BEFORE_NAME, time.monotonic() - begun + tried.wall_s * (bench.steps / tried.windows - 1))
    size = make_plan(bench.profile, bench.machine, "").settings.micro_batch_size
    chosen, skipped = choose(levers_of(plan.profile, bench.machine, size, _has_compiler()), options.levers)
    bench.variants = [Variant(lever) for lever in [*chosen, *([] if options.levers else [itself(plan.profile)])]]  # fmt: skip
    _take_over(bench)
    if bench.is_unfinished:
        bench.tell(_cost_words(bench))
    return skipped


def _take_over(bench: Bench) -> None:
    """Take the pairs of an earlier comparison, and say how many."""
    for one in bench.variants:
        bench.take_over(one)
    if count := sum(len(one.pairs) for one in bench.variants):
        bench.notes.append(t("{count} {count:pair was|pairs were} measured before by the same command, and are taken over; --anew measures all again", count=count))  # fmt: skip
        bench.tell(bench.notes[-1])


def _cost_words(bench: Bench) -> Text:
    """Say what is to come before it comes: how many runs, and how long they take by the one that was made."""
    left, options = bench.left(bench.variants), bench.options
    expected_s = bench.cost.left_s(left)
    figures: dict[str, Any] = {
        "settings": len(bench.variants), "pairs": options.pairs, "runs": runs_of(left), "each": human_seconds(bench.cost.of(BEFORE_NAME)),
        "time": human_seconds(expected_s), "minutes": f"{options.minutes:g}",
    }  # fmt: skip
    if expected_s <= bench.time_left_s:
        return t("{settings} {settings:setting|settings}, {pairs} {pairs:pair|pairs} each: {runs} {runs:run|runs} of about {each}, {time} in all. "
                 "Ctrl-C ends it at any time and shows what was measured", **figures)  # fmt: skip
    return t("{settings} {settings:setting|settings}, {pairs} {pairs:pair|pairs} each: {runs} {runs:run|runs} of about {each} take {time}, more than the {minutes} "
             "{minutes:minute|minutes} given: the fastest get their pairs first; --levers measures fewer, --minutes gives more. Ctrl-C ends it at any time and shows what was measured", **figures)  # fmt: skip


def _rest_of_the_time(bench: Bench, plan: Plan) -> _Stopped | None:
    """Measure what is to be changed in the profile next to the profile as it stands, and what won together next to *before*;
    where there is neither, go on with what has too few pairs."""
    turns = [changed_beside_itself(bench.variants, own_settings(plan)), joined(bench.variants)]
    if not any(turns):
        return _until(bench, bench.variants)
    stopped = None
    for turn in filter(None, turns):
        for one in turn:
            bench.take_over(one)
        bench.variants += turn
        stopped = _until(bench, turn)
        if isinstance(stopped, _Broken):
            break
    return stopped


@dataclass(frozen=True)
class _Stopped:
    text: Text


class _Broken(_Stopped):
    """By hand, or before failed: nothing more is begun."""


def _until(bench: Bench, variants: Sequence[Variant]) -> _Stopped | None:
    try:
        bench.compare(variants)
    except OutOfTime:
        return _Stopped(t("the {minutes} {minutes:minute was|minutes were} over before every pair was measured; --minutes gives it more", minutes=f"{bench.options.minutes:g}"))  # fmt: skip
    except KeyboardInterrupt:
        return _Broken(t("interrupted: what was measured until then is shown"))
    except (BenchError, LaunchError) as error:
        bench.tell(error.text)
        return _Broken(t("a run that could be made at first failed: what was measured until then is shown"))
    except OSError as error:  # a disk that is full by now
        bench.tell(t("{file}: {why}", file=str(error.filename or "?"), why=error.strerror or str(error)))
        return _Broken(t("a run that could be made at first failed: what was measured until then is shown"))
    return None


def _has_compiler() -> bool:
    return any(shutil.which(name) for name in ("g++", "gcc", "cc", "clang"))


def _model_name(model: ModelSection) -> str:
    return model.hub or model.package or model.path or str(model.config.get("model_type", ""))


def bench_named(
    name: str, overrides: Sequence[str], snapshot: Snapshot, options: BenchOptions, tell: Tell
) -> Comparison:
    """Measure a shipped profile or one of a file on this machine.

    Raises:
        LaunchError: there is none, no interpreter, or something it needs is missing.
        BenchError, runner.profile.ProfileError: it cannot be trained.
    """
    planned = plan_run(name, overrides, snapshot)
    if not planned.python:
        raise LaunchError(t("no Python was found to train with; name one with --python PATH"))
    if planned.missing:
        raise LaunchError(planned.missing[0])
    return bench_profile(planned.plan, planned.snapshot, planned.python, options, tell)
