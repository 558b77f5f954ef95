"""Quotas asked of the kernel: only where a mount keeps them, and never an error for a user."""

from __future__ import annotations

import os
import struct
from pathlib import Path

import pytest

from doctor.probes.mountinfo import MountLine, parse_mountinfo
from doctor.probes.mounts import ask_size, mount_record
from doctor.probes.quotas import kinds_on, parse_row, quota_on
from tests.probes.roots import context_of

GIB = 1 << 30


def row(hard_kib: int, soft_kib: int, used_bytes: int) -> bytes:
    return struct.pack("=QQQQQQQQI", hard_kib, soft_kib, used_bytes, 0, 0, 0, 0, 0, 63)


def line(fstype: str = "ext4", options: str = "rw,quota,usrquota") -> MountLine:
    (mount,) = parse_mountinfo(f"36 35 98:0 / /home rw,relatime - {fstype} /dev/sda1 {options}\n")
    return mount


@pytest.mark.parametrize(
    ("fstype", "options", "kinds"),
    [
        ("ext4", "rw,quota,usrquota", (0,)),
        ("ext4", "rw,usrjquota=aquota.user,grpjquota=aquota.group,jqfmt=vfsv1", (0, 1)),
        ("xfs", "rw,usrquota,prjquota", (0,)),
        ("xfs", "rw,noquota", ()),
        ("xfs", "rw,pquota", ()),
        ("nfs4", "rw,usrquota", ()),
        ("ext4", "rw", ()),
    ],
)
def test_only_mounts_that_keep_quotas_are_asked(fstype: str, options: str, kinds: tuple[int, ...]) -> None:
    assert kinds_on(line(fstype, options)) == kinds


def test_the_quota_that_leaves_the_least_counts() -> None:
    rows = {0: row(20 << 20, 0, 18 * GIB), 1: row(0, 10 << 20, 9 * GIB)}
    found = quota_on(
        line(options="rw,usrquota,grpquota"), "/home", 1000, 100, lambda point, kind, who: rows[kind]
    )
    assert found is not None
    assert (found.limit_bytes, found.used_bytes, found.left_bytes) == (10 * GIB, 9 * GIB, GIB)


def test_no_limit_and_no_answer_are_both_no_quota() -> None:
    def refused(point: str, kind: int, who: int) -> bytes:
        raise OSError(3, "No such process")

    assert parse_row(row(0, 0, 5 * GIB)) is None
    assert quota_on(line(), "/home", 1000, 100, refused) is None


def test_a_users_quota_stands_beside_the_size_and_root_has_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = os.statvfs_result((GIB, GIB, 100, 50, 50, 1000, 900, 900, 0, 255))
    context = context_of(tmp_path, {})
    ask = ask_size(context, line(), lambda point: size, lambda point, kind, who: row(20 << 20, 0, 18 * GIB))
    monkeypatch.setattr(os, "getuid", lambda: 1000)
    mount = mount_record(context, line(), ask())
    assert (mount.quota_bytes, mount.quota_used_bytes, mount.size_bytes) == (20 * GIB, 18 * GIB, 100 * GIB)
    monkeypatch.setattr(os, "getuid", lambda: 0)
    assert mount_record(context, line(), ask()).quota_bytes is None


def test_a_disk_that_the_kernel_took_back_is_read_only(tmp_path: Path) -> None:
    (taken_back,) = parse_mountinfo("36 35 98:0 / /data rw,relatime - ext4 /dev/sdb1 ro,errors=remount-ro\n")
    assert mount_record(context_of(tmp_path, {}), taken_back, None).read_only is True
