"""Alerts: on only when something lasts, off only when it is well past."""

from __future__ import annotations

from typing import Any

from runner.alerts import AlertBook
from runner.events import RunEvent


class Told:
    """A book and a clock; ``kinds`` after each event."""

    def __init__(self) -> None:
        self.book, self.t = AlertBook(), 0.0

    def add(self, kind: str, step: int | None = None, **data: Any) -> set[str]:
        self.t += 1
        self.book.add(RunEvent(seq=0, t=self.t, source="x", kind=kind, step=step, data=data))
        return {alert.kind for alert in self.book.open()}


def losses(told: Told, values: list[float | str]) -> list[bool]:
    start = int(told.t)
    return ["loss-spike" in told.add("step", start + index, loss=value) for index, value in enumerate(values)]


def test_a_nan_is_told_at_once_and_until_twenty_losses_were_numbers() -> None:
    told = Told()
    assert "non-finite" in told.add("step", 1, loss="nan")
    seen = [bool(told.add("step", 2 + index, loss=1.0)) for index in range(20)]
    assert seen == [True] * 19 + [False]


def test_one_high_loss_is_no_spike_and_three_are() -> None:
    told = Told()
    calm: list[float | str] = [1.0] * 61
    assert not any(losses(told, [*calm, 5.0, 1.0, 5.0, 5.0, 1.0]))
    assert losses(told, [5.0, 5.0, 5.0]) == [False, False, True]
    assert losses(told, [1.0] * 10) == [True] * 9 + [False]


def test_the_fall_at_the_beginning_is_no_spike() -> None:
    assert not any(losses(Told(), [10.0 / (1 + 0.1 * n) for n in range(300)]))


def test_over_fitting_needs_three_worse_evaluations_and_a_training_loss_that_falls() -> None:
    told = Told()
    seen = []
    for round_ in range(6):
        losses(told, [1.0 - 0.15 * round_] * 50)
        seen.append("overfitting" in told.add("evaluation", round_, loss=0.5 if round_ == 0 else 0.6))
    assert seen == [False, False, False, True, True, True]
    assert "overfitting" not in told.add("evaluation", 7, loss=0.4)


def test_worse_evaluations_while_the_training_loss_rises_are_not_over_fitting() -> None:
    told = Told()
    for round_ in range(6):
        losses(told, [1.0 + 0.1 * round_] * 50)
        assert "overfitting" not in told.add("evaluation", round_, loss=0.5 + round_)


def gpu(told: Told, used: float, *reasons: str) -> set[str]:
    return told.add(
        "sample-gpu",
        gpus=[{"memory_used_bytes": used, "memory_total_bytes": 100.0, "throttle_reasons": reasons}],
    )


def test_a_full_card_is_told_after_three_looks_and_until_it_is_well_below() -> None:
    told = Told()
    assert [bool(gpu(told, 99)) for _ in range(3)] == [False, False, True]
    assert all(gpu(told, 96) for _ in range(9))
    assert [bool(gpu(told, 90)) for _ in range(3)] == [True, True, False]


def test_a_power_cap_is_no_throttling_and_heat_is() -> None:
    told = Told()
    assert not any(gpu(told, 50, "power-cap") for _ in range(30))
    seen = ["throttled" in gpu(told, 50, "hw-thermal") for _ in range(10)]
    assert seen == [False] * 9 + [True]
    seen = ["throttled" in gpu(told, 50) for _ in range(15)]
    assert seen[0] and not seen[-1]


def test_a_disk_without_room_for_two_checkpoints_is_nearly_full() -> None:
    told = Told()
    told.add("checkpoint", 1, bytes=5_000_000_000)
    seen = ["disk" in told.add("sample-host", disk_free_bytes=8_000_000_000) for _ in range(3)]
    assert seen == [False, False, True]
    assert "disk" not in Told().add("sample-host", disk_free_bytes=8_000_000_000)


def heat(told: Told, now: float, slowdown: float | None = 92.0) -> bool:
    cards = [{"temperature_c": now, "temperature_slowdown_c": slowdown}]
    return "temperature" in told.add("sample-gpu", gpus=cards)


def test_heat_is_told_near_the_card_s_own_limit_and_until_it_is_well_below() -> None:
    told = Told()
    assert [heat(told, 90) for _ in range(3)] == [False, False, True]
    assert all(heat(told, 86) for _ in range(9))
    assert [heat(told, 83) for _ in range(3)] == [True, True, False]


def test_heat_without_a_known_limit_is_no_alert() -> None:
    assert not any(heat(Told(), 99, None) for _ in range(9))


def xid(told: Told, number: int, fault: str, **data: Any) -> list[tuple[str, str]]:
    told.add("xid", number=number, fault=fault, meaning="x", **data)
    return [(alert.level, str(alert.text)) for alert in told.book.open()]


def test_a_fault_of_the_card_is_told_until_the_run_starts_anew_and_a_worse_one_takes_its_place() -> None:
    told = Told()
    assert xid(told, 74, "link", gpu_index=1) == [("warn", "Xid 74 on GPU 1: x")]
    assert xid(told, 79, "hardware", gpu_index=2) == [("fail", "Xid 79 on GPU 2: x")]
    assert xid(told, 94, "recoverable", gpu_index=0) == [("fail", "Xid 79 on GPU 2: x")]
    assert told.add("run-finished", outcome="failed") == {"xid"}
    assert told.add("run-started") == set()


def test_what_is_no_fault_of_a_card_of_ours_is_no_alert() -> None:
    told = Told()
    for number, fault, data in (
        (31, "application", {}),
        (999, "unknown", {}),
        (63, "recoverable", {}),
        (79, "hardware", {"is_ours": False}),
        (79, "nonsense", {}),
    ):
        assert xid(told, number, fault, **data) == []
