"""Rental platforms by their markers."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from doctor.probes import platform
from doctor.tables import platforms
from tests.probes.roots import MOUNTS_V2, context_of, forbid, write_tree

GB = 1 << 30


@pytest.mark.parametrize(
    ("files", "environ", "name", "evidence"),
    [
        pytest.param({"/root/autodl-tmp/x": ""}, {}, "autodl", "/root/autodl-tmp", id="autodl by its data disk"),
        pytest.param({"/proc/sys/kernel/hostname": "autodl-container-2f1c11-aa\n"}, {}, "autodl", "hostname autodl-container-*", id="autodl by its host name"),
        pytest.param({"/proc/1/environ": "AutoDLContainerUUID=u\0"}, {}, "autodl", "AutoDLContainerUUID", id="autodl, variable of process 1 only"),
        pytest.param({}, {"RUNPOD_POD_ID": "x", "RUNPOD_GPU_COUNT": "2"}, "runpod", "RUNPOD_POD_ID", id="runpod"),
        pytest.param({}, {"RUNPOD_POD_ID": "x", "KUBERNETES_SERVICE_HOST": "h"}, "runpod", "RUNPOD_POD_ID", id="what runs on kubernetes goes first"),
        pytest.param({}, {"KUBERNETES_SERVICE_HOST": "h"}, "kubernetes", "KUBERNETES_SERVICE_HOST", id="kubernetes alone"),
        pytest.param({}, {"CONTAINER_ID": "1", "CONTAINER_API_KEY": "k"}, "vast", "CONTAINER_ID+CONTAINER_API_KEY", id="vast by its two names"),
        pytest.param({"/lambda/nfs/data/x": ""}, {}, "lambda", "/lambda/nfs", id="lambda"),
        pytest.param({}, {"SLURM_JOB_ID": "4711"}, "slurm", "SLURM_JOB_ID", id="slurm"),
        pytest.param({"/hy-tmp/x": ""}, {}, "gpushare", "/hy-tmp", id="gpushare"),
    ],
)  # fmt: skip
def test_platforms(
    tmp_path: Path, files: dict[str, str], environ: dict[str, str], name: str, evidence: str
) -> None:
    found = platform.probe(context_of(write_tree(tmp_path, {"/proc/1/environ": "", **files}), environ)).value
    assert found is not None and found.name == name
    assert evidence in found.evidence


@pytest.mark.parametrize(
    ("files", "environ"),
    [
        pytest.param({"/workspace/x": ""}, {}, id="a /workspace of one's own"),
        pytest.param({"/etc/network_turbo": ""}, {}, id="only a weak marker"),
        pytest.param({}, {"CONTAINER_ID": "1"}, id="half of vast's pair"),
        pytest.param({}, {}, id="nothing"),
    ],
)
def test_weak_markers_recognise_nothing(
    tmp_path: Path, files: dict[str, str], environ: dict[str, str]
) -> None:
    reading = platform.probe(context_of(write_tree(tmp_path, {"/proc/1/environ": "", **files}), environ))
    assert reading.status == "absent" and reading.value is None


def test_absence_says_what_could_not_be_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_tree(tmp_path, {"/proc/1/environ": "RUNPOD_POD_ID=x\0"})
    forbid(monkeypatch, tmp_path / "proc/1")
    reading = platform.probe(context_of(tmp_path))
    assert reading.status == "absent" and "process 1" in str(reading.why)


def test_a_marker_behind_a_closed_folder_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_tree(tmp_path, {"/root/autodl-tmp/x": "", "/proc/1/environ": ""})
    real = Path.stat

    def stat(self: Path, **options: bool) -> os.stat_result:
        if str(self).startswith(f"{tmp_path}/root/"):
            raise PermissionError(13, "Permission denied", str(self))
        return real(self, **options)

    monkeypatch.setattr(Path, "stat", stat)
    reading = platform.probe(context_of(tmp_path))
    assert reading.status == "absent" and "/root/autodl-tmp" in str(reading.why)


@pytest.mark.parametrize(
    ("environ", "first", "count"),
    [
        pytest.param({"RUNPOD_GPU_COUNT": "2"}, "", 2, id="in the session"),
        pytest.param({}, "RUNPOD_GPU_COUNT=4\0", 4, id="only in process 1"),
        pytest.param({"RUNPOD_GPU_COUNT": "many"}, "", None, id="not a number"),
        pytest.param({}, "", None, id="not said"),
    ],
)
def test_gpus_rented(tmp_path: Path, environ: dict[str, str], first: str, count: int | None) -> None:
    root = write_tree(tmp_path, {"/proc/1/environ": first})
    found = platform.probe(context_of(root, {"RUNPOD_POD_ID": "x", **environ})).value
    assert found is not None and found.gpus_rented == count


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        pytest.param({"/dev/nvidia0": "", "/sys/fs/cgroup/memory.max": f"{2 * GB}\n"}, False, id="a card is there"),
        pytest.param({"/dev/nvidiactl": "", "/sys/fs/cgroup/memory.max": f"{2 * GB}\n"}, True, id="no card, 2 GB"),
        pytest.param({"/dev/null": "", "/sys/fs/cgroup/memory.max": f"{90 * GB}\n"}, None, id="no card, but 90 GB: a fault or not"),
        pytest.param({"/dev/null": ""}, None, id="no card, memory not known"),
    ],
)  # fmt: skip
def test_autodl_without_a_card(tmp_path: Path, files: dict[str, str], expected: bool | None) -> None:
    base = {"/root/autodl-tmp/x": "", "/proc/self/mountinfo": MOUNTS_V2, "/proc/self/cgroup": "0::/\n"}
    found = platform.probe(context_of(write_tree(tmp_path, {**base, **files}))).value
    assert found is not None and found.no_gpu_mode is expected


@pytest.mark.parametrize("turbo", [True, False])
def test_network_turbo(tmp_path: Path, turbo: bool) -> None:
    files = {"/root/autodl-tmp/x": "", **({"/etc/network_turbo": ""} if turbo else {})}
    found = platform.probe(context_of(write_tree(tmp_path, files))).value
    assert found is not None and found.network_turbo is turbo


def test_the_table_is_whole() -> None:
    names = [row.name for row in platforms.platforms()]
    assert len(names) == len(set(names))
    for row in platforms.platforms():
        assert row.variables or row.paths or row.hostname_prefix
        assert all(disk.path.startswith("/") for disk in platforms.disks(row.name))
    assert {disk.platform for name in names for disk in platforms.disks(name)} <= set(names)


@pytest.mark.parametrize(
    ("path", "role"),
    [
        ("/root/autodl-tmp/hf", "data"),
        ("/root/autodl-tmp2", "system"),
        ("/root/autodl-fs", "shared"),
        ("/x", "system"),
    ],
)
def test_the_disk_that_a_path_lies_on(path: str, role: str) -> None:
    disk = platforms.disk_of("autodl", path)
    assert disk is not None and disk.role == role
