"""``python -m tests.cases FILE.toml [--json]``: what the doctor says of each case, and the totals."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tests.cases.outcome import Outcome, find_lint, load_cases, try_case


def main(argv: list[str] | None = None) -> int:
    """Return 0 when every case passed, 1 when one did not, 2 when the file could not be read."""
    parser = argparse.ArgumentParser(prog="python -m tests.cases", description=__doc__)
    parser.add_argument("file", type=Path, help="a file of cases in the form of open.toml")
    parser.add_argument("--json", action="store_true", help="one JSON object instead of text")
    parser.add_argument("--failing", action="store_true", help="text: only the cases that did not pass")
    options = parser.parse_args(argv)
    try:
        cases = load_cases(options.file)
    except (OSError, ValueError) as error:
        print(f"{options.file}: {error}", file=sys.stderr)
        return 2
    lint = find_lint()
    outcomes = [try_case(case, lint) for case in cases]
    if options.json:
        print(json.dumps(_tree(outcomes), ensure_ascii=False, indent=1))
    else:
        print("\n".join(_text(outcomes, options.failing)))
    return 0 if all(outcome.passed for outcome in outcomes) else 1


def totals(outcomes: list[Outcome]) -> dict[str, int]:
    """Return the figures that matter: expected found and missed, forbidden said, noise on the innocent."""
    innocent = [outcome for outcome in outcomes if outcome.innocent]
    return {
        "cases": len(outcomes),
        "passed": sum(outcome.passed for outcome in outcomes),
        "found": sum(len(outcome.found) for outcome in outcomes),
        "missed": sum(len(outcome.missed) for outcome in outcomes),
        "forbidden": sum(len(outcome.forbidden) for outcome in outcomes),
        "not_checked": sum(len(outcome.not_checked) for outcome in outcomes),
        "innocent": len(innocent),
        "false_alarms": sum(len(outcome.extra) for outcome in innocent),
        "extra": sum(len(outcome.extra) for outcome in outcomes if not outcome.innocent),
        "crashed": sum(bool(outcome.crashed) for outcome in outcomes),
    }


def _tree(outcomes: list[Outcome]) -> dict[str, Any]:
    cases = []
    for outcome in outcomes:
        row = asdict(outcome) | {"passed": outcome.passed}
        row["findings"] = [_finding(item) for item in outcome.findings]
        cases.append(row)
    return {"cases": cases, "totals": totals(outcomes)}


def _finding(item: Any) -> dict[str, str]:
    return {
        "id": item.id,
        "level": item.level,
        "subject": item.subject,
        "title": str(item.title),
        "advice": str(item.advice or ""),
    }


def _text(outcomes: list[Outcome], failing_only: bool) -> list[str]:
    lines = []
    for outcome in outcomes:
        if failing_only and outcome.passed:
            continue
        lines.append(f"{'ok  ' if outcome.passed else 'FAIL'} {outcome.case_id}")
        rows = (
            ("found", outcome.found), ("missed", outcome.missed), ("forbidden", outcome.forbidden),
            ("not checked", outcome.not_checked), ("extra", outcome.extra), ("crashed", outcome.crashed),
            ("keys ignored", outcome.ignored_keys),
        )  # fmt: skip
        lines += [f"     {name}: {'; '.join(what)}" for name, what in rows if what]
        if outcome.script_not_read:
            lines.append("     the script was not read: this doctor has no doctor.lint.lint_source")
        lines += [
            f"     - {item.level:7} {item.id} [{item.subject}] {item.title}" for item in outcome.findings
        ]
        lines += [f"     - {words}" for words in outcome.said]
    return [*lines, "  ".join(f"{name}: {number}" for name, number in totals(outcomes).items())]


if __name__ == "__main__":
    raise SystemExit(main())
