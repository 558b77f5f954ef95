"""/proc/self/mountinfo as records. Pure."""

from __future__ import annotations

import re

import msgspec


class MountLine(msgspec.Struct, frozen=True):
    """One mount as the kernel lists it; names as the system calls take them (surrogates for odd bytes)."""

    path: str
    fstype: str
    source: str
    root: str
    """What of the file system is shown there: ``/``, or a folder or file that was bind-mounted."""
    device: str
    """``MAJOR:MINOR``."""
    options: tuple[str, ...]
    super_options: tuple[str, ...]


def parse_mountinfo(text: str) -> tuple[MountLine, ...]:
    """Return the mounts in the kernel's order; of several at one path only the last, which hides the others.

    Lines that are not of the known form are left out.
    """
    found: dict[str, MountLine] = {}
    for line in text.split("\n"):
        mount = _parse_line(line)
        if mount is not None:
            found.pop(mount.path, None)
            found[mount.path] = mount
    return tuple(found.values())


def _parse_line(line: str) -> MountLine | None:
    # 36 35 98:0 /mnt1 /mnt/my\040disk rw,noatime master:1 - ext3 /dev/root rw,errors=continue
    left, separator, right = line.partition(" - ")
    before, after = left.split(" "), right.split(" ")
    if not separator or len(before) < 6 or len(after) < 3:
        return None
    return MountLine(
        path=unescape_octal(before[4]),
        fstype=unescape_octal(after[0]),
        source=unescape_octal(after[1]),
        root=unescape_octal(before[3]),
        device=before[2],
        options=tuple(before[5].split(",")),
        super_options=tuple(after[2].split(",")),
    )


def unescape_octal(text: str) -> str:
    """Undo the kernel's escapes: blank, tab, line end, backslash and hash are written as ``\\040`` and so."""
    if "\\" not in text:
        return text
    return re.sub(r"\\([0-3][0-7]{2})", lambda match: chr(int(match[1], 8)), text)


def mount_of(path: str, mounts: tuple[MountLine, ...]) -> MountLine | None:
    """Return the mount that holds the absolute ``path``: the longest mount point above it."""
    above = [item for item in mounts if path == item.path or path.startswith(item.path.rstrip("/") + "/")]
    return max(above, key=lambda item: len(item.path), default=None)
