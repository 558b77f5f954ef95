"""Each of the main kinds of failure, on a machine that has its cause and on one that has not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from doctor.checks import all_checks
from doctor.explain import explain
from doctor.explain.match import all_patterns
from doctor.judge import judge
from doctor.machine import load_snapshot
from doctor.model import (
    Container,
    Data,
    Driver,
    Facts,
    FoundLibrary,
    Gpu,
    GpuProcess,
    GpuProcesses,
    Gpus,
    Host,
    Incident,
    InspectedFile,
    KernelLog,
    Libraries,
    Mount,
    Processes,
    Reading,
    Snapshot,
    Storage,
    Torch,
    Workload,
    ok,
)
from tests.checks.gpu_box import INSIDE, OUTSIDE, cards, driver
from tests.checks.judged import packages, torch, variables

Sections = dict[str, Any]
MACHINES = Path(__file__).parent.parent / "machines"


def machine(sections: Sections) -> Snapshot:
    readings = {name: one if isinstance(one, Reading) else ok(one) for name, one in sections.items()}
    return Snapshot(facts=Facts(**readings))


def both(first: Sections, second: Sections) -> tuple[Sections, Sections]:
    return first, second


def held(used_gib: int) -> Sections:
    card = Gpu(name="NVIDIA A100", memory_total_bytes=80 << 30, memory_used_bytes=used_gib << 30)
    row = GpuProcess(pid=7, gpu_index=0, used_bytes=used_gib << 30, command="python other.py", is_ours=False)
    return {
        "gpus": Gpus(items=(card,)),
        "gpu_processes": GpuProcesses(items=(row,) if used_gib else ()),
        "processes": Processes(),
        "container": OUTSIDE,
    }


def kernel(*lines: str) -> Sections:
    return {"kernel_log": KernelLog(lines=lines), "gpus": cards()}


def shm(megabytes: int) -> Sections:
    return {
        "storage": Storage(mounts=(Mount(path="/dev/shm", fstype="tmpfs", size_bytes=megabytes << 20),)),
        "container": INSIDE,
        "workload": Workload(num_workers=4),
    }


def limited(limit_gib: int, kills: int = 0) -> Sections:
    container = Container(inside=True, memory_limit_bytes=limit_gib << 30, oom_kill_count=kills)
    return {"container": container, "kernel_log": KernelLog(), "host": Host(memory_total_bytes=256 << 30)}


def loaded(path: str, version: str, found_by: str) -> Sections:
    bundled = FoundLibrary(soname="libcudnn.so.9", path="/env/lib/libcudnn.so.9", version="9.1.0", found_by="bundled")  # fmt: skip
    other = FoundLibrary(soname="libcudnn.so.9", path=path, version=version, found_by=found_by)
    return {
        "libraries": Libraries(items=(other, bundled)),
        "torch": Torch(version="2.6.0+cu124", cuda="12.4", cudnn_version="9.1.0"),
        "packages": packages(torch="2.6.0"),
        "environment": variables(LD_LIBRARY_PATH="/usr/local/cuda/lib64"),
    }


DRIVER = {"driver": driver("550.90.07", "12.4"), "gpus": cards()}
NO_GPU: Reading[Gpus] = Reading(status="absent")
TWO = Gpus(items=(Gpu(), Gpu(index=1)))

STORIES = {
    "no-kernel-image": (
        "RuntimeError: CUDA error: no kernel image is available for execution on the device",
        "gpu-arch-not-in-torch-build",
        both(
            {"gpus": cards("NVIDIA GeForce RTX 5090", "12.0"), "torch": torch("2.6.0+cu124", arch_list=("sm_80", "sm_90")), "driver": driver("570.86.15", "12.8")},
            {"gpus": cards(), "torch": torch("2.6.0+cu124", arch_list=("sm_80", "sm_86", "sm_90")), "driver": driver()},
        ),
    ),
    "torch-without-cuda": (
        "AssertionError: Torch not compiled with CUDA enabled",
        "torch-cpu-only-build",
        both({**DRIVER, "torch": torch("2.6.0+cpu")}, {**DRIVER, "torch": torch("2.6.0+cu124")}),
    ),
    "no-hip-gpus": (
        "RuntimeError: No HIP GPUs are available",
        "torch-rocm-build",
        both(
            {**DRIVER, "torch": Torch(version="2.6.0+rocm6.2", cuda="", hip="6.2")},
            {**DRIVER, "torch": torch("2.6.0+cu124")},
        ),
    ),
    "no-gpus": (
        "RuntimeError: No CUDA GPUs are available",
        "cuda-visible-devices-invalid",
        both(
            {**DRIVER, "environment": variables(CUDA_VISIBLE_DEVICES="3")},
            {**DRIVER, "environment": variables(CUDA_VISIBLE_DEVICES="0")},
        ),
    ),
    "no-driver": (
        "RuntimeError: Found no NVIDIA driver on your system.",
        "no-gpu-visible",
        both({"driver": driver(None, nvml_error=9, pci_gpu_count=1), "gpus": NO_GPU}, DRIVER | {"gpus": cards()}),
    ),
    "nvml-mismatch": (
        "Failed to initialize NVML: Driver/library version mismatch",
        "nvml-driver-library-mismatch",
        both(
            {"driver": Driver(kernel_module_version="535.54", nvml_library_version="550.90.07", nvml_error=18)},
            {"driver": Driver(version="550.90.07", kernel_module_version="550.90.07", nvml_library_version="550.90.07", nvml_error=0)},
        ),
    ),
    "nvml-permission": (
        "Failed to initialize NVML: Insufficient Permissions",
        "gpu-device-permission",
        both(
            {"driver": driver(None, nvml_error=4, device_nodes={"/dev/nvidia0": "EACCES", "/dev/nvidiactl": "EACCES"}), "gpus": NO_GPU, "host": Host(uid=1000), "container": OUTSIDE},
            {"driver": driver(nvml_error=0, device_nodes={"/dev/nvidia0": "", "/dev/nvidiactl": ""}), "gpus": cards(), "host": Host(uid=1000), "container": OUTSIDE},
        ),
    ),
    "cuda-802": (
        "Error 802: system not yet initialized",
        "fabric-manager-not-running",
        both(
            {"driver": driver(nvswitch=True, cuda_init_error=802, fabric_state="in progress"), "gpus": cards("NVIDIA H100 80GB HBM3", "9.0", 8), "host": Host(services={"nvidia-fabricmanager": "inactive"})},
            {"driver": driver(nvswitch=True, cuda_init_error=0, fabric_state="completed"), "gpus": cards("NVIDIA H100 80GB HBM3", "9.0", 8), "host": Host(services={"nvidia-fabricmanager": "active"})},
        ),
    ),
    "cuda-803": (
        "Error 803: system has unsupported display driver / cuda driver combination",
        "cuda-init-fails",
        both({**DRIVER, "driver": driver(cuda_init_error=803)}, {**DRIVER, "driver": driver(cuda_init_error=0)}),
    ),
    "gpu-lost": (
        "Unable to determine the device handle for GPU 0000:03:00.0: Unknown Error",
        "fewer-gpus-than-rented",
        both(
            {"gpus": cards(count=3), "driver": driver(pci_gpu_count=4), "container": OUTSIDE},
            {"gpus": cards(count=4), "driver": driver(pci_gpu_count=4), "container": OUTSIDE},
        ),
    ),
    "xid": (
        "NVRM: Xid (PCI:0000:01:00): 79, GPU has fallen off the bus.",
        "gpu-hardware-fault",
        both(kernel("NVRM: Xid (PCI:0000:01:00): 79, pid=7, GPU has fallen off the bus."), kernel()),
    ),
    "illegal-memory-access": (
        "RuntimeError: CUDA error: an illegal memory access was encountered",
        "gpu-application-error",
        both(kernel("NVRM: Xid (PCI:0000:01:00): 31, pid=7, Ch 00000008"), kernel()),
    ),
    "cuda-oom": (
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.",
        "vram-held-by-process",
        both(held(70), held(0)),
    ),
    "cuda-oom-bare": ("RuntimeError: CUDA error: out of memory", "vram-mostly-used", both(held(70), held(0))),
    "shm-bus-error": (
        "RuntimeError: DataLoader worker (pid 4242) is killed by signal: Bus error.",
        "shm-too-small",
        both(shm(64), shm(64 << 10)),
    ),
    "exit-137": (
        "Process finished with exit code -9",
        "process-killed-for-memory",
        both(limited(32, kills=2), limited(32)),
    ),
    "worker-killed": (
        "RuntimeError: DataLoader worker (pid 4242) is killed by signal: Killed.",
        "cgroup-memory-below-host",
        both(limited(32), limited(256)),
    ),
    "cudnn-symbol": (
        "Could not load library libcudnn_cnn_infer.so.8. Error: undefined symbol",
        "ld-library-path-shadows-bundled-cuda",
        both(
            loaded("/usr/local/cuda/lib64/libcudnn.so.9", "9.0.0", "LD_LIBRARY_PATH"),
            loaded("/usr/lib/libcudnn.so.9", "9.0.0", "system"),
        ),
    ),
    "torchvision-nms": (
        "RuntimeError: operator torchvision::nms does not exist",
        "torchvision-torch-mismatch",
        both(
            {"packages": packages(torch="2.6.0", torchvision="0.19.0"), "torch": torch("2.6.0+cu124")},
            {"packages": packages(torch="2.6.0", torchvision="0.21.0"), "torch": torch("2.6.0+cu124")},
        ),
    ),
    "numpy-multiarray": (
        "ImportError: numpy.core.multiarray failed to import",
        "numpy2-torch-abi",
        both(
            {"packages": packages(torch="2.1.0", numpy="2.0.1"), "torch": torch("2.1.0+cu121")},
            {"packages": packages(torch="2.6.0", numpy="2.0.1"), "torch": torch("2.6.0+cu124")},
        ),
    ),
    "torch-attribute": (
        "AttributeError: module 'torch' has no attribute 'compiler'",
        "transformers-torch-too-old",
        both(
            {"packages": packages(torch="2.0.1", transformers="4.50.0"), "torch": torch("2.0.1+cu118", transformers_minimum="2.1")},
            {"packages": packages(torch="2.6.0", transformers="4.50.0"), "torch": torch("2.6.0+cu124", transformers_minimum="2.1")},
        ),
    ),
    "accelerator-method": (
        "TypeError: Accelerator.unwrap_model() got an unexpected keyword argument 'keep_torch_compile'",
        "accelerate-transformers-mismatch",
        both(
            {"packages": packages(transformers="4.55.4", accelerate="1.2.1")},
            {"packages": packages(transformers="4.55.4", accelerate="1.3.0")},
        ),
    ),
    "trainer-needs-accelerate": (
        "ImportError: Using the `Trainer` with `PyTorch` requires `accelerate>=1.1.0`: Please run `pip install transformers[torch]`",
        "accelerate-transformers-mismatch",
        both(
            {"packages": packages(transformers="5.2.0", accelerate="1.0.1")},
            {"packages": packages(transformers="5.2.0", accelerate="1.12.0")},
        ),
    ),
    "torch-file-missing": (
        "OSError: /env/lib/python3.11/site-packages/torch/lib/libtorch_global_deps.so: cannot open shared object file",
        "torch-install-broken",
        both(
            {"torch": torch("2.6.0+cu124", broken="libtorch_global_deps.so is missing"), "packages": packages(torch="2.6.0")},
            {"torch": torch("2.6.0+cu124"), "packages": packages(torch="2.6.0")},
        ),
    ),
    "nccl-no-interface": (
        "NCCL WARN Bootstrap : no socket interface found",
        "nccl-interface-missing",
        both(
            {"host": Host(network_interfaces=("lo", "eth0")), "environment": variables(NCCL_SOCKET_IFNAME="ib0"), "gpus": TWO},
            {"host": Host(network_interfaces=("lo", "eth0")), "environment": variables(NCCL_SOCKET_IFNAME="eth0"), "gpus": TWO},
        ),
    ),
    "nccl-error": (
        "torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:275, unhandled system error",
        "memlock-too-small",
        both(
            {"host": Host(infiniband_devices=("mlx5_0",), memlock_soft_limit_bytes=65536)},
            {"host": Host(infiniband_devices=("mlx5_0",), memlock_soft_limit_bytes=-1)},
        ),
    ),
    "rendezvous": (
        "torch.distributed.DistNetworkError: The client socket has timed out after 600000ms",
        "rendezvous-variables-left-over",
        both({"environment": variables(WORLD_SIZE="8", RANK="0", MASTER_ADDR="10.0.0.1")}, {"environment": variables()}),
    ),
    "too-many-files": (
        "OSError: [Errno 24] Too many open files",
        "open-files-limit-low",
        both(
            {"host": Host(open_files_soft_limit=256), "workload": Workload(num_workers=8)},
            {"host": Host(open_files_soft_limit=1 << 20), "workload": Workload(num_workers=8)},
        ),
    ),
    "not-gbk": (
        "UnicodeDecodeError: 'gbk' codec can't decode byte 0x80 in position 12: illegal multibyte sequence",
        "locale-default-encoding",
        both({"host": Host(locale_encoding="gbk")}, {"host": Host(locale_encoding="UTF-8")}),
    ),
    "hub-unreachable": (
        "OSError: We couldn't connect to 'https://huggingface.co' to load this file",
        "hub-offline",
        both({"environment": variables(HF_HUB_OFFLINE="1"), "packages": packages(transformers="4.50.0")}, {"environment": variables(), "packages": packages(transformers="4.50.0")}),
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "text", "finding", "ill"),
    [pytest.param(kind, story[0], story[1], story[2][0], id=kind) for kind, story in STORIES.items()],
)
def test_a_machine_with_the_cause_confirms_it(kind: str, text: str, finding: str, ill: Sections) -> None:
    known = {item.match.id: item for item in explain(text, machine(ill)).known}
    assert finding in [one.id for one in known[kind].confirmed]


@pytest.mark.parametrize(
    ("kind", "text", "finding", "well"),
    [pytest.param(kind, story[0], story[1], story[2][1], id=kind) for kind, story in STORIES.items()],
)
def test_a_machine_without_it_refutes_it(kind: str, text: str, finding: str, well: Sections) -> None:
    known = {item.match.id: item for item in explain(text, machine(well)).known}
    assert finding not in [one.id for one in known[kind].confirmed]
    assert finding in known[kind].refuted


def test_the_stories_are_about_causes_that_the_table_names() -> None:
    confirms = {item.id: item.confirms for item in all_patterns()}
    assert not [kind for kind, story in STORIES.items() if story[1] not in confirms[kind]]


def clean_data() -> Snapshot:
    """A run whose data, labels, checkpoint and out-of-memory figures are all in order."""
    files = (
        InspectedFile(path="/data/train.csv", kind="text", encoding="utf-8", bad_lines=0, lines=10),
        InspectedFile(path="/out/checkpoint.pt", kind="checkpoint", size_bytes=1 << 20),
    )
    data = Data(files=files, num_labels=2, label_values=(0, 1), embedding_rows=100, max_token_id=9)
    return machine({"data": data, "incident": Incident(torch_reserved_bytes=9 << 30, torch_allocated_bytes=9 << 30, oom_tried_bytes=1 << 30)})  # fmt: skip


def clean_log() -> Snapshot:
    """A log without a failure, of an environment whose names and arguments are all there."""
    found = packages(transformers="5.24.0", torch="2.13.0")
    return machine({"packages": found, "incident": Incident(log_lines=("step 1",))})


def test_every_cause_that_a_check_gives_is_refuted_by_some_machine() -> None:
    looked: set[str] = set()
    ids_of = {one.name: one.ids for one in all_checks()}
    recorded = [load_snapshot(path) for path in sorted(MACHINES.glob("*.json"))]
    for snapshot in (*recorded, clean_data(), clean_log()):
        report = judge(snapshot)
        looked.update(name for check in report.passed for name in ids_of[check])
    given = {name for ids in ids_of.values() for name in ids}
    named = {name for item in all_patterns() for name in item.confirms}
    assert named & given - looked == set()
