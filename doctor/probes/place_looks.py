"""Whether a place is there, whether it can be written, and where its links lead."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from doctor.model import Place
from doctor.probes.bounded import names_in
from doctor.probes.gaps import Gaps
from doctor.probes.host_system import parse_passwd_homes
from doctor.probes.mountinfo import MountLine, mount_of
from doctor.probes.places import Wanted, places
from runner.strings import printable

if TYPE_CHECKING:
    from doctor.probes import Context


class Looked(msgspec.Struct, frozen=True):
    path: str
    """Where it really is, links followed."""
    exists: bool
    writable: bool


def wanted_places(context: Context) -> tuple[Wanted, ...]:
    home, user = _home_and_user(context)
    return places(context.environ, home, str(context.cwd), user, _transformers_major(context))


def _home_and_user(context: Context) -> tuple[str, str]:
    gaps = Gaps(context)
    uid = os.getuid()
    name, folder = (gaps.parse("home", "/etc/passwd", parse_passwd_homes) or {}).get(uid, (f"uid_{uid}", "/"))
    user = next((value for key in ("LOGNAME", "USER") if (value := context.environ.get(key))), name)
    return context.environ.get("HOME") or folder, user


def _transformers_major(context: Context) -> int | None:
    for folder in context.target.site_packages:
        for name in names_in(folder):
            # transformers-4.44.2.dist-info
            if match := re.fullmatch(r"transformers-(\d+)[^-]*\.dist-info", name):
                return int(match[1])
    return None


def look(context: Context, wanted: Wanted) -> Callable[[], Looked]:
    def ask() -> Looked:
        path = follow_links(context, wanted.path)
        there = os.path.lexists(context.path(path))
        return Looked(path, there, os.access(context.path(_nearest_existing(context, path)), os.W_OK))

    return ask


def follow_links(context: Context, path: str, depth: int = 20) -> str:
    """Return the real path below the context's root. A link loop or a dangling part leaves the rest as it is."""
    parts, real = [part for part in path.split("/") if part], ""
    while parts:
        part = parts.pop(0)
        try:
            link = os.readlink(context.path(f"{real}/{part}"))  # noqa: PTH115 - the link's text is the answer
        except OSError:
            real = real.rpartition("/")[0] if part == ".." else real if part == "." else f"{real}/{part}"
            continue
        if depth == 0:
            return "/".join([real, part, *parts])
        depth -= 1
        parts = [piece for piece in link.split("/") if piece] + parts
        real = "" if link.startswith("/") else real
    return real or "/"


def _nearest_existing(context: Context, path: str) -> str:
    while path != "/" and not os.path.lexists(context.path(path)):
        path = path.rpartition("/")[0] or "/"
    return path


def place_record(wanted: Wanted, looked: Looked | None, real: str, lines: tuple[MountLine, ...]) -> Place:
    mount = mount_of(real, lines)
    return Place(
        name=wanted.name,
        path=printable(wanted.path),
        exists=looked.exists if looked else None,
        mount=printable(mount.path) if mount else None,
        set_by=wanted.set_by,
        writable=looked.writable if looked else None,
    )
