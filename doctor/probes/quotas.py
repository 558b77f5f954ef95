"""What a quota of this user leaves on a file system: asked of the kernel, by the mount point alone, nothing written.

Only local file systems that are mounted with quotas are asked. What a project quota leaves, statvfs says by itself
(docker's ``size=`` on xfs too); the quotas of NFS and Lustre only their own commands know.
"""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Callable

import msgspec

from doctor.probes.mountinfo import MountLine

_LOCAL = frozenset({"ext2", "ext3", "ext4", "xfs", "f2fs", "jfs", "reiserfs", "gfs2", "ocfs2"})
_SYS_QUOTACTL_FD = 443
"""One number on every architecture; Linux 5.14 and newer."""
_Q_GETQUOTA = 0x800007
_USER, _GROUP = 0, 1
# struct if_dqblk of linux/quota.h: limits in KiB, the space used in bytes
_ROW = struct.Struct("=QQQQQQQQI")

Ask = Callable[[str, int, int], bytes]
"""(mount point, user or group, its id) -> the kernel's row; raises OSError."""


class Quota(msgspec.Struct, frozen=True):
    limit_bytes: int
    used_bytes: int

    @property
    def left_bytes(self) -> int:
        return max(0, self.limit_bytes - self.used_bytes)


def kinds_on(line: MountLine) -> tuple[int, ...]:
    """Return which quotas a mount keeps: ``usrquota``, ``uquota``, ``grpquota`` ... in its options."""
    if line.fstype not in _LOCAL:
        return ()
    words = {option.partition("=")[0] for option in line.super_options}
    user = words & {"usrquota", "uquota", "usrjquota", "quota"}
    group = words & {"grpquota", "gquota", "grpjquota"}
    return (*([_USER] if user else []), *([_GROUP] if group else []))


def quota_on(line: MountLine, point: str, uid: int, gid: int, ask: Ask | None = None) -> Quota | None:
    """Return the quota that leaves the least; None: no limit is set, or the kernel does not tell."""
    found = []
    for kind in kinds_on(line):
        try:
            row = parse_row((ask or ask_kernel)(point, kind, uid if kind == _USER else gid))
        except OSError:  # no quota kept, an older kernel, not told to this user
            continue
        if row is not None:
            found.append(row)
    return min(found, key=lambda quota: quota.left_bytes, default=None)


def parse_row(raw: bytes) -> Quota | None:
    """Return the hard limit and what is used of it (the soft one where that is the only one); None: no limit."""
    hard, soft, used = _ROW.unpack(raw)[:3]
    limit = (hard or soft) * 1024
    return Quota(limit_bytes=limit, used_bytes=used) if limit else None


def ask_kernel(point: str, kind: int, identity: int) -> bytes:
    """Call quotactl_fd(2). Raises OSError."""
    call = ctypes.CDLL(None, use_errno=True).syscall
    buffer = ctypes.create_string_buffer(_ROW.size + 8)
    opened = os.open(point, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        command = ctypes.c_uint(_Q_GETQUOTA << 8 | kind)
        if call(_SYS_QUOTACTL_FD, opened, command, ctypes.c_uint(identity), buffer) != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
    finally:
        os.close(opened)
    return buffer.raw[: _ROW.size]
