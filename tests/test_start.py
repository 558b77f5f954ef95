"""How ``check`` begins and leaves: only its own parser is made, the checks load while probes run, nothing printed is lost."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from doctor.commands import VERBS
from doctor.commands.parser import build_parser
from doctor.probes import Context, read_facts


def test_a_verb_that_stands_first_makes_no_other_verbs_parser() -> None:
    alone, all_of_them = build_parser("check", "en", True), build_parser("check", "en")
    assert "stage" in all_of_them.format_help() and "stage" not in alone.format_help()
    assert alone.format_usage() == all_of_them.format_usage()
    assert set(VERBS) >= {"check", "stage"}


def test_what_is_to_be_done_meanwhile_is_done_once_and_before_the_facts_are_there(tmp_path: Path) -> None:
    calls: list[str] = []
    facts = read_facts(
        Context(root=tmp_path, environ={}), ["environment"], meanwhile=lambda: calls.append("x")
    )
    assert calls == ["x"] and facts.environment.status == "ok"


def test_check_leaves_with_its_status_and_its_whole_report() -> None:
    argv = [sys.executable, "-m", "doctor", "check", "--json", "--fail-on", "unknown"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout.endswith("}\n") and done.returncode in (0, 1, 3), done.stderr
    wrong = subprocess.run([*argv[:4], "--nonsense"], capture_output=True, text=True, timeout=60, check=False)
    assert wrong.returncode == 2 and "--nonsense" in wrong.stderr
