"""Stacks as a picture: an icicle of each thread that does more than wait, outermost call on top. One file, no script, nothing fetched."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from html import escape

from doctor.call_tree import widths_of
from doctor.render.stack_forms import frame_name, owner_of
from doctor.stack_groups import Group
from doctor.stacks import Frame, Stack, only_waits

WIDTH, ROW = 1200, 18
LETTER = 6.6
"""Width of a letter of the font below, in the same units."""
DEEPEST = 150
NARROWEST = 0.4
"""A box below this width cannot be seen."""
_HEAD = 26


def flame_svg(groups: Sequence[Group], title: str) -> str:
    """Return an SVG with one panel for each process; a box's tooltip says function, line and share of looks."""
    parts: list[str] = []
    y = 40
    for heading, stacks in _panels(groups):
        parts.append(f'<text x="8" y="{y + 16}" font-weight="bold">{escape(heading)}</text>')
        y += _HEAD
        boxes = list(_boxes(stacks))
        parts += [_box(x, y + depth * ROW, width, frame, share) for depth, x, width, frame, share in boxes]
        y += (max((box[0] for box in boxes), default=0) + 1) * ROW + 14
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y}" width="{WIDTH}" height="{y}" '
        'font-family="ui-monospace,Menlo,Consolas,monospace" font-size="11"><rect width="100%" height="100%" fill="#fff"/>'
        f'<text x="8" y="24" font-size="15">{escape(title)}</text>'
    )
    return "\n".join([head, *parts, "</svg>\n"])


def _panels(groups: Sequence[Group]) -> Iterator[tuple[str, list[Stack]]]:
    """Yield each process's main thread and the side threads that do more than wait, the trainer's first."""
    for group in groups:
        threads: dict[tuple[int, int], list[Stack]] = {}
        for stack in group.stacks:
            if stack.frames:
                threads.setdefault((stack.pid, stack.thread_id), []).append(stack)
        ordered = sorted(
            threads.values(), key=lambda stacks: (stacks[0].pid != group.pid, not stacks[0].is_main)
        )
        for stacks in ordered:
            if not only_waits(stacks):
                looks = sum(stack.count for stack in stacks)
                heading = " / ".join(owner_of(group, stacks[0]))
                yield f"{heading}: {looks} looks", stacks


def _boxes(stacks: Sequence[Stack]) -> Iterator[tuple[int, float, float, Frame, float]]:
    for depth, begin, share, frame in widths_of(stacks, DEEPEST):
        width = share * (WIDTH - 16)
        if width >= NARROWEST:
            yield depth, 8 + begin * (WIDTH - 16), width, frame, share


def _box(x: float, y: float, width: float, frame: Frame, share: float) -> str:
    words = frame_name(frame)
    room = int((width - 6) / LETTER)
    shown = words if len(words) <= room else words[: room - 1] + "…" if room > 3 else ""
    label = f'<text x="{x + 3:.1f}" y="{y + 12.5:.1f}">{escape(shown)}</text>' if shown else ""
    return (
        f'<g><title>{escape(words)} {100 * share:.1f} %</title><rect x="{x:.2f}" y="{y}" width="{width:.2f}" '
        f'height="{ROW - 1}" fill="{_colour(frame.file)}"/>{label}</g>'
    )


def _colour(file: str) -> str:
    """Return a light colour that is the same for the same file."""
    return f"hsl({zlib.crc32(file.encode('utf-8', 'replace')) % 360},55%,82%)"
