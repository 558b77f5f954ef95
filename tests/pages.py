"""docs/findings/ from doctor/pages/: ``python -m tests.pages [--write]`` says which ids lack a page, and writes the files."""

from __future__ import annotations

import sys
from pathlib import Path

from doctor.checks import all_checks
from doctor.fleet import FLEET_IDS
from doctor.language import use_language
from doctor.lint import RULE_IDS
from doctor.pages import all_pages, page

FOLDER = Path(__file__).parent.parent / "docs" / "findings"
LANGUAGES = ("en", "zh")


def all_ids() -> list[str]:
    """Return every finding id that a check, a lint rule or the comparing of machines may give, sorted."""
    return sorted({finding_id for one in all_checks() for finding_id in one.ids} | {*RULE_IDS, *FLEET_IDS})


def problems() -> list[str]:
    """Return what is wrong: ids without a page, pages without an id, missing languages or fields."""
    pages, ids = all_pages(), all_ids()
    found = [f"{finding_id}: no page" for finding_id in ids if finding_id not in pages]
    found += [f"{finding_id}: no check gives it" for finding_id in pages if finding_id not in ids]
    for finding_id, languages in pages.items():
        for language in LANGUAGES:
            fields = languages.get(language, {})
            if not fields.get("means") or not fields.get("do"):
                found.append(f"{finding_id}: {language} lacks means or do")
            if len(fields.get("do", [])) != len(languages.get("en", {}).get("do", [])):
                found.append(f"{finding_id}: {language} has another number of steps")
    return found


def files() -> dict[Path, str]:
    """Return the files of docs/findings with their content."""
    made: dict[Path, str] = {}
    for language in LANGUAGES:
        use_language(language)
        folder = FOLDER if language == "en" else FOLDER / language
        for finding_id in all_pages():
            made[folder / f"{finding_id}.md"] = (page(finding_id, language) or "") + "\n"
    use_language("en")
    return made


def main() -> int:
    """Print the problems; with ``--write`` make docs/findings anew."""
    found = problems()
    print("\n".join(found))
    print(f"{len(all_pages())} pages, {len(found)} problems")
    if "--write" in sys.argv:
        for path in (*FOLDER.glob("*.md"), *FOLDER.glob("zh/*.md")):
            path.unlink()
        for path, text in files().items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
