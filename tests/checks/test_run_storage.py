"""Where a run writes and reads: room, quotas, disks that do not last, disks that are slow."""

from __future__ import annotations

from typing import Any

import pytest

from doctor.model import Mount, Platform, Storage, Workload, WriteProbe
from doctor.tables import load
from tests.checks.judged import findings, loud, said, the
from tests.checks.test_storage import GB, disks, mount

BUDGET = "checkpoint-budget-exceeds-disk"
BILLION = 1_000_000_000


@pytest.mark.parametrize(
    ("run", "free_gb", "expected"),
    [
        pytest.param(
            {}, 0.4, {BUDGET: "fail", "disk-nearly-full": "warn"}, id="no checkpoint fits in 0.4 GB"
        ),
        pytest.param({}, 30, {}, id="nothing is known of the model"),
        pytest.param(
            {"model_parameters": 22_000_000},
            0.8,
            {"disk-nearly-full": "warn"},
            id="a small model fits in 0.8 GB",
        ),
        pytest.param(
            {"model_parameters": 7 * BILLION},
            10,
            {BUDGET: "fail"},
            id="the weights of 7 B alone do not fit twice",
        ),
        pytest.param(
            {"model_parameters": 7 * BILLION}, 60, {BUDGET: "warn"}, id="with the optimizer they would not"
        ),
        pytest.param({"model_parameters": 7 * BILLION}, 300, {}, id="they fit"),
        pytest.param(
            {"checkpoint_bytes": 4 * GB, "checkpoints_kept": 3},
            15,
            {BUDGET: "fail"},
            id="a profile's own figures, one being written",
        ),
        pytest.param(
            {"model_parameters": 7 * BILLION, "optimizer": "adamw"},
            120,
            {BUDGET: "fail"},
            id="Adam's moments are saved with them",
        ),
        pytest.param(
            {"model_parameters": 7 * BILLION, "optimizer": "adamw_bnb_8bit"},
            120,
            {BUDGET: "warn"},
            id="in 8 bit they are small",
        ),
        pytest.param(
            {
                "model_parameters": 7 * BILLION,
                "optimizer": "adamw",
                "training_args": {"save_only_model": True},
            },
            120,
            {},
            id="the model alone is saved",
        ),
        pytest.param({"checkpoint_bytes": 4 * GB, "checkpoints_kept": 3}, 17, {}, id="just enough"),
        pytest.param(
            {"checkpoint_bytes": 4 * GB, "training_args": {"save_total_limit": 2}},
            11,
            {BUDGET: "fail"},
            id="save_total_limit counts",
        ),
    ],
)
def test_room_for_checkpoints(run: dict[str, Any], free_gb: float, expected: dict[str, str]) -> None:
    storage = disks(mount("/", 100), mount("/data", free_gb))
    assert loud(storage=storage, workload=Workload(output_dir="/data/out", **run)) == expected


def test_room_is_measured_where_the_output_lies_and_not_on_the_root() -> None:
    storage = disks(mount("/", 0.5), mount("/data", 90))
    given = findings(storage=storage, workload=Workload(output_dir="/data/out"))
    assert BUDGET not in {item.id for item in given}


def quota(left_gb: float, errno: int | None) -> Storage:
    share = Mount(
        path="/share",
        fstype="nfs4",
        size_bytes=9000 * GB,
        free_bytes=4000 * GB,
        quota_bytes=100 * GB,
        quota_used_bytes=int((100 - left_gb) * GB),
    )
    probes = () if errno is None else (WriteProbe(path="/share/me", size_bytes=1 << 20, errno=errno),)
    return Storage(mounts=(share,), write_probes=probes)


QUOTA = "quota-exceeded-on-target"


@pytest.mark.parametrize(
    ("storage", "expected"),
    [
        pytest.param(quota(0, 122), {QUOTA: "fail"}, id="a trial write is refused"),
        pytest.param(quota(50, 122), {QUOTA: "fail"}, id="another quota than the one that is shown"),
        pytest.param(quota(0.3, 0), {QUOTA: "warn"}, id="300 MB left, still writable"),
        pytest.param(quota(0, None), {QUOTA: "fail"}, id="used up, nobody tried"),
        pytest.param(quota(40, 0), {}, id="40 GB left"),
        pytest.param(quota(40, 30), {"target-not-writable": "fail"}, id="read-only is another matter"),
        pytest.param(quota(40, 13), {"target-not-writable": "fail"}, id="so is a missing permission"),
    ],
)
def test_quotas_and_refused_writes(storage: Storage, expected: dict[str, str]) -> None:
    assert loud(storage=storage, workload=Workload(output_dir="/share/me")) == expected


EPHEMERAL = "output-on-ephemeral-disk"
VOLUME = mount("/workspace", 150)


@pytest.mark.parametrize(
    ("platform", "mounts", "output", "level"),
    [
        pytest.param(
            "runpod",
            (mount("/", 40, fstype="overlay"), VOLUME),
            "/root/out",
            "warn",
            id="RunPod: container disk",
        ),
        pytest.param(
            "runpod", (mount("/", 40, fstype="overlay"), VOLUME), "/workspace/out", None, id="RunPod: volume"
        ),
        pytest.param(
            "colab", (mount("/", 40, fstype="overlay"),), "/content/out", "warn", id="Colab: session disk"
        ),
        pytest.param(
            "colab",
            (mount("/", 40), mount("/content/drive", 10, fstype="fuse.drive")),
            "/content/drive/MyDrive/out",
            None,
            id="Colab: Drive",
        ),
        pytest.param("kaggle", (mount("/", 40),), "/tmp/out", "warn", id="Kaggle: scratch"),
        pytest.param("kaggle", (mount("/", 40),), "/kaggle/working/out", None, id="Kaggle: working"),
        pytest.param(
            "autodl",
            (mount("/", 20), mount("/root/autodl-tmp", 80)),
            "/root/autodl-tmp/out",
            "note",
            id="AutoDL: data disk stays until release",
        ),
        pytest.param(
            "autodl",
            (mount("/", 20), mount("/root/autodl-fs", 80, fstype="nfs4")),
            "/root/autodl-fs/out",
            None,
            id="AutoDL: file storage stays",
        ),
        pytest.param("vast", (mount("/", 20),), "/root/out", "note", id="vast.ai: until destroyed"),
        pytest.param("lambda", (mount("/", 900),), "/home/ubuntu/out", "note", id="Lambda: until terminated"),
        pytest.param(
            "kubernetes",
            (mount("/", 40, fstype="overlay"), mount("/mnt/pvc", 90)),
            "/mnt/pvc/out",
            None,
            id="Kubernetes: a volume under the root",
        ),
        pytest.param("", (mount("/", 40),), "/root/out", None, id="no platform recognised"),
        pytest.param(
            "", (mount("/", 40), mount("/dev/shm", 30, fstype="tmpfs")), "/dev/shm/out", "warn", id="memory"
        ),
    ],
)
def test_disks_that_do_not_last(
    platform: str, mounts: tuple[Mount, ...], output: str, level: str | None
) -> None:
    given = said(
        storage=disks(*mounts), workload=Workload(output_dir=output), platform=Platform(name=platform)
    )
    assert given.get(EPHEMERAL) == level


def test_the_advice_names_the_disk_that_stays() -> None:
    storage = disks(mount("/", 40, fstype="overlay"), VOLUME)
    found = the(
        EPHEMERAL,
        storage=storage,
        workload=Workload(output_dir="/root/runs/a"),
        platform=Platform(name="runpod"),
    )
    assert "Write to /workspace/a" in str(found.advice)


@pytest.mark.parametrize(
    ("platform", "cwd", "found"),
    [
        pytest.param("runpod", "/root/project", True, id="RunPod: container disk"),
        pytest.param("runpod", "/workspace/project", False, id="RunPod: volume"),
        pytest.param("autodl", "/root/project", False, id="AutoDL keeps it over a stop"),
        pytest.param("", "/root/project", False, id="no platform recognised"),
    ],
)
def test_the_working_directory_on_a_disk_that_is_emptied(platform: str, cwd: str, found: bool) -> None:
    storage = disks(mount("/", 40, fstype="overlay"), VOLUME, cwd=cwd)
    given = said(storage=storage, platform=Platform(name=platform))
    assert given.get("work-on-ephemeral-disk") == ("note" if found else None)


NET, SLOW = "data-on-network-mount", "data-on-slow-disk"
MB = 1 << 20


@pytest.mark.parametrize(
    ("data", "run", "expected"),
    [
        pytest.param(
            mount("/net", 900, fstype="nfs4"),
            {"data_files": 500_000, "gpu_utilization_pct": 20},
            {NET: "warn"},
            id="many files over NFS, the GPU waits",
        ),
        pytest.param(
            mount("/net", 900, fstype="lustre"),
            {"data_files": 500_000},
            {NET: "warn"},
            id="many files over Lustre, nobody looked at the GPU",
        ),
        pytest.param(
            mount("/net", 900, fstype="nfs4"),
            {"data_files": 500_000, "gpu_utilization_pct": 97},
            {},
            id="the GPU is busy",
        ),
        pytest.param(
            mount("/net", 900, fstype="nfs4"), {"data_files": 8}, {NET: "note"}, id="few large files"
        ),
        pytest.param(
            mount("/net", 900, fstype="nfs4", read_bytes_per_s=900.0 * MB),
            {"data_files": 8, "gpu_utilization_pct": 30},
            {},
            id="a share that was measured fast",
        ),
        pytest.param(
            mount("/net", 900, fstype="xfs"),
            {"data_files": 500_000, "gpu_utilization_pct": 20},
            {},
            id="a local disk",
        ),
        pytest.param(
            mount("/net", 900, fstype="ext4", read_bytes_per_s=60.0 * MB),
            {"gpu_utilization_pct": 20},
            {SLOW: "warn"},
            id="measured slow, the GPU waits",
        ),
        pytest.param(
            mount("/net", 900, fstype="ext4", read_bytes_per_s=60.0 * MB),
            {"gpu_utilization_pct": 95},
            {},
            id="measured slow, the GPU is busy",
        ),
        pytest.param(
            mount("/net", 900, fstype="ext4", rotational=True),
            {"data_files": 500_000},
            {SLOW: "warn"},
            id="many files on a rotating disk",
        ),
        pytest.param(
            mount("/net", 900, fstype="ext4", rotational=True),
            {"data_files": 3},
            {},
            id="few files on a rotating disk",
        ),
        pytest.param(
            mount("/net", 900, rotational=True),
            {"data_files": 3, "gpu_utilization_pct": 20},
            {SLOW: "warn"},
            id="few files on a rotating disk, the GPU waits",
        ),
    ],
)
def test_data_far_away(data: Mount, run: dict[str, Any], expected: dict[str, str]) -> None:
    given = said(storage=disks(mount("/", 500), data), workload=Workload(data_path="/net/data", **run))
    assert {name: level for name, level in given.items() if name in (NET, SLOW)} == expected


@pytest.mark.parametrize("fstype", ["xfs", "ext4", "overlay", ""])
@pytest.mark.parametrize("util", [None, 5.0, 40.0, 99.0])
def test_autodl_tmp_is_never_called_slow_by_its_name(fstype: str, util: float | None) -> None:
    storage = disks(mount("/", 10, 30), mount("/root/autodl-tmp", 80, fstype=fstype))
    run = Workload(data_path="/root/autodl-tmp/imagenet", data_files=2_000_000, gpu_utilization_pct=util)
    assert not {NET, SLOW} & set(said(storage=storage, workload=run, platform=Platform(name="autodl")))


def test_autodl_tmp_that_was_measured_slow_is_a_slow_disk() -> None:
    storage = disks(mount("/", 10, 30), mount("/root/autodl-tmp", 80, read_bytes_per_s=30.0 * MB))
    run = Workload(data_path="/root/autodl-tmp/imagenet", gpu_utilization_pct=10)
    assert said(storage=storage, workload=run, platform=Platform(name="autodl"))[SLOW] == "warn"


def test_autodl_fs_is_shared_whatever_type_its_mount_shows() -> None:
    storage = disks(mount("/", 10, 30), mount("/root/autodl-fs", 80, fstype="fuse.unknown"))
    run = Workload(data_path="/root/autodl-fs/imagenet", data_files=50_000)
    assert said(storage=storage, workload=run, platform=Platform(name="autodl"))[NET] == "warn"


def test_the_advice_copies_to_a_local_disk_with_room() -> None:
    storage = disks(mount("/", 500), mount("/net", 900, fstype="nfs4"), mount("/scratch", 700))
    run = Workload(data_path="/net/data", data_files=50_000, data_bytes=140 * GB)
    assert "rsync -a /net/data/ /scratch/data/" in str(the(NET, storage=storage, workload=run).advice)


@pytest.mark.parametrize(
    ("platform", "days"), [("autodl", "after 15 days stopped"), ("vast", "when it is released (vast.ai)")]
)
def test_when_a_stopped_machine_is_released_is_said_where_it_is_known(platform: str, days: str) -> None:
    disk = next(row for row in load("platforms")["disk"] if row["platform"] == platform and row.get("survives_stop") and row.get("survives_release") is False)  # fmt: skip
    path = f"{str(disk['path']).rstrip('/')}/out"
    found = the(
        "output-on-ephemeral-disk",
        storage=Storage(mounts=(Mount(path=str(disk["path"]), fstype="xfs", free_bytes=100 << 30),)),
        workload=Workload(output_dir=path),
        platform=Platform(name=platform),
    )
    assert found.level == "note"
    assert days in str(found.title)
