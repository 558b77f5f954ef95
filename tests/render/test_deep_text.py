"""The deep check's table, and the sections that could not be read, as a person reads them."""

from __future__ import annotations

import json

import jsonschema
import pytest

from doctor.judge import exit_code, judge
from doctor.language import use_language
from doctor.model import Deep, DeepDevice, DeepStep, Facts, Host, KernelLog, Reading, Snapshot, Status, ok, t
from doctor.render import schema, structured, text
from doctor.render.deep_text import deep_lines
from doctor.render.layout import display_width

TRIED = Deep(
    steps=(
        DeepStep(name="import", subject="torch", status="ok", seconds=2.5, detail="2.6.0+cu124"),
        DeepStep(name="start", subject="cuda:0", status="ok", seconds=0.25),
        DeepStep(name="bf16", subject="cuda:0", status="ok", seconds=0.01),
        DeepStep(name="import", subject="transformers", status="crashed", detail="SIGSEGV"),
        DeepStep(name="round-trip", subject="nccl", status="timed-out", seconds=30.0),
        DeepStep(name="read", subject="/data/\x1b[2Jx", status="ok", seconds=1.0),
    ),
    devices=(
        DeepDevice(index=0, name="Tesla T4", compute_capability="7.5", memory_free_bytes=14 << 30),
    ),
    ranks=2,
    read_bytes_per_s=200 << 20,
    limit_s=60,
)  # fmt: skip


def test_each_step_stands_in_one_line_with_its_time() -> None:
    assert list(deep_lines(TRIED, 100, False)) == [
        "Deep check: torch really used",
        "  ok         import torch 2.6.0+cu124                                    2.50 s",
        "  ok         cuda:0 starts: Tesla T4 (7.5), 14.0 GB free                 0.25 s",
        "  ok         cuda:0: a product in bf16 (this card has to emulate it)     0.01 s",
        "  crashed    import transformers",
        "               SIGSEGV",
        "  timed out  2 processes add up a tensor (nccl)                         30.00 s",
        "  ok         read /data/\\x1b[2Jx: 200 MB/s                               1.00 s",
        "  it was ended here, after 60 s: what comes behind was not tried",
    ]


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("width", [60, 100])
def test_it_fits_the_terminal(language: str, width: int) -> None:
    use_language(language)
    try:
        lines = list(deep_lines(TRIED, width, False))
    finally:
        use_language("en")
    assert [line for line in lines if display_width(line) > width] == []


def test_nothing_is_shown_where_nobody_asked() -> None:
    assert list(deep_lines(None, 100, False)) == []


def test_it_stands_in_the_json_report_as_its_schema_says() -> None:
    snapshot = Snapshot(facts=Facts(deep=ok(TRIED)))
    tree = json.loads(structured.as_json(judge(snapshot), snapshot, 0))
    jsonschema.validate(tree, schema.json_schema("report"))
    assert [step["status"] for step in tree["deep"]["steps"]][:2] == ["ok", "ok"]


# ------------------------------------------------------------------------------------------------ could not look
def machine(status: Status) -> Snapshot:
    log: Reading[KernelLog] = Reading(status=status, why=t("no permission"))
    return Snapshot(facts=Facts(host=ok(Host(arch="x86_64")), kernel_log=log))


def test_a_section_that_no_check_hangs_on_is_said_once_and_changes_no_exit_code() -> None:
    report = judge(machine("failed"))
    assert [item.section for item in report.unread] == ["kernel_log"]
    assert exit_code(report) == 0
    lines = list(text.report_lines(report, machine("failed")))
    said = [line for line in lines if "kernel log" in line]
    assert said == ["could not look at: kernel log (no permission)"]


@pytest.mark.parametrize("status", ["absent", "skipped"])
def test_what_is_not_there_or_was_not_asked_for_is_not_called_unread(status: Status) -> None:
    report = judge(machine(status))
    assert report.unread == ()
    assert "could not look" not in "\n".join(text.report_lines(report, machine(status)))


def test_a_section_that_checks_hang_on_is_not_said_twice() -> None:
    failed: Reading[Host] = Reading(status="failed", why=t("no /proc"))
    report = judge(Snapshot(facts=Facts(host=failed)))
    assert [item.section for item in report.unanswered] == ["host"]
    assert report.unread == ()
    assert exit_code(report) == 3


def test_markdown_and_sarif_name_it_too() -> None:
    report = judge(machine("failed"))
    assert "kernel\\_log" in structured.as_markdown(report, machine("failed")) or "kernel_log" in structured.as_markdown(report, machine("failed"))  # fmt: skip
    (run,) = json.loads(structured.as_sarif(report))["runs"]
    notes = run["invocations"][0]["toolExecutionNotifications"]
    assert [note["message"]["text"] for note in notes] == ["kernel_log: no permission"]
