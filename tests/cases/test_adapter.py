"""The adapter: units, what absent keys become, and that nothing is taken in silence."""

from __future__ import annotations

from typing import Any

import pytest

from doctor.checks import facts_at
from doctor.model import Finding, t
from tests.cases.adapter import to_snapshot
from tests.cases.forbidden import Given, rule

MACHINE: dict[str, Any] = {
    "driver": "535.129.03",
    "gpu": "RTX 3090",
    "gpu_count": 2,
    "capability": "8.6",
    "vram_total_mb": 24576,
    "vram_used_mb": 1024,
    "nvml_device_errors": {"0000:41:00.0": "GPU is lost"},
    "torch": "2.1.0+cu118",
    "packages": {"Flash_Attn": "2.5.7", "torch": "2.1.0"},
    "dist_info": [
        "~/.local/lib/python3.10/site-packages/torch-1.13.1.dist-info",
        "env/site-packages/torch-2.1.0.dist-info",
    ],
    "cap_eff": "00000000a80425fb",
    "files": {
        "/sys/fs/cgroup/memory.max": "8589934592",
        "/sys/fs/cgroup/cpu.max": "150000 100000",
        "/opt/cuda/lib64/libcudnn.so.8": "8.9.7",
        "dmesg": "NVRM: Xid (PCI:0000:41:00): 79, GPU has fallen off the bus.",
    },
    "env": {"LD_LIBRARY_PATH": "/opt/cuda/lib64", "RUNPOD_POD_ID": "abc", "RUNPOD_GPU_COUNT": "2"},
    "mounts": {
        "/": {"fstype": "overlay", "size_gb": 30, "free_gb": 0.5},
        "/dev/shm": {"fstype": "tmpfs", "size_mb": 64},
    },
    "processes": [
        {"pid": 7, "ppid": 1, "cmd": "python train.py", "fds": ["/dev/nvidia0", "/tmp/x"], "age_h": 2}
    ],
}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("driver.version", "535.129.03"),
        ("driver.cuda_version", None),
        ("gpus.items[1].name", "RTX 3090"),
        ("gpus.items[0].memory_free_bytes", 23552 << 20),
        ("gpus.items[1].memory_used_bytes", None),
        ("gpus.items[2].error", "GPU is lost"),
        ("torch.cuda", "11.8"),
        ("torch.arch_list", None),
        ("packages.items[0].name", "flash-attn"),
        ("packages.items[1].version", "1.13.1"),
        ("packages.items[2].location", "env/site-packages"),
        ("packages.complete", False),
        ("host.capabilities_effective", 0xA80425FB),
        ("host.glibc", None),
        ("container.memory_limit_bytes", 8 << 30),
        ("container.cpu_quota_cores", 1.5),
        ("libraries.items[0].found_by", "LD_LIBRARY_PATH"),
        ("kernel_log.lines[0]", "NVRM: Xid (PCI:0000:41:00): 79, GPU has fallen off the bus."),
        ("platform.name", "runpod"),
        ("platform.gpus_rented", 2),
        ("storage.mounts[0].free_bytes", 1 << 29),
        ("storage.mounts[1].size_bytes", 64 << 20),
        ("storage.places[0].path", "/root/.cache/huggingface"),
        ("processes.items[0].gpu_files", ("/dev/nvidia0",)),
        ("processes.items[0].age_s", 7200.0),
        ("processes.items[0].is_ours", None),
    ],
)
def test_a_key_lands_where_the_checks_look(path: str, value: object) -> None:
    snapshot, _ = to_snapshot("x", MACHINE)
    assert facts_at(snapshot.facts, path) == value


def test_what_a_case_does_not_mention_nobody_looked_at() -> None:
    facts = to_snapshot("x", {"python": "3.11"})[0].facts
    assert facts.python.status == "ok"
    assert {facts.driver.status, facts.gpus.status, facts.packages.status, facts.environment.status} == {
        "skipped"
    }


def test_no_gpu_and_no_word_about_gpus_are_different() -> None:
    assert to_snapshot("x", {"gpu_count": 0})[0].facts.gpus.status == "absent"
    assert to_snapshot("x", {})[0].facts.gpus.status == "skipped"


def test_an_empty_env_was_looked_at() -> None:
    assert to_snapshot("x", {"env": {}})[0].facts.environment.status == "ok"


def test_unknown_keys_and_files_are_named() -> None:
    _, ignored = to_snapshot("x", {"flux": 1, "driver": "535.1", "files": {"/opt/readme": "hello"}})
    assert ignored == ["flux", "files./opt/readme"]


@pytest.mark.parametrize(
    ("entry", "level", "advice", "broken"),
    [
        ("driver-x", "note", "", True),
        ("driver-x at warning or error", "note", "", False),
        ("driver-x at warning or error", "warn", "", True),
        ("driver-x as error", "warn", "", False),
        ("driver-x (an explanation)", "note", "", True),
        ("advice to install a CUDA toolkit", "note", "Install the CUDA toolkit 12.4.", True),
        (
            "advice to install a CUDA toolkit",
            "note",
            "Do not install a CUDA toolkit: it changes nothing.",
            False,
        ),
        ("advice to upgrade torch", "fail", "Upgrade torch to 2.9.", True),
        ("any error severity", "warn", "", False),
        ("gpu reset advice", "warn", "nvidia-smi --gpu-reset", True),
        ("driver-x above info", "note", "", False),
        ("driver-x above info", "warn", "", True),
        ("any finding above info", "note", "", False),
        ("advice to set CUDA_LAUNCH_BLOCKING=1 for good", "note", "export CUDA_LAUNCH_BLOCKING=1", True),
        ("advice to set CUDA_LAUNCH_BLOCKING=1 for good", "note", "Look at the log.", False),
    ],
)
def test_a_must_not_is_broken_only_by_what_it_means(
    entry: str, level: Any, advice: str, broken: bool
) -> None:
    finding = Finding(id="driver-x", level=level, title=t("x"), advice=t("{words}", words=advice))
    given = Given(findings=(finding,), report=None, facts={}, rejudge=lambda facts: [])
    check = rule(entry)
    assert check is not None
    assert check(given) is broken


def test_a_sentence_nobody_understands_is_not_checked() -> None:
    assert rule("something the author felt") is None
