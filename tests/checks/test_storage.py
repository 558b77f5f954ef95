"""Disks: full, out of inodes, too small for the caches. Judged by figures and mount types, never by a path's name."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from doctor.model import Mount, Packages, Place, Storage, Workload
from tests.checks.judged import loud, packages, said, the, variables

GB = 1 << 30


def mount(
    path: str, free_gb: float | None, size_gb: float = 200, fstype: str = "ext4", **fields: Any
) -> Mount:
    free = None if free_gb is None else int(free_gb * GB)
    return Mount(path=path, fstype=fstype, size_bytes=int(size_gb * GB), free_bytes=free, **fields)


def disks(*mounts: Mount, **places: str) -> Storage:
    return Storage(mounts=mounts, places=tuple(Place(name=name, path=path) for name, path in places.items()))


HUB = packages(transformers="4.49.0")
CACHE = {"hf_home": "/root/.cache/huggingface"}
SMALL = "hf-cache-on-small-disk"


@pytest.mark.parametrize(
    ("storage", "installed", "expected"),
    [
        pytest.param(
            disks(mount("/", 3, 30), mount("/root/autodl-tmp", 180), **CACHE),
            HUB,
            {SMALL: "fail"},
            id="3 GB beside a data disk",
        ),
        pytest.param(
            disks(mount("/", 9, 30), mount("/mnt/data", 180), **CACHE),
            HUB,
            {SMALL: "warn"},
            id="9 GB beside a data disk",
        ),
        pytest.param(disks(mount("/", 25, 30), mount("/mnt/data", 180), **CACHE), HUB, {}, id="room enough"),
        pytest.param(
            disks(mount("/", 9, 30), mount("/mnt/data", 12), **CACHE),
            HUB,
            {},
            id="the other disk has hardly more",
        ),
        pytest.param(
            disks(mount("/", 3, 30), mount("/mnt/data", 180, read_only=True), **CACHE),
            HUB,
            {},
            id="the other disk is read-only",
        ),
        pytest.param(
            disks(mount("/", 3, 30), mount("/dev/shm", 60, 60, "tmpfs"), **CACHE),
            HUB,
            {},
            id="memory is no disk",
        ),
        pytest.param(
            disks(mount("/", 3, 30), mount("/etc/hosts", 900, 900), **CACHE),
            HUB,
            {},
            id="a bind mount of the container engine's",
        ),
        pytest.param(
            disks(mount("/", 3, 30), mount("/data", 180), hf_home="/data/hf"),
            HUB,
            {},
            id="the cache lies on the large disk",
        ),
        pytest.param(
            disks(mount("/", 3, 30), mount("/data", 180), **CACHE),
            packages(numpy="2.0"),
            {},
            id="nothing here downloads from the hub",
        ),
        pytest.param(
            disks(mount("/", None, 30), mount("/data", 180), **CACHE),
            HUB,
            {},
            id="free space that could not be read",
        ),
    ],
)
def test_the_hub_cache_and_the_disk_it_lies_on(
    storage: Storage, installed: Packages, expected: dict[str, str]
) -> None:
    assert loud(storage=storage, packages=installed) == expected


def test_a_quota_on_a_large_share_makes_it_a_small_disk() -> None:
    home = mount("/home", 9000, 40000, "nfs4", quota_bytes=20 * GB, quota_used_bytes=19 * GB)
    storage = disks(mount("/", 50), home, mount("/scratch", 2000), hf_home="/home/me/.cache/huggingface")
    assert loud(storage=storage, packages=HUB) == {SMALL: "fail"}


def test_the_advice_moves_the_variable_that_places_the_cache() -> None:
    home = disks(mount("/", 3, 30), mount("/data", 180), **CACHE)
    assert "export HF_HOME=/data/hf ." in str(the(SMALL, storage=home, packages=HUB).advice)
    own = Place(name="hf_hub_cache", path="/root/hub", set_by="HF_HUB_CACHE")
    hub = Storage(mounts=home.mounts, places=(own,))
    assert "export HF_HUB_CACHE=/data/hf/hub ." in str(the(SMALL, storage=hub, packages=HUB).advice)


@pytest.mark.parametrize(
    ("one", "expected"),
    [
        pytest.param(mount("/", 0.05), {"disk-nearly-full": "fail"}, id="50 MB"),
        pytest.param(mount("/", 1), {"disk-nearly-full": "warn"}, id="1 GB"),
        pytest.param(mount("/", 3), {}, id="3 GB"),
        pytest.param(mount("/", 1.8, 5), {}, id="a third of a small disk"),
        pytest.param(mount("/", 0.9, 30), {"disk-nearly-full": "warn"}, id="the last 3 % of a system disk"),
        pytest.param(mount("/", 0, 0.5), {}, id="a tiny read-only-like mount"),
        pytest.param(mount("/", 0, 4, "squashfs"), {}, id="a squashfs is always full"),
        pytest.param(mount("/", 0, 4, error="statvfs hung"), {}, id="sizes nobody could read"),
        pytest.param(mount("/mnt/other", 0), {}, id="a disk this session does not write to"),
    ],
)
def test_nearly_full_disks(one: Mount, expected: dict[str, str]) -> None:
    assert loud(storage=disks(one)) == expected


@pytest.mark.parametrize(
    ("one", "expected"),
    [
        pytest.param(
            mount("/data", 50, inodes_free=0, inodes_total=200_000),
            {"inode-exhausted": "fail"},
            id="none left",
        ),
        pytest.param(
            mount("/data", 50, inodes_free=400, inodes_total=200_000),
            {"inode-exhausted": "warn"},
            id="few left",
        ),
        pytest.param(mount("/data", 50, inodes_free=150_000, inodes_total=200_000), {}, id="plenty"),
        pytest.param(
            mount("/data", 50, 200, "btrfs", inodes_free=0, inodes_total=0),
            {},
            id="a file system that counts none",
        ),
        pytest.param(
            mount("/data", 50, inodes_free=0, inodes_total=0), {}, id="a share that reports none at all"
        ),
        pytest.param(
            mount("/data", 50, 200, "fuse", inodes_free=0, inodes_total=200_000),
            {"inode-exhausted": "fail"},
            id="AutoDL's shared file system, which counts them",
        ),
        pytest.param(mount("/data", 50, 200, "fuse.x", inodes_free=0), {}, id="a fuse that may count none"),
    ],
)
def test_inodes(one: Mount, expected: dict[str, str]) -> None:
    run = Workload(output_dir="/data/out")
    assert loud(storage=disks(mount("/", 50), one), workload=run) == expected


def test_a_disk_without_a_single_inode_is_named_whoever_uses_it() -> None:
    bare = mount("/mnt/data", 50, inodes_free=0)
    assert loud(storage=disks(mount("/", 50), bare)) == {"inode-exhausted": "fail"}


def test_xet_data_stays_behind_when_only_the_hub_cache_moves() -> None:
    storage = disks(mount("/", 9, 9.5), mount("/data", 180), **CACHE)
    have = packages(hf_xet="1.1.0")
    assert "xet-cache-on-small-disk" in said(
        storage=storage, packages=have, environment=variables(HF_HUB_CACHE="/data/hub")
    )
    assert "xet-cache-on-small-disk" not in said(
        storage=storage, packages=have, environment=variables(HF_HOME="/data")
    )


DISK_FINDINGS = {"disk-nearly-full", SMALL, "inode-exhausted", "checkpoint-budget-exceeds-disk"}


@given(st.floats(0, 100), st.floats(0, 100), st.integers(0, 10**6), st.integers(0, 10**6))
def test_more_room_never_adds_a_finding_about_its_disk(less: float, more: float, few: int, many: int) -> None:
    less, more, few, many = min(less, more), max(less, more), min(few, many), max(few, many)

    def findings(free_gb: float, inodes: int) -> set[str]:
        root = mount("/", free_gb, 100, inodes_free=inodes, inodes_total=10**6)
        storage = disks(root, mount("/data", 400), **CACHE)
        run = Workload(output_dir="/root/out", model_parameters=7_000_000_000)
        return DISK_FINDINGS & set(said(storage=storage, packages=HUB, workload=run))

    assert findings(more, many) <= findings(less, few)
