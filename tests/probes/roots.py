"""Recorded file trees that stand for ``/``: what /proc, /sys and /etc say on a machine, written below a folder."""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from doctor.probes import Context
from doctor.probes.target import Target

FIRST = {"pid": 4026531836, "uts": 4026531838, "ipc": 4026531839, "cgroup": 4026531835}
MOUNTS_V2 = """\
1001 900 0:50 / / rw,relatime - overlay overlay rw,lowerdir=/l,upperdir=/u,workdir=/w
1002 1001 0:51 / /proc rw,nosuid - proc proc rw
1003 1001 0:26 / /sys/fs/cgroup ro,nosuid - cgroup2 cgroup rw,nsdelegate
1004 1001 0:52 / /dev/shm rw,nosuid - tmpfs shm rw,size=65536k
"""
STATUS = """\
Name:\tpython
Uid:\t1000\t1000\t1000\t1000
CapEff:\t00000000a80425fb
Seccomp:\t2
Cpus_allowed_list:\t0-3,8
"""


def write_tree(root: Path, files: Mapping[str, str]) -> Path:
    """Write ``files`` (absolute path -> text) below ``root`` and return it."""
    for path, text in files.items():
        target = root / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(text.encode("utf-8", "surrogateescape"))
    return root


def link_namespaces(root: Path, own: tuple[str, ...] = ()) -> None:
    """Link /proc/self/ns: the kernel's first namespaces, except those in ``own``."""
    folder = root / "proc/self/ns"
    folder.mkdir(parents=True, exist_ok=True)
    for name, inode in FIRST.items():
        (folder / name).symlink_to(f"{name}:[{4026532500 if name in own else inode}]")


def context_of(
    root: Path, environ: Mapping[str, str] | None = None, cwd: str = "/work", target: Target | None = None
) -> Context:
    """Return a context that looks below ``root`` only."""
    context = Context(root=root, environ=dict(environ or {}), cwd=Path(cwd))
    context.__dict__["target"] = target or Target(executable=None)
    return context


def forbid(monkeypatch: pytest.MonkeyPatch, below: Path) -> None:
    """Let the kernel refuse every file below a folder, as it would an ordinary user."""
    real = os.open

    def refuse(path: str | bytes | os.PathLike[str], flags: int, mode: int = 0o777) -> int:
        if str(path).startswith(f"{below}/"):
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return real(path, flags, mode)

    monkeypatch.setattr("doctor.probes.bounded.os.open", refuse)
