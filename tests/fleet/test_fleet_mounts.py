"""A folder that should be one for all machines: on another file system on some of them."""

from __future__ import annotations

from typing import Any

import pytest

from doctor.model import Mount, Place, Reading, Storage, ok, t
from tests.fleet.test_judge_fleet import fleet, said


def on(fstype: str, source: str, path: str = "/work/run") -> dict[str, Any]:
    mounts = (
        Mount(path="/", fstype="overlay", source="overlay"),
        Mount(path="/work", fstype=fstype, source=source),
    )
    return {"storage": ok(Storage(mounts=mounts, places=(Place(name="cwd", path=path),)))}


def test_a_share_that_one_machine_has_not_mounted_is_named() -> None:
    report = fleet(on("nfs4", "store:/work"), on("nfs4", "store:/work"), on("ext4", "/dev/vdb1"))
    assert said(report)["fleet-mount-differs"] == (
        "/work/run is not on the same file system everywhere: nfs4 store:/work (2), ext4 (rank 2)"
    )


SAME_PLACE = {
    "disks of their own, called differently": (on("ext4", "/dev/sda1"), on("ext4", "/dev/nvme0n1p1")),
    "each in a folder of its own": (on("nfs4", "store:/work", "/work/a"), on("ext4", "/dev/sda1", "/work/b")),
    "a storage that could not be read": (on("nfs4", "store:/work"), {"storage": Reading(status="failed", why=t("no"))}),
}  # fmt: skip


@pytest.mark.parametrize("changes", SAME_PLACE.values(), ids=SAME_PLACE.keys())
def test_what_may_lie_elsewhere_is_no_difference(changes: Any) -> None:
    assert said(fleet(*changes)) == {}
