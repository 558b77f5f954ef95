"""The variants of a comparison: the levers chosen, the profile as it stands, what won together; and their lines in the table. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from doctor.bench_advice import change
from doctor.bench_levers import BEFORE, Changes, Lever, Settings, combined
from doctor.bench_records import Measured, Row
from doctor.bench_rows import Pair, before_row, variant_row
from doctor.bench_runs import TOGETHER, Variant
from runner.profile import Profile
from runner.text import Text, t

ITSELF, BESIDE, CHANGED = "itself", "itself-beside", "changed"
"""The profile as it stands, against *before*; again, beside the profile with what is to be changed in it."""


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
    return _proven(variants, "faster")


def losers(variants: Sequence[Variant]) -> list[Lever]:
    """Return the levers for speed that were proven slower."""
    return _proven(variants, "slower")


def _proven(variants: Sequence[Variant], verdict: str) -> list[Lever]:
    found = []
    for one in variants:
        if one.lever.is_for != "speed" or not one.pairs or one.lever.name in (TOGETHER, CHANGED):
            continue
        row = variant_row(one.lever.name, one.lever.title, {}, one.pairs, one.lever.changes)
        if row.verdict == verdict and row.loss != "differs":
            found.append(one.lever)
    return found


def joined(variants: Sequence[Variant]) -> list[Variant]:
    """Return what was proven faster as one variant; nothing: there are not two such."""
    won = winners(variants)
    if len(won) < 2:
        return []
    return [_variant(TOGETHER, t("what was proven faster, together"), combined(won), [one.changes for one in won])]  # fmt: skip


def changed_beside_itself(variants: Sequence[Variant], own: Settings) -> list[Variant]:
    """Return the profile with what is to be changed in it, and the profile as it stands to be measured beside it; nothing:
    there is nothing to change, or only some levers were asked for."""
    as_it_is = next((one.lever for one in variants if one.lever.name == ITSELF), None)
    won = winners(variants)
    to_change = change(own, won, losers(variants))
    if as_it_is is None or not to_change:
        return []
    kinds = [as_it_is.changes, *(one.changes for one in won)]
    changed = _variant(CHANGED, t("the profile with what is to be changed, against the profile as it stands"), as_it_is.settings | to_change, kinds)  # fmt: skip
    return [changed, Variant(msgspec.structs.replace(as_it_is, name=BESIDE))]


def _variant(name: str, title: Text, settings: Settings, kinds: Sequence[Changes]) -> Variant:
    changes: Changes = "rows" if "rows" in kinds else "rounding" if "rounding" in kinds else "nothing"
    return Variant(Lever(name=name, title=title, settings=settings, changes=changes))


def itself(profile: Profile) -> Lever:
    """The profile as it stands, as a lever over *before*."""
    settings: Settings = {}
    for key in BEFORE:
        section, _, name = key.partition(".")
        settings[key] = getattr(getattr(profile, section), name)
    settings["train.memory_probe"] = False
    if settings["train.compile"] == "auto":
        settings["train.compile"] = False
    changes: Changes = "rows" if profile.train.packing else "rounding"
    return Lever(name=ITSELF, title=t("the profile as it stands"), settings=settings, changes=changes, is_for="contrast")  # fmt: skip


def rows_of(before: Sequence[Measured], variants: Sequence[Variant], skipped: Sequence[Lever]) -> list[Row]:
    """Return the lines of the table: *before*, each variant, and what was skipped."""
    rows = []
    if before:
        rows.append(before_row(t("every sample padded to max_length, in plain order, fp32, plain AdamW"), BEFORE, before))  # fmt: skip
    for one in variants:
        lever = one.lever
        if lever.name == BESIDE:
            continue
        pairs = against_itself(one, variants) if lever.name == CHANGED else one.pairs
        if pairs:
            row = variant_row(lever.name, lever.title, lever.settings, pairs, lever.changes)
            rows.append(msgspec.structs.replace(row, why=one.failed))
        else:
            why = one.failed or t("not reached")
            rows.append(Row(name=lever.name, title=lever.title, verdict="failed" if one.failed else "skipped", why=why))  # fmt: skip
    rows += [Row(name=one.name, title=one.title, verdict="skipped", why=one.skipped) for one in skipped]
    return rows


def against_itself(changed: Variant, variants: Sequence[Variant]) -> list[Pair]:
    """Return the runs of the changed profile, each with the one of the unchanged that was measured next to the same *before*."""
    beside = next((one.pairs for one in variants if one.lever.name == BESIDE), [])
    return [
        (as_it_is, after) for before, after in changed.pairs for same, as_it_is in beside if same == before
    ]
