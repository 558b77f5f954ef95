"""Limits of control groups, v1 and v2 and mixed, and whether this is a container at all."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from doctor.model import Container
from doctor.probes import cgroup, container
from tests.probes.roots import MOUNTS_V2, context_of, forbid, link_namespaces, write_tree

GB = 1 << 30
CG = "/sys/fs/cgroup"
BARE_V2 = """\
22 1 259:2 / / rw,relatime - ext4 /dev/nvme0n1p2 rw
30 22 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate
"""
DOCKER_V1 = """\
700 600 0:60 / / rw - overlay overlay rw
710 700 0:61 /docker/abc /sys/fs/cgroup/cpu,cpuacct ro - cgroup cgroup rw,cpu,cpuacct
711 700 0:62 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory
"""
GROUPS_V1 = "5:cpu,cpuacct:/docker/abc\n4:memory:/docker/abc\n1:name=systemd:/docker/abc\n0::/docker/abc\n"


def probe(root: Path, environ: dict[str, str] | None = None) -> Container:
    reading = container.probe(context_of(root, environ))
    assert reading.status == "ok" and reading.value is not None
    return reading.value


@pytest.fixture
def docker_v2(tmp_path: Path) -> Path:
    """A Docker container on cgroup v2 with its own cgroup namespace: 12.5 cores, 90 GB, two kills."""
    link_namespaces(tmp_path, own=("pid", "uts", "ipc", "cgroup"))
    return write_tree(
        tmp_path,
        {
            "/.dockerenv": "",
            "/proc/self/mountinfo": MOUNTS_V2,
            "/proc/self/cgroup": "0::/\n",
            "/proc/1/environ": "PATH=/bin\0HF_TOKEN=hf_secret\0=x\0noequals\0RUNPOD_POD_ID=p\0",
            f"{CG}/cgroup.events": "populated 1\n",
            f"{CG}/cpu.max": "1250000 100000\n",
            f"{CG}/memory.max": f"{90 * GB}\n",
            f"{CG}/memory.current": f"{3 * GB}\n",
            f"{CG}/memory.events": "low 0\noom 2\noom_kill 2\noom_group_kill 0\n",
        },
    )


def test_a_docker_container_on_v2(docker_v2: Path) -> None:
    found = probe(docker_v2)
    assert (found.inside, found.kind, found.host_pid_namespace) == (True, "docker", False)
    assert (found.cpu_quota_cores, found.cpu_quota_unlimited) == (12.5, False)
    assert (found.memory_limit_bytes, found.memory_limit_unlimited) == (90 * GB, False)
    assert (found.memory_current_bytes, found.oom_kill_count) == (3 * GB, 2)
    assert found.first_process_variables == ("HF_TOKEN", "PATH", "RUNPOD_POD_ID")
    assert found.unread == {}


def test_values_of_the_first_process_are_never_taken(docker_v2: Path) -> None:
    assert "hf_secret" not in repr(probe(docker_v2))


def test_the_smallest_limit_of_all_ancestors_counts(tmp_path: Path) -> None:
    slice_, session = f"{CG}/user.slice/user-1000.slice", f"{CG}/user.slice/user-1000.slice/session-3.scope"
    link_namespaces(tmp_path)
    write_tree(
        tmp_path,
        {
            "/proc/self/mountinfo": BARE_V2,
            "/proc/self/cgroup": "0::/user.slice/user-1000.slice/session-3.scope\n",
            f"{slice_}/memory.max": f"{16 * GB}\n",
            f"{slice_}/memory.current": f"{GB}\n",
            f"{slice_}/cpu.max": "max 100000\n",
            f"{CG}/user.slice/cpu.max": "400000 100000\n",
            f"{session}/memory.max": "max\n",
            f"{session}/cpu.max": "800000 100000\n",
        },
    )
    found = probe(tmp_path)
    assert (found.inside, found.host_pid_namespace) == (False, True)
    assert found.cpu_quota_cores == 4.0 and found.memory_limit_bytes == 16 * GB
    assert found.memory_current_bytes == GB


def test_docker_on_v1_shows_its_own_part_of_the_hierarchy(tmp_path: Path) -> None:
    link_namespaces(tmp_path, own=("pid", "uts", "ipc"))
    write_tree(
        tmp_path,
        {
            "/.dockerenv": "",
            "/proc/self/mountinfo": DOCKER_V1,
            "/proc/self/cgroup": GROUPS_V1,
            f"{CG}/cpu,cpuacct/cpu.cfs_quota_us": "-1\n",
            f"{CG}/cpu,cpuacct/cpu.cfs_period_us": "100000\n",
            f"{CG}/memory/memory.limit_in_bytes": "9223372036854771712\n",
            f"{CG}/memory/memory.usage_in_bytes": "1000\n",
            f"{CG}/memory/memory.stat": f"cache 0\nhierarchical_memory_limit {32 * GB}\n",
            f"{CG}/memory/memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 7\n",
        },
    )
    found = probe(tmp_path)
    assert found.cpu_quota_unlimited is True and found.cpu_quota_cores is None
    assert found.memory_limit_bytes == 32 * GB, "the pod's limit, which only memory.stat tells"
    assert found.oom_kill_count == 7


def test_no_limit_is_said_only_where_every_level_was_seen(tmp_path: Path) -> None:
    link_namespaces(tmp_path)
    write_tree(
        tmp_path, {"/proc/self/mountinfo": BARE_V2, "/proc/self/cgroup": "0::/\n", f"{CG}/cgroup.procs": ""}
    )
    found = probe(tmp_path)
    assert (
        found.memory_limit_unlimited is True
        and found.cpu_quota_unlimited is True
        and found.unread == {"first_process_variables": found.unread["first_process_variables"]}
    )


def test_a_container_without_the_controllers_does_not_know_its_limit(tmp_path: Path) -> None:
    link_namespaces(tmp_path, own=("pid", "cgroup"))
    files = {
        "/proc/self/mountinfo": MOUNTS_V2,
        "/proc/self/cgroup": "0::/\n",
        f"{CG}/cgroup.events": "populated 1\n",
    }
    found = probe(write_tree(tmp_path, files))
    assert found.memory_limit_unlimited is None and found.cpu_quota_unlimited is None
    assert {"memory_limit_bytes", "cpu_quota_cores"} <= set(found.unread)


def test_a_broken_limit_is_unknown_not_none(docker_v2: Path) -> None:
    write_tree(docker_v2, {f"{CG}/memory.max": "lots\n", f"{CG}/cpu.max": "100000 0\n"})
    found = probe(docker_v2)
    assert found.memory_limit_bytes is None and found.memory_limit_unlimited is None
    assert found.cpu_quota_cores is None and found.cpu_quota_unlimited is None
    assert {"memory_limit_bytes", "cpu_quota_cores"} <= set(found.unread)


def test_limits_that_may_not_be_read_are_unknown(docker_v2: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    forbid(monkeypatch, docker_v2 / "sys/fs/cgroup")
    found = probe(docker_v2)
    assert found.memory_limit_unlimited is None and "Permission denied" in str(
        found.unread["memory_limit_bytes"]
    )
    assert found.inside is True


def test_without_proc_nothing_is_claimed(tmp_path: Path) -> None:
    found = probe(tmp_path)
    assert (found.inside, found.host_pid_namespace, found.memory_limit_unlimited) == (None, None, None)
    assert {"inside", "host_pid_namespace", "memory_limit_bytes", "cpu_quota_cores"} <= set(found.unread)


def test_with_the_hosts_pid_namespace_process_1_is_not_ours(docker_v2: Path) -> None:
    (docker_v2 / "proc/self/ns/pid").unlink()
    (docker_v2 / "proc/self/ns/pid").symlink_to("pid:[4026531836]")
    found = probe(docker_v2)
    assert (found.inside, found.host_pid_namespace, found.first_process_variables) == (True, True, None)
    assert "host" in str(found.unread["first_process_variables"])


@pytest.mark.parametrize(
    ("markers", "own", "fstype", "wsl", "expected"),
    [
        pytest.param(("docker",), ("pid", "uts"), "overlay", False, True, id="docker"),
        pytest.param(
            ("docker",), (), "ext4", False, False, id="a left-over /.dockerenv in a virtual machine"
        ),
        pytest.param(("apptainer",), (), "overlay", False, True, id="apptainer shares every namespace"),
        pytest.param((), ("pid", "uts", "ipc"), "overlay", False, True, id="unmarked, own namespaces"),
        pytest.param(
            (), ("cgroup",), "overlay", False, True, id="host pid and net, own cgroup, overlay root"
        ),
        pytest.param((), ("cgroup",), "ext4", False, False, id="only a cgroup namespace on a disk"),
        pytest.param((), (), "ext4", False, False, id="bare machine"),
        pytest.param((), (), "overlay", False, False, id="a live image"),
        pytest.param((), ("pid", "uts", "ipc"), "ext4", True, False, id="WSL is no container"),
        pytest.param(("docker",), ("pid",), "overlay", True, True, id="docker in WSL"),
    ],
)
def test_what_counts_as_inside(
    markers: tuple[str, ...], own: tuple[str, ...], fstype: str, wsl: bool, expected: bool
) -> None:
    spaces = {name: name not in own for name in ("pid", "uts", "ipc", "cgroup")}
    assert container.is_inside(markers, spaces, fstype, wsl) is expected


@pytest.mark.parametrize(
    ("files", "environ", "groups", "kind"),
    [
        pytest.param({"/.dockerenv": ""}, {}, "0::/\n", "docker", id="docker"),
        pytest.param({"/.dockerenv": ""}, {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, "0::/\n", "kubernetes", id="kubernetes by variable"),
        pytest.param({"/run/secrets/x": ""}, {}, "0::/kubepods/burstable/pod1/c\n", "kubernetes", id="kubernetes by cgroup"),
        pytest.param({"/run/.containerenv": ""}, {"container": "podman"}, "0::/\n", "podman", id="podman"),
        pytest.param({"/.singularity.d/x": ""}, {}, "0::/\n", "apptainer", id="apptainer"),
        pytest.param({"/run/systemd/container": "lxc\n"}, {}, "0::/\n", "lxc", id="lxc, as systemd says"),
        pytest.param({}, {}, "0::/system.slice/slurmstepd.scope/job_7/step_0\n", "slurm", id="a SLURM job"),
        pytest.param({}, {}, "0::/\n", "", id="none"),
    ],
)  # fmt: skip
def test_kinds(
    tmp_path: Path, files: dict[str, str], environ: dict[str, str], groups: str, kind: str
) -> None:
    own = () if kind in ("slurm", "") else ("pid", "uts")
    link_namespaces(tmp_path, own=own)
    write_tree(tmp_path, {"/proc/self/mountinfo": BARE_V2, "/proc/self/cgroup": groups, **files})
    found = probe(tmp_path, environ)
    assert found.kind == kind and found.inside is bool(own)


@pytest.mark.parametrize(
    ("mount_root", "path", "expected"),
    [
        pytest.param("/", "/a/b", ["/m/a/b", "/m/a", "/m"], id="the whole hierarchy"),
        pytest.param("/docker/abc", "/docker/abc", ["/m"], id="the container's part"),
        pytest.param("/docker/abc", "/docker/abc/x", ["/m/x", "/m"], id="a group below the container's part"),
        pytest.param("/docker/abc", "/docker/abcdef", ["/m"], id="another container with a like name"),
        pytest.param("/", "/../../x", ["/m"], id="outside this cgroup namespace"),
    ],
)
def test_folders_above(mount_root: str, path: str, expected: list[str]) -> None:
    assert cgroup.folders_above("/m", mount_root, path) == expected


@given(st.text())
def test_no_text_breaks_the_parsers(text: str) -> None:
    assert isinstance(cgroup.parse_cgroup(text), dict)
    assert isinstance(container.parse_variable_names(text), tuple)
    for parser in (cgroup.parse_cpu_max, cgroup.parse_memory_max):
        with contextlib.suppress(ValueError, ZeroDivisionError):
            parser(text)


@given(st.integers(1, 10**9), st.integers(1, 10**6))
def test_a_quota_is_cores(quota: int, period: int) -> None:
    assert cgroup.parse_cpu_max(f"{quota} {period}\n") == quota / period
