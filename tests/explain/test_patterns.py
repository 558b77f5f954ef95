"""The pattern table: each pattern knows the raw line above it, each cause is a real id, strangers stay strangers."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from doctor.checks import all_checks
from doctor.explain import explain, extract_last_error
from doctor.explain.match import SUBJECTS, all_patterns, matches

FOLDER = Path(__file__).parent


def raw_lines() -> list[tuple[str, str]]:
    """Return ``(pattern id, raw line)`` from the comment above each Pattern."""
    found = []
    for name in SUBJECTS:
        path = FOLDER.parent.parent / "doctor" / "explain" / f"{name}.py"
        source = path.read_text("utf-8")
        lines = source.splitlines()
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Pattern":
                above = node.lineno - 2
                comment = re.fullmatch(r"\s*# (.*)", lines[above])
                identifier = next(word.value.value for word in node.keywords if word.arg == "id")  # type: ignore[attr-defined]
                assert comment, f"{path.name}:{node.lineno}: {identifier} has no raw line above it"
                found.append((identifier, comment[1]))
    return found


@pytest.mark.parametrize(("identifier", "line"), raw_lines(), ids=[row[0] for row in raw_lines()])
def test_a_pattern_knows_the_raw_line_above_it(identifier: str, line: str) -> None:
    pattern = next(item for item in all_patterns() if item.id == identifier)
    assert re.search(pattern.regex, line, re.MULTILINE), line


def test_ids_are_taken_once_and_hidden_ids_exist() -> None:
    ids = [item.id for item in all_patterns()]
    assert len(ids) == len(set(ids)) >= 60
    assert not {hidden for item in all_patterns() for hidden in item.hides} - set(ids)


def test_every_confirming_id_is_given_by_a_check_or_by_lint() -> None:
    from doctor.lint import RULE_IDS

    known = {finding_id for one in all_checks() for finding_id in one.ids} | set(RULE_IDS)
    assert not {finding_id for item in all_patterns() for finding_id in item.confirms} - known


def unrelated() -> list[str]:
    return (FOLDER / "unrelated.txt").read_text("utf-8").split("\n=====\n")


@pytest.mark.parametrize("text", unrelated(), ids=range(len(unrelated())))
def test_an_unrelated_traceback_stays_unknown(text: str) -> None:
    assert [item.id for item in matches(text)] == []
    assert explain(text).known == ()


def test_twenty_unrelated_tracebacks_are_held_against_it() -> None:
    assert len(unrelated()) >= 20


def test_a_late_cuda_error_hides_behind_what_it_really_is() -> None:
    text = (
        "Loss.cu:250: nll_loss: Assertion `t >= 0 && t < n_classes` failed.\n"
        "RuntimeError: CUDA error: device-side assert triggered\n"
        "CUDA kernel errors might be asynchronously reported at some other API call\n"
    )
    assert [item.id for item in matches(text)] == ["assert-label"]


def test_the_error_that_ended_the_run_comes_first() -> None:
    text = "Disabling PyTorch because PyTorch >= 2.4 is required but found 2.3.0\nModuleNotFoundError: No module named 'peft'\n"
    assert [item.id for item in matches(text)] == ["module-not-found", "transformers-disables-torch"]


def test_numbers_are_taken_from_the_line() -> None:
    (match,) = matches(
        "UserWarning: The NVIDIA driver on your system is too old (found version 11040). Please update"
    )
    assert match.extracted == {"found": "11040"}
    assert "11040" in str(match.meaning)


def test_an_unknown_text_still_gives_its_last_error_line() -> None:
    assert extract_last_error("Traceback\n  x\nfoo.BarError: 42\nbye\n") == "foo.BarError: 42"
