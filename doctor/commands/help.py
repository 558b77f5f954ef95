"""``doctor help [ID]``: what a finding means and what to do about it; without an id, every id with its question."""

from __future__ import annotations

import argparse

from doctor.commands import CommandError, Exit
from doctor.language import say


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "id", nargs="?", metavar="ID", help=say("a finding's id, as `doctor check` prints it in brackets")
    )
    parser.add_argument(
        "--schema",
        choices=("report", "snapshot", "watch"),
        help=say("print the JSON Schema of the report, of the snapshot file, or of a line of watch --json"),
    )


def run(namespace: argparse.Namespace) -> int:
    from doctor.checks import all_checks
    from runner.text import t

    if namespace.schema:
        from doctor.render.schema import encoded

        print(encoded(namespace.schema))
        return Exit.OK
    if namespace.id is None:
        for one in all_checks():
            print(f"{', '.join(one.ids)}\n    {one.question}")
        return Exit.OK
    page = _page(namespace.id)
    if page is None:
        from doctor.lint import RULE_IDS

        near = _near(
            namespace.id, [finding_id for one in all_checks() for finding_id in one.ids] + list(RULE_IDS)
        )
        raise CommandError(
            t("no finding is called {id}. Near it: {near}", id=namespace.id, near=near or "-"), Exit.USAGE
        )
    print(page)
    return Exit.OK


def _page(finding_id: str) -> str | None:
    from doctor import pages
    from doctor.language import current_language

    return pages.page(finding_id, current_language())


def _near(word: str, ids: list[str]) -> str:
    from difflib import get_close_matches

    return ", ".join(get_close_matches(word, ids, n=3, cutoff=0.4))
