"""In which order a comparison measures: everything once or twice, then what promises most, so that short time proves something."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from doctor import service
from doctor.bench_journal import Journal
from doctor.bench_levers import Lever
from doctor.bench_order import OutOfTime
from doctor.bench_records import Measured
from doctor.bench_runs import Bench, BenchOptions, Variant
from runner.plan import MachineFacts
from runner.profile import load_profile
from runner.text import t
from tests.runner.tiny import PROFILE

SPEEDS = {"before": 1.0, "slow": 0.5, "even": 1.0, "fast": 2.0, "faster": 3.0}


def measured(samples_per_s: float) -> Measured:
    return Measured(
        wall_s=1 / samples_per_s, cpu_s=1.0, windows=1, samples=1, tokens=1, padded_tokens=1, warm_up_s=0.0, loss=1.0,
        grad_norm=1.0, losses=[1.0], peak_bytes=1,
    )  # fmt: skip


class Played(Bench):
    """Answers with :data:`SPEEDS`, for so many runs."""

    runs = 10**9
    log: list[str]

    def measure(self, variant: Variant | None, number: int) -> Measured:
        if len(self.log) >= self.runs:
            raise OutOfTime
        name = variant.lever.name if variant else "before"
        self.log.append(name)
        return measured(SPEEDS[name])


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Played]:
    (tmp_path / "tiny.toml").write_text(PROFILE)
    (tmp_path / "rows.csv").write_text("text,label\na,0\n")
    snapshot = service.load(Path(__file__).parent.parent / "machines/healthy-4090-runpod.json")
    played = Played(load_profile(tmp_path / "tiny.toml"), MachineFacts(device="cpu"), snapshot, "python", BenchOptions(), Journal(tmp_path / "kept.jsonl", print), print)  # fmt: skip
    played.log = []
    played.variants = [
        Variant(Lever(name=name, title=t("a setting"), settings={})) for name in SPEEDS if name != "before"
    ]
    yield played
    played.close()


def counts(bench: Played) -> dict[str, int]:
    return {one.lever.name: len(one.pairs) for one in bench.variants}


def test_with_time_enough_each_has_all_its_pairs_and_each_pair_its_before_beside_it(bench: Played) -> None:
    bench.compare(bench.variants)
    assert set(counts(bench).values()) == {6}
    places = [place for place, name in enumerate(bench.log) if name != "before"]
    assert all("before" in bench.log[max(0, place - 1) : place + 2] for place in places)


def test_after_a_first_look_the_fastest_get_their_pairs_first(bench: Played) -> None:
    bench.runs = 24
    with pytest.raises(OutOfTime):
        bench.compare(bench.variants)
    assert counts(bench) == {"slow": 2, "even": 2, "fast": 6, "faster": 6}


def test_what_is_only_a_contrast_waits_for_the_levers(bench: Played) -> None:
    bench.variants[-1].lever = msgspec.structs.replace(bench.variants[-1].lever, is_for="contrast")
    bench.runs = 24
    with pytest.raises(OutOfTime):
        bench.compare(bench.variants)
    assert counts(bench) == {"slow": 2, "even": 6, "fast": 6, "faster": 2}


def test_time_that_runs_out_beside_before_costs_no_pair_that_is_whole(bench: Played) -> None:
    bench.runs = 2  # slow, before; even is not reached
    with pytest.raises(OutOfTime):
        bench.compare(bench.variants)
    assert counts(bench) == {"slow": 1, "even": 0, "fast": 0, "faster": 0}


def test_asked_again_it_goes_on_and_pairs_nothing_with_a_later_before(bench: Played) -> None:
    bench.runs = 13  # broken off between a run and the before next to it
    with pytest.raises(OutOfTime):
        bench.compare(bench.variants)
    bench.runs = 10**9
    bench.compare(bench.variants)
    assert set(counts(bench).values()) == {6}
    assert all(after.samples_per_s / before.samples_per_s == pytest.approx(SPEEDS[one.lever.name])
               for one in bench.variants for before, after in one.pairs)  # fmt: skip


def test_what_failed_is_asked_no_more(bench: Played) -> None:
    bench.variants[0].failed = t("it cannot")
    bench.compare(bench.variants)
    assert "slow" not in bench.log
