"""Settings of a profile compared: interleaved pairs of short runs, each in a fresh process, on the same samples and seed."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass

from doctor.bench_levers import BEFORE, Changes, Lever, Settings, combined, levers_of, with_settings
from doctor.bench_records import Comparison, Row
from doctor.bench_rows import before_row, variant_row
from doctor.bench_runs import Bench, BenchOptions, OutOfTime, Tell, Variant
from doctor.launch import LaunchError
from doctor.model import Snapshot
from doctor.running import plan_run
from runner.plan import MachineFacts, make_plan
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
        "train.evaluate_every": "end", "train.checkpoint_every": "end", "train.trackers": [], "train.patience": None,
    })  # fmt: skip


def bench_profile(
    profile: Profile,
    machine: MachineFacts,
    snapshot: Snapshot,
    python: str,
    options: BenchOptions,
    tell: Tell,
) -> Comparison:
    """Measure each lever alone, then those that were proven faster together, against *before*.

    Raises:
        BenchError: *before* cannot be trained here.
    """
    begun, load = time.monotonic(), os.getloadavg()[0]
    plan = make_plan(profile, machine, "")
    levers = levers_of(profile, machine, plan.settings.micro_batch_size, _has_compiler())
    chosen, skipped = choose(levers, options.levers)
    bench = Bench(short(profile, options.steps), machine, snapshot, python, options, tell)
    bench.variants = [Variant(lever) for lever in [*chosen, *([] if options.levers else [_itself(profile)])]]
    stopped = None
    try:
        bench.deadline = begun + 60 * options.minutes * (1 - TOGETHER_SHARE)
        stopped = _until(bench, bench.variants, options)
        bench.deadline = begun + 60 * options.minutes
        if not isinstance(stopped, _Interrupted):
            stopped = _rest_of_the_time(bench, options) or (stopped if bench.is_unfinished else None)
    finally:
        bench.close()
    return Comparison(
        profile=profile.run.name, device=machine.gpu_name or machine.device, model=_model_name(profile.model),
        batch_size=profile.train.batch_size, max_length=profile.train.max_length, steps=options.steps,
        pairs_wanted=options.pairs, rows=_rows(bench, skipped), winners=combined(winners(bench.variants)),
        seconds=time.monotonic() - begun, stopped=stopped.text if stopped else None,
        load_begin=load, load_end=os.getloadavg()[0],
    )  # fmt: skip


def _rest_of_the_time(bench: Bench, options: BenchOptions) -> _Stopped | None:
    """Measure what won together; where nothing is to be put together, go on with what has too few pairs."""
    together = _together(bench.variants)
    if together is None:
        return _until(bench, bench.variants, options)
    bench.variants.append(together)
    return _until(bench, [together], options)


@dataclass(frozen=True)
class _Stopped:
    text: Text


class _Interrupted(_Stopped):
    """By hand: nothing more is begun."""


def _until(bench: Bench, variants: Sequence[Variant], options: BenchOptions) -> _Stopped | None:
    try:
        bench.compare(variants)
    except OutOfTime:
        return _Stopped(t("the {minutes} {minutes:minute was|minutes were} over before every pair was measured; --minutes gives it more", minutes=f"{options.minutes:g}"))  # fmt: skip
    except KeyboardInterrupt:
        return _Interrupted(t("interrupted: what was measured until then is shown"))
    return None


def choose(levers: Sequence[Lever], names: Sequence[str]) -> tuple[list[Lever], list[Lever]]:
    """Return the levers to measure and those to skip; one that is asked for is measured wherever it can be."""
    if not names:
        return [one for one in levers if one.skipped is None], [
            one for one in levers if one.skipped is not None
        ]
    asked = [one for one in levers if one.name in names]
    return [one for one in asked if one.is_possible], [one for one in asked if not one.is_possible]


def winners(variants: Sequence[Variant]) -> list[Lever]:
    """Return the levers for speed that were proven faster and whose loss is what it should be."""
    found = []
    for one in variants:
        if one.lever.is_for != "speed" or not one.pairs or one.lever.name in ("together", "itself"):
            continue
        row = variant_row(one.lever.name, one.lever.title, {}, one.pairs, one.lever.changes)
        if row.verdict == "faster" and row.loss != "differs":
            found.append(one.lever)
    return found


def _together(variants: Sequence[Variant]) -> Variant | None:
    won = winners(variants)
    if len(won) < 2:
        return None
    kinds = {lever.changes for lever in won}
    changes: Changes = "rows" if "rows" in kinds else "rounding" if "rounding" in kinds else "nothing"
    return Variant(
        Lever(name="together", title=t("what was proven faster, together"), settings=combined(won), changes=changes)
    )  # fmt: skip


def _itself(profile: Profile) -> Lever:
    """The profile as it stands, as a lever over *before*."""
    settings: Settings = {}
    for key in BEFORE:
        section, _, name = key.partition(".")
        settings[key] = getattr(getattr(profile, section), name)
    settings["train.memory_probe"] = False
    if settings["train.compile"] == "auto":
        settings["train.compile"] = False
    changes: Changes = "rows" if profile.train.packing else "rounding"
    return Lever(name="itself", title=t("the profile as it stands"), settings=settings, changes=changes, is_for="contrast")  # fmt: skip


def _rows(bench: Bench, skipped: Sequence[Lever]) -> list[Row]:
    rows = []
    if bench.before:
        rows.append(before_row(t("every sample padded to max_length, in plain order, fp32, plain AdamW"), BEFORE, bench.before))  # fmt: skip
    for one in bench.variants:
        lever = one.lever
        if one.pairs:
            rows.append(variant_row(lever.name, lever.title, lever.settings, one.pairs, lever.changes))
        else:
            why = one.failed or t("not reached")
            rows.append(Row(name=lever.name, title=lever.title, verdict="failed" if one.failed else "skipped", why=why))  # fmt: skip
    rows += [Row(name=one.name, title=one.title, verdict="skipped", why=one.skipped) for one in skipped]
    return rows


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
    machine = planned.plan.machine
    return bench_profile(planned.plan.profile, machine, snapshot, planned.python, options, tell)
