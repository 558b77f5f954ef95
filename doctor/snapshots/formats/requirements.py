"""``requirements.txt``: exact versions, the index of each CUDA build, commits of VCS and editable installs. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from doctor.model import IndexLine, Snapshot, Text, t
from doctor.snapshots.formats.rendered import Rendered
from doctor.snapshots.formats.sources import Source, sources
from doctor.snapshots.formats.words import comment, head_lines


def render(snapshot: Snapshot) -> Rendered:
    found = sources(snapshot)
    lines = [
        *head_lines(snapshot),
        "# python -m pip install --no-deps -r requirements.txt",
        "# with uv: uv pip install --no-deps --index-strategy unsafe-best-match -r requirements.txt",
        *(comment(f"index used there: --{row.option} {row.url}") for row in _other_indexes(snapshot)),
        *option_lines(found),
        *requirement_lines(found),
    ]
    return Rendered(text="\n".join(lines) + "\n", lost=tuple(lost_by(found)), file_name="requirements.txt")


def option_lines(found: Sequence[Source]) -> list[str]:
    """Return the index lines that builds with a label need."""
    return [f"--extra-index-url {index}" for index in dict.fromkeys(one.index for one in found) if index]


def requirement_lines(found: Sequence[Source]) -> list[str]:
    """Return one line a distribution; hashes only where every line can have one, since pip asks for all or none."""
    hashed = bool(found) and all(one.kind == "index" and one.sha256 for one in found)
    lines = []
    for one in found:
        if one.kind == "none":
            lines.append(comment(f"{one.name} {one.version}: {one.problem}"))
        elif one.kind == "editable":
            lines.append(f"-e {one.requirement}")
        else:
            lines.append(one.requirement + (f" --hash=sha256:{one.sha256}" if hashed else ""))
    return lines


def lost_by(found: Sequence[Source]) -> list[Text]:
    """Return what a list of requirements cannot say of these."""
    problems = [one.problem for one in found if one.problem is not None]
    unhashed = sum(one.kind == "index" and not one.sha256 for one in found)
    if unhashed:
        problems.append(t("{count} {count:package|packages} without a file's digest: `doctor snapshot resolve` looks them up", count=unhashed))  # fmt: skip
    return [*problems, t("the driver, the cards, variables, code and data are not in it")]


def _other_indexes(snapshot: Snapshot) -> list[IndexLine]:
    provenance = snapshot.facts.provenance.value
    return [row for row in provenance.indexes if row.url.startswith("http")] if provenance else []
