"""Lines that several formats share: what the file is, and a stranger's words made safe as a comment. Pure."""

from __future__ import annotations

from doctor.checks.versions import minor
from doctor.model import Snapshot
from runner.strings import shown


def comment(text: str) -> str:
    """Return ``text`` as one comment line, whatever is in it."""
    return f"# {plain(text)}"


def plain(text: str, limit: int = 300) -> str:
    """Return ``text`` on one line of characters that no tool takes for an end of line."""
    return shown(" ".join(text.split()))[:limit]


def head_lines(snapshot: Snapshot) -> list[str]:
    """Return comment lines that say of what and when."""
    python, host, torch = snapshot.facts.python.value, snapshot.facts.host.value, snapshot.facts.torch.value
    parts = [
        f"Python {python.version}" if python and python.version else "",
        f"glibc {host.glibc}" if host and host.glibc else "",
        f"torch {torch.version}" if torch else "",
        f"CUDA {torch.cuda}" if torch and torch.cuda else "",
    ]
    return [
        comment(f"from a doctor snapshot, taken {snapshot.taken_at} by {snapshot.tool}"),
        comment(", ".join(part for part in parts if part)),
    ]


def python_minor(snapshot: Snapshot) -> str:
    """Return ``3.11``; empty where the snapshot does not say, or says what is none."""
    python = snapshot.facts.python.value
    found = minor(python.version) if python else None
    return found or ""
