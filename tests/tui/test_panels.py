"""What the panels say of what was sampled: every value in words, every gap with its reason, nothing of it trusted."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from rich.text import Text as Styled

from doctor import language
from doctor.expectations import Expected, mfu
from doctor.tui.view import RunView
from doctor.tui.widgets.icicle import icicle
from doctor.tui.widgets.machine_panel import machine_rows
from doctor.tui.widgets.stacks_panel import icicle_rows, stack_rows
from runner.text import Text
from tests.tui.scenes import CARD, HOPPERS, HOST, ONE_CARD, PROCESSES, TREES

ON_GPU = {"device": "cuda", "measured_bytes": 10 << 30, "predicted_bytes": 9 << 30, "worst_bytes": 12 << 30}


def said(rows: list[Styled]) -> str:
    return "\n".join(row.plain.rstrip() for row in rows)


def panel(width: int = 78, **fields: Any) -> str:
    return said(machine_rows(RunView("run", "running", 0.0, **fields), width))


@pytest.mark.parametrize(
    ("card", "line"),
    [
        ({"pcie_rx_bytes_per_s": 1.2e9, "pcie_tx_bytes_per_s": 3e8}, "PCIe          to the card 1.1 GB/s · from it 286 MB/s"),
        ({"nvlink_rx_bytes_per_s": 1 << 30}, "NVLink        to the card 1.0 GB/s · from it ?"),
        ({"sm_active_pct": 81.0, "tensor_active_pct": 37.0}, "SM, tensor    81 % · 37 %"),
        ({"nvlink_errors": 2}, "NVLink errors since the driver was loaded: 2"),
        ({"unread": {"pcie_rx_bytes_per_s": {"msgid": "not told by this driver", "params": {}}}}, "? PCIe could not be read: not told by this driver"),
        ({"ecc_uncorrected_volatile": 3}, "ECC           uncorrected errors: 3"),
        ({"mig_enabled": True}, "MIG           on"),
        ({"mig_enabled": False}, "MIG           off"),
        ({"memory_activity_pct": 44.0}, "memory busy   44 %"),
        ({"throttle_reasons": ["hw-thermal"]}, "throttled     hw-thermal (much too hot: the card itself lowers its clock)"),
        ({"throttle_reasons": ["power-cap"]}, "clock held by power-cap (at its power limit, as is normal under full load)"),
        ({"throttle_reasons": ["unknown-0x200"]}, "throttled     unknown-0x200"),
        ({"unread": {"nvlink_rx_bytes_per_s": "Not Supported", "nvlink_tx_bytes_per_s": "Not Supported", "power_w": "Not Supported"}},
         "? NVLink, power_w could not be read: Not Supported"),
        ({"memory_used_bytes": 23.9 * (1 << 30), "memory_total_bytes": 24 << 30}, "23.9 GB / 24.0 GB !"),
    ],
    ids=["pcie", "nvlink-half", "gpm", "nvlink-errors", "old-driver", "ecc", "mig", "no-mig", "memory-busy", "hot", "capped", "new-reason", "unread", "full"],
)  # fmt: skip
def test_each_value_of_a_card_is_in_words(card: dict[str, Any], line: str) -> None:
    assert line in panel(gpus={"gpus": [{"index": 0, "name": "X", **card}], "processes": []})


XID = {
    "number": 79,
    "fault": "hardware",
    "meaning": "the GPU has fallen off the bus",
    "gpu_index": 2,
    "at": 0.0,
    "pci": "0000:04:00",
}


@pytest.mark.parametrize(
    ("fields", "line"),
    [
        ({"xids": (XID,)}, "! Xid 79 on GPU2 at"),
        ({"xids": ({**XID, "gpu_index": None, "meaning": ""},)}, "! Xid 79 on 0000:04:00 at"),
        ({"xids": ({**XID, "is_ours": False},)}, "a card that is none of yours"),
        ({"xid_source": {"source": "NVML"}}, "Xid           none since the run began"),
        ({"xid_source": {"why": "/dev/kmsg: EPERM"}}, "? Xid could not be read: /dev/kmsg: EPERM"),
    ],
    ids=["ours", "unknown-number", "another-tenants", "quiet", "unread"],
)
def test_what_the_driver_reported_is_said_and_silence_only_where_it_was_listened_to(
    fields: dict[str, Any], line: str
) -> None:
    assert line in panel(gpus={"gpus": [{"index": 0, "name": "X"}], "processes": []}, **fields)


def test_where_nobody_listened_for_xids_nothing_is_said_of_them() -> None:
    assert "Xid" not in panel(gpus={"gpus": [{"index": 0, "name": "X"}], "processes": []})


def test_a_card_among_many_shows_its_rates_where_it_does_anything() -> None:
    idle = {"index": 1, "utilization_pct": 0, "pcie_rx_bytes_per_s": 0, "pcie_tx_bytes_per_s": 0}
    busy = {
        "index": 0,
        "utilization_pct": 97,
        "sm_active_pct": 81.5,
        "tensor_active_pct": 37.0,
        "nvlink_errors": 5,
    }
    shown = panel(gpus={"gpus": [busy, idle, {**idle, "index": 2}], "processes": []})
    assert "97 %  ? / ?    ! NVLink 5\n   SM 82%  tensor 37%" in shown
    assert "PCIe to the card" not in shown


def test_what_no_card_was_asked_for_is_named_once() -> None:
    assert "not sampled in this run: PCIe, NVLink, SM, tensor, ECC, MIG" in panel(
        gpus={"gpus": [{**CARD, "memory_activity_pct": 1.0, "unread": {}}]}
    )
    assert "not sampled in this run" not in panel(
        gpus={"gpus": ONE_CARD, "processes": []}, host=HOST | {"network_rx_bytes_per_s": 1}
    )


def test_processes_are_named_where_they_are_ours_and_not_guessed_where_not() -> None:
    text = panel(gpus={"gpus": ONE_CARD, "processes": PROCESSES})
    assert " 0     4242  18.0 GB  python train.py" in text
    assert " 0      991   1.0 GB  ? of someone outside this container" in text
    assert "? processes on the GPU: Insufficient Permissions" in panel(
        gpus={"gpus": ONE_CARD, "processes_why": "Insufficient Permissions"}
    )


def test_the_host_has_limits_rates_and_gaps() -> None:
    text = panel(host={"cpu_pct": 187.0, "processes": 3, "threads": 21, "disk_free_bytes": 30 << 30, **HOST})
    for line in (
        "CPU           1.9 of 4 cores · processes 3 · threads 21",
        "stopped at its limit in 31 % of the periods",
        "disk          30.0 GB free · in 114 MB/s · out 1.9 MB/s",
        "/dev/shm      ███████████████████████░ 62.0 MB / 64.0 MB !",
        "? network could not be read: Permission denied",
    ):
        assert line in text


def test_where_the_time_goes_has_evaluating_and_saving_beside_the_steps() -> None:
    text = panel(split_seconds={"data": 1.0, "copy": 1.0, "forward": 4.0, "evaluation": 3.0, "saving": 1.0})
    order = [line.split()[0] for line in text.splitlines() if line.endswith("%")]
    assert order == ["forward", "evaluation", "data", "copy", "saving"]
    assert "forward       ████████████████░░░" not in text and "40%" in text


@pytest.mark.parametrize(
    ("memory", "device", "words"),
    [
        (ON_GPU, "cuda", "step's peak   10.0 GB of tensors · foretold 9.0 GB · longest samples 12.0 GB"),
        ({**ON_GPU, "device": "cpu"}, "cpu", "step's peak   10.0 GB of tensors"),
        ({"device": "cuda", "measured_bytes": 1 << 30, "why": {"msgid": "a new kind of model", "params": {}}}, "cuda",
         "? the step's peak could not be foretold: a new kind of model"),
    ],
    ids=["gpu", "cpu", "unknown-model"],
)  # fmt: skip
def test_memory_foretold_stands_beside_what_was_measured(
    memory: dict[str, Any], device: str, words: str
) -> None:
    text = panel(memory=memory, gpus={"gpus": ONE_CARD, "processes": []}, host={"cpu_pct": 1.0})
    assert words in text
    assert text.count("step's peak   ") + text.count("? the step's peak") <= 2


CARDS = [{"name": "NVIDIA GeForce RTX 4090"}]


@pytest.mark.parametrize(
    ("expected", "rate", "cards", "precision", "answer"),
    [
        (Expected(flops_per_token=1e10), 3300.0, CARDS, "bf16", 0.2),
        (Expected(flops_per_token=1e10), 3300.0, CARDS * 2, "bf16", 0.1),
        (Expected(flops_per_token=1e10), 3300.0, [], "bf16", "no GPU sample"),
        (Expected(flops_per_token=1e10), 3300.0, CARDS, "fp32", "only for bf16 and fp16"),
        (Expected(flops_per_token=1e10), None, CARDS, "bf16", "tells no tokens"),
        (Expected(), 3300.0, CARDS, "bf16", "operations are not known"),
        (
            Expected(flops_per_token=1e10),
            3300.0,
            [{"name": "Card of 2031"}],
            "fp16",
            "the rate of Card of 2031",
        ),
    ],
    ids=["one", "two-cards", "no-card", "fp32", "no-tokens", "no-model", "new-card"],
)
def test_mfu_is_told_or_why_it_is_not(
    expected: Expected, rate: float | None, cards: list[dict[str, Any]], precision: str, answer: float | str
) -> None:
    found = mfu(expected, rate, cards, precision)
    if isinstance(answer, str):
        assert isinstance(found, Text) and answer in str(found)
    else:
        assert found == pytest.approx(answer, rel=0.02)  # the table's rate of the card is near 165 TFLOPS


def test_the_icicle_is_as_wide_as_the_shares() -> None:
    rows = [row.plain for row in icicle(TREES[0]["nodes"], 100)]
    assert rows[0] == "<module> › main"
    assert rows[1].startswith("▏run_training 100%") and len(rows[1]) == 100
    assert rows[2].index("▏evaluate") == 90
    assert [rows[3].index(name) for name in ("▏backward", "▏forward", "▏step")] == [0, 50, 80]
    assert rows[4].index("▏Linear") == 70


@pytest.mark.parametrize("width", [1, 2, 7, 20, 300])
def test_the_icicle_fits_any_width(width: int) -> None:
    for tree in TREES:
        assert all(row.cell_len <= width for row in icicle(tree["nodes"], width))


def test_an_older_runs_stacks_have_no_tree_and_say_so() -> None:
    view = RunView("run", "running", 0.0, stacks={"samples": 5, "frames": []})
    assert "kept no call trees" in said(icicle_rows(view, 78))
    assert "no stack sample yet" in said(stack_rows(view, 78))


@pytest.mark.parametrize(
    "junk",
    [{"trees": [{"nodes": [[0], "x", [0, "\x1b[2J", "f", 1, "nan"], [5, None, None, None, 1e9]]}]}, {"trees": "no"},
     {"trees": [{"process": "\x1b]0;x\x07", "nodes": [[-3, "f", "f", 1, 0.5]]}]}],
    ids=["nodes", "text", "process"],
)  # fmt: skip
def test_what_an_events_file_may_hold_breaks_no_row(junk: dict[str, Any]) -> None:
    view = RunView(
        "run",
        "running",
        0.0,
        stacks=junk,
        gpus={"gpus": [{"index": "\x1b[2J"}], "processes": [{"pid": "\x1b"}, 7]},
    )
    text = said(icicle_rows(view, 60)) + said(machine_rows(view, 60))
    assert "\x1b" not in text and "\x07" not in text


@pytest.mark.parametrize("width", [64, 78])
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_of_a_card_among_many_nothing_is_cut(width: int, lang: str, chinese: None) -> None:
    language.use_language(lang)
    cards = [{**card, "throttle_reasons": ["hw-thermal", "sw-thermal"]} for card in HOPPERS]
    view = dataclasses.replace(RunView("r", "running", 0.0), gpus={"gpus": cards, "processes": []})
    rows = machine_rows(view, width)
    assert max(row.cell_len for row in rows) <= width
    text = " ".join(row.plain for row in rows)
    for words in (
        "SM 92%",
        "tensor 48%",
        "PCIe →2.0 ←0.4 GB/s",
        "NVLink →38.2 ←39.1 GB/s",
        "! ECC 2",
        "! NVLink 12",
        "MIG",
    ):
        assert words in " ".join(text.split())


@pytest.mark.parametrize(("device", "is_first"), [("cuda:0", True), ("cpu", False)])
def test_a_card_that_cannot_be_read_comes_first_where_the_run_needs_it(device: str, is_first: bool) -> None:
    rows = panel(started={"device": device}, gpus={"why": "the driver hangs"}, host={"cpu_pct": 100.0})
    assert rows.startswith("GPU\n? could not be read: the driver hangs") == is_first
    assert "the driver hangs" in rows
