"""Plain Markdown: the environment as a page for an issue or a paper. Pure."""

from __future__ import annotations

from doctor.model import Snapshot, t
from doctor.snapshots.diff_packages import contents_of
from doctor.snapshots.formats.rendered import Rendered
from doctor.snapshots.formats.words import plain


def render(snapshot: Snapshot) -> Rendered:
    lines = [f"# {_cell(snapshot.label) or 'Environment'}", "", *_machine(snapshot), "", *_packages(snapshot)]
    lines += _code(snapshot)
    lost = (t("tags, requirements and files' digests are in the snapshot only"),)
    return Rendered(text="\n".join(lines).rstrip() + "\n", lost=lost, file_name="environment.md")


def _machine(snapshot: Snapshot) -> list[str]:
    facts = snapshot.facts
    host, python, driver, gpus, torch = facts.host.value, facts.python.value, facts.driver.value, facts.gpus.value, facts.torch.value  # fmt: skip
    cards = ", ".join(dict.fromkeys(gpu.name for gpu in gpus.items)) if gpus else ""
    rows = [
        ("taken", snapshot.taken_at), ("system", host.os_name if host else ""), ("glibc", host.glibc if host else ""),
        ("CPU", host.cpu_model if host else ""), ("GPU", f"{len(gpus.items)} x {cards}" if gpus and gpus.items else ""),
        ("driver", driver.version if driver else ""), ("CUDA of torch", torch.cuda if torch else ""),
        ("Python", python.version if python else ""), ("torch", torch.version if torch else ""),
    ]  # fmt: skip
    return [
        "| what | value |",
        "| --- | --- |",
        *(f"| {name} | {_cell(value)} |" for name, value in rows if value),
    ]


def _packages(snapshot: Snapshot) -> list[str]:
    packages, contents = snapshot.facts.packages.value, contents_of(snapshot)
    if packages is None:
        return []
    rows = [
        f"| {_cell(item.name)} | {_cell(item.version)} | {_origin(item.direct_url, contents.get(item.name))} |"
        for item in packages.items
        if packages.get(item.name) is item
    ]
    return ["| package | version | content |", "| --- | --- | --- |", *rows]


def _origin(url: str | None, content: object) -> str:
    digest = getattr(content, "record_sha256", "")[7:19]
    commit = getattr(content, "commit", "")[:12]
    return _cell(" ".join(part for part in (digest, commit, url or "") if part))


def _code(snapshot: Snapshot) -> list[str]:
    provenance = snapshot.facts.provenance.value
    lines: list[str] = []
    if provenance and provenance.git and provenance.git.commit:
        state = "with changes" if provenance.git.dirty else "unchanged"
        lines += ["", f"Code: {_cell(provenance.git.remote or '')} `{provenance.git.commit}` ({state})"]
    for row in provenance.data if provenance else ():
        lines += ["", f"Data: {_cell(row.path)}, {row.size_bytes} bytes, {row.sha256} ({row.how})"]
    return lines


def _cell(text: str | None) -> str:
    """Return a stranger's word as one cell: no pipe, no line end, no markup."""
    kept = plain(text or "")
    for character in "\\`|<>[]*_#":
        kept = kept.replace(character, f"\\{character}") if character in "\\`|<>[]*#" else kept
    return kept
