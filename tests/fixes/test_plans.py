"""From a finding to its steps, on machines written down in a few words: for each kind of cure what it does, and when it does nothing."""

from __future__ import annotations

from typing import Any

import pytest

from doctor.cure import chosen, is_left_out, proposals, propose
from doctor.fixes import FIXABLE, all_fixes, fix_for, has_fix
from doctor.fixes.no_fix import OF_THE_HOST, for_the_provider
from doctor.fixes.pip_line import Asked, name_of, parse_pip
from doctor.judge import judge
from doctor.model import (
    AddLine,
    AskUrl,
    Container,
    Data,
    Distribution,
    Driver,
    Facts,
    Finding,
    Fix,
    FoundLibrary,
    Gpu,
    GpuProcess,
    GpuProcesses,
    Gpus,
    Host,
    InspectedFile,
    InstallPackages,
    Libraries,
    Mount,
    MovePath,
    Packages,
    Place,
    Platform,
    Process,
    Processes,
    Project,
    Python,
    Reading,
    RecodeFile,
    RemovePath,
    Requirement,
    Run,
    SetVariable,
    Snapshot,
    StopProcess,
    Storage,
    Workload,
    WriteFile,
    ok,
    t,
)
from tests.checks.judged import packages, torch, variables

GB = 1 << 30
HOME = Storage(places=(Place(name="home", path="/root"),))
VENV = Python(version="3.11.5", executable="/venv/bin/python", prefix="/venv", kind="venv", writable=True)
CARD = Gpus(
    items=(Gpu(name="NVIDIA GeForce RTX 4090", compute_capability="8.9", memory_total_bytes=24 * GB),)
)


def machine(**sections: Any) -> Snapshot:
    readings: dict[str, Any] = {
        name: one if isinstance(one, Reading) else ok(one) for name, one in sections.items()
    }
    readings = {"storage": ok(HOME), "python": ok(VENV), **readings}
    return Snapshot(facts=Facts(**readings))


def cured(finding_id: str, **sections: Any) -> Any:
    """Judge a machine, and return the cure of its first finding of that id (or why there is none)."""
    snapshot = machine(**sections)
    found = [one for one in judge(snapshot).findings() if one.id == finding_id]
    assert found, [one.id for one in judge(snapshot).findings()]
    return fix_for(found[0], snapshot)


def set_by(fix: Fix) -> dict[str, str | None]:
    assert isinstance(fix, Fix), fix
    lines = [step for step in fix.steps if isinstance(step, AddLine)]
    assert [step.path for step in lines] == ["/root/.bashrc"] or not lines
    return {step.name: step.value for step in fix.steps if isinstance(step, SetVariable)}


MANY_CPUS = Host(cpu_count=128, affinity_count=128)
FEW = Container(inside=True, cpu_quota_cores=12.0)
TINY = Mount(path="/", fstype="overlay", size_bytes=30 * GB, free_bytes=1 * GB)
LARGE = Mount(path="/data", fstype="ext4", size_bytes=500 * GB, free_bytes=300 * GB)
CUDNN = Libraries(items=(
    FoundLibrary(soname="libcudnn.so.9", path="/usr/local/cuda/lib64/libcudnn.so.9", version="9.0.0", found_by="LD_LIBRARY_PATH"),
    FoundLibrary(soname="libcudnn.so.9", path="/venv/lib/libcudnn.so.9", version="9.1.0", found_by="bundled"),
))  # fmt: skip
UV_CACHES = ("pip_cache", "uv_cache", "triton_cache")
USER_SITE = Packages(items=(
    Distribution(name="numpy", version="1.0", location="/root/.local/lib/python3.11/site-packages"),
    Distribution(name="numpy", version="2.0", location="/venv/lib/python3.11/site-packages"),
))  # fmt: skip

VARIABLES: list[tuple[str, str, dict[str, Any], dict[str, str | None]]] = [
    ("threads by the quota", "thread-count-above-cpus", {"host": MANY_CPUS, "container": FEW, "environment": variables(OMP_NUM_THREADS="128")}, {"OMP_NUM_THREADS": "12", "MKL_NUM_THREADS": "12"}),
    ("threads divided by the cards", "thread-count-above-cpus", {"host": MANY_CPUS, "container": FEW, "gpus": Gpus(items=(Gpu(), Gpu(index=1))), "environment": variables(OMP_NUM_THREADS="128")}, {"OMP_NUM_THREADS": "6", "MKL_NUM_THREADS": "6"}),
    ("quota below the host's count", "cpu-quota-below-host-count", {"host": MANY_CPUS, "container": FEW}, {"OMP_NUM_THREADS": "12", "MKL_NUM_THREADS": "12"}),
    ("the allocator's old name", "allocator-setting-without-effect", {"torch": torch("2.6.0+cu124"), "environment": variables(PYTORCH_ALLOC_CONF="expandable_segments:True")}, {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True", "PYTORCH_ALLOC_CONF": None}),
    ("an equals sign", "allocator-setting-without-effect", {"torch": torch("2.6.0+cu124"), "environment": variables(PYTORCH_CUDA_ALLOC_CONF="max_split_size_mb=512")}, {"PYTORCH_CUDA_ALLOC_CONF": "max_split_size_mb:512"}),
    ("a cache variable that is not read", "cache-variable-not-read", {"packages": packages(transformers="5.0.0"), "environment": variables(TRANSFORMERS_CACHE="/data/tf")}, {"HF_HUB_CACHE": "/data/tf"}),
    ("xet beside the moved cache", "xet-cache-on-small-disk", {"packages": packages(hf_xet="1.1.0"), "environment": variables(HF_HUB_CACHE="/data/hf/hub"), "storage": Storage(mounts=(TINY, LARGE), places=(Place(name="home", path="/root"), Place(name="hf_home", path="/root/.cache/huggingface")))}, {"HF_XET_CACHE": "/data/hf/xet"}),
    ("determinism", "cublas-workspace-unset", {"torch": torch("2.6.0+cu124"), "workload": Workload(source="a.py", deterministic=True), "environment": variables()}, {"CUBLAS_WORKSPACE_CONFIG": ":4096:8"}),
    ("the hash seed", "seeds-incomplete", {"workload": Workload(seeds_set=("python", "numpy", "torch")), "environment": variables()}, {"PYTHONHASHSEED": "0"}),
    ("left-over debugging", "debug-variable-left-on", {"environment": variables(CUDA_LAUNCH_BLOCKING="1")}, {"CUDA_LAUNCH_BLOCKING": None}),
    ("hf-transfer", "hf-transfer-missing", {"packages": packages(True, huggingface_hub="0.30.0"), "environment": variables(HF_HUB_ENABLE_HF_TRANSFER="1")}, {"HF_HUB_ENABLE_HF_TRANSFER": None}),
    ("an endpoint without scheme", "hub-endpoint-invalid", {"packages": packages(), "environment": variables(HF_ENDPOINT="hf-mirror.com/")}, {"HF_ENDPOINT": "https://hf-mirror.com"}),
    ("offline", "hub-offline", {"packages": packages(), "environment": variables(HF_HUB_OFFLINE="1")}, {"HF_HUB_OFFLINE": None}),
    ("a toolkit in front", "ld-library-path-shadows-bundled-cuda", {"libraries": CUDNN, "torch": torch("2.6.0+cu124"), "packages": packages(), "environment": variables(LD_LIBRARY_PATH="/usr/local/cuda/lib64:/opt/mine/lib:")}, {"LD_LIBRARY_PATH": "/opt/mine/lib"}),
    ("nothing left of the path", "ld-library-path-shadows-bundled-cuda", {"libraries": CUDNN, "torch": torch("2.6.0+cu124"), "packages": packages(), "environment": variables(LD_LIBRARY_PATH="/usr/local/cuda/lib64/")}, {"LD_LIBRARY_PATH": None}),
    ("ASCII", "locale-default-encoding", {"host": Host(locale_encoding="ANSI_X3.4-1968"), "environment": variables()}, {"PYTHONUTF8": "1"}),
    ("ASCII on an old Python", "locale-default-encoding", {"host": Host(locale_encoding="ANSI_X3.4-1968"), "environment": variables(), "python": Python(version="3.6.15")}, {"LANG": "C.UTF-8", "PYTHONIOENCODING": "utf-8"}),
    ("a mirror with Xet", "mirror-with-xet", {"packages": packages(hf_xet="1.1.0"), "environment": variables(HF_ENDPOINT="https://hf-mirror.com")}, {"HF_HUB_DISABLE_XET": "1"}),
    ("an interface that is not there", "nccl-interface-missing", {"host": Host(network_interfaces=("lo", "eth0")), "environment": variables(NCCL_SOCKET_IFNAME="ib0")}, {"NCCL_SOCKET_IFNAME": None}),
    ("a proxy that catches all", "proxy-catches-localhost", {"environment": variables(http_proxy="http://p:1", no_proxy="10.0.0.1")}, {"no_proxy": "10.0.0.1,localhost,127.0.0.1", "NO_PROXY": "10.0.0.1,localhost,127.0.0.1"}),
    ("another environment's packages", "pythonpath-with-other-packages", {"environment": variables(PYTHONPATH="/opt/conda/lib/python3.11/site-packages:/root/code")}, {"PYTHONPATH": "/root/code"}),
    ("wandb's old switch", "tracker-variable-not-read", {"packages": packages(transformers="5.0.0"), "environment": variables(WANDB_DISABLED="true")}, {"WANDB_MODE": "disabled"}),
    ("NVLink switched off", "transport-switched-off", {"gpus": Gpus(topology_worst_link="NV12"), "environment": variables(NCCL_P2P_DISABLE="1")}, {"NCCL_P2P_DISABLE": None}),
    ("a user without a name", "uid-without-passwd-entry", {"host": Host(uid=1234, has_passwd_entry=False), "environment": variables()}, {"USER": "user1234", "LOGNAME": "user1234", "TORCHINDUCTOR_CACHE_DIR": "/tmp/torchinductor_user1234"}),
    ("packages of ~/.local", "user-site-shadows-env", {"packages": USER_SITE, "environment": variables()}, {"PYTHONNOUSERSITE": "1"}),
    ("the hub's mirror", "platform-proxy-there", {"platform": Platform(name="autodl", network_turbo=True), "environment": variables()}, {"HF_ENDPOINT": "https://hf-mirror.com", "HF_HUB_DISABLE_XET": "1"}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("finding_id", "sections", "wanted"), [pytest.param(*row[1:], id=row[0]) for row in VARIABLES]
)
def test_a_variable_is_set_where_every_new_shell_reads_it(
    finding_id: str, sections: dict[str, Any], wanted: dict[str, str | None]
) -> None:
    found = cured(finding_id, **sections)
    assert set_by(found) == wanted
    assert {step.file for step in found.steps if isinstance(step, SetVariable)} == {
        "/root/.config/rundoctor/env.sh"
    }
    assert found.touches == ("environment",)


def test_zsh_reads_its_own_start_file() -> None:
    environment = variables(
        CUDA_LAUNCH_BLOCKING="1", SHELL="/usr/bin/zsh", HOME="/home/me", XDG_CONFIG_HOME="/home/me/cfg"
    )
    found = cured("debug-variable-left-on", environment=environment)
    assert [step.path for step in found.steps if isinstance(step, AddLine)] == ["/home/me/.zshrc"]
    assert found.steps[0].file == "/home/me/cfg/rundoctor/env.sh"


def test_a_mirror_is_asked_first_and_only_when_asked_for() -> None:
    found = cured(
        "platform-proxy-there", platform=Platform(name="autodl", network_turbo=True), environment=variables()
    )
    assert isinstance(found.steps[0], AskUrl) and found.only_when_asked


# ---------------------------------------------------------------------------------------- disks
def disks(**places: str) -> Storage:
    return Storage(
        mounts=(TINY, LARGE),
        places=(Place(name="home", path="/root"), *(Place(name=name, path=path, exists=True) for name, path in places.items())),
    )  # fmt: skip


def test_the_hub_cache_moves_to_the_disk_with_room() -> None:
    storage = disks(hf_home="/root/.cache/huggingface")
    found = cured("hf-cache-on-small-disk", storage=storage, packages=packages(transformers="4.49.0"))
    assert found.steps[0] == MovePath(source="/root/.cache/huggingface", target="/data/hf")
    assert set_by(found) == {"HF_HOME": "/data/hf"}


def test_room_is_made_of_caches_alone() -> None:
    storage = disks(
        hf_home="/root/.cache/huggingface",
        pip_cache="/root/.cache/pip",
        uv_cache="/root/.cache/uv",
        wandb_dir="/root/wandb",
        triton_cache="/data/triton",
    )
    found = cured("disk-nearly-full", storage=storage)
    assert [step for step in found.steps if isinstance(step, RemovePath)] == [
        RemovePath(path="/root/.cache/pip", keep=False),
        RemovePath(path="/root/.cache/uv", keep=False),
    ]
    assert [step for step in found.steps if isinstance(step, MovePath)] == [
        MovePath(source="/root/.cache/huggingface", target="/data/huggingface")
    ]


def test_a_uv_cache_that_environments_link_into_stays() -> None:
    storage, environment = (
        disks(uv_cache="/root/.cache/uv", pip_cache="/root/.cache/pip"),
        variables(UV_LINK_MODE="symlink"),
    )
    found = cured("disk-nearly-full", storage=storage, environment=environment)
    assert [step.path for step in found.steps] == ["/root/.cache/pip"]


def test_without_caches_nothing_is_deleted() -> None:
    found = cured("disk-nearly-full", storage=disks(wandb_dir="/root/wandb"))
    assert not isinstance(found, Fix) and "du -xh" in found.msgid


@pytest.mark.parametrize(
    ("capabilities", "fits"),
    [(1 << 21, True), (0xA80425FB, False), (None, False)],
    ids=["may mount", "a container's", "unknown"],
)
def test_shared_memory_grows_only_where_it_may(capabilities: int | None, fits: bool) -> None:
    small = Mount(path="/dev/shm", fstype="tmpfs", size_bytes=64 << 20, free_bytes=64 << 20)
    found = cured(
        "shm-too-small", storage=Storage(mounts=(small,)), container=Container(inside=True, memory_limit_bytes=64 * GB),
        host=Host(capabilities_effective=capabilities), workload=Workload(num_workers=4),
    )  # fmt: skip
    assert isinstance(found, Fix) is fits
    if fits:
        assert found.steps == (
            Run(argv=("mount", "-o", f"remount,size={8 * GB}", "/dev/shm"), undo=("mount", "-o", f"remount,size={64 << 20}", "/dev/shm")),
        )  # fmt: skip


# ---------------------------------------------------------------------------------------- processes
def held_by(process: Process | None, is_ours: bool | None = True) -> Any:
    gpus = Gpus(items=(Gpu(name="x", memory_total_bytes=24 * GB, memory_used_bytes=20 * GB),))
    rows = GpuProcesses(
        items=(GpuProcess(pid=77, gpu_index=0, used_bytes=19 * GB, command="python old.py", is_ours=is_ours),)
    )
    return cured(
        "vram-held-by-process",
        gpus=gpus,
        gpu_processes=rows,
        processes=Processes(items=(process,) if process else ()),
    )


def test_ones_own_process_is_ended_by_number_and_start_time_and_only_when_asked() -> None:
    found = held_by(Process(pid=77, command="python old.py", is_ours=True, started_ticks=4242))
    assert found.steps == (StopProcess(pid=77, started_ticks=4242, command="python old.py"),)
    assert found.only_when_asked


@pytest.mark.parametrize(
    "process",
    [None, Process(pid=77, is_ours=False, started_ticks=1), Process(pid=77, is_ours=None, started_ticks=1), Process(pid=77, is_ours=True)],
    ids=["not in /proc", "another user's", "whose is unknown", "start time unknown"],
)  # fmt: skip
def test_a_process_that_is_not_surely_ones_own_is_explained_not_touched(process: Process | None) -> None:
    assert not isinstance(held_by(process), Fix)


# ---------------------------------------------------------------------------------------- data
@pytest.mark.parametrize(
    ("finding_id", "encoding", "codec"),
    [("file-encoding-not-utf8", "gbk", "gb18030"), ("file-encoding-not-utf8", "utf-16", "utf-16"), ("utf8-bom", "utf-8-bom", "utf-8-sig")],
)  # fmt: skip
def test_a_text_is_written_anew_and_its_original_kept(finding_id: str, encoding: str, codec: str) -> None:
    data = Data(files=(InspectedFile(path="train.csv", kind="text", encoding=encoding),))
    found = cured(finding_id, data=data, project=Project(cwd="/root/code"))
    assert found.steps == (
        RecodeFile(path="/root/code/train.csv", encoding=codec, kept="/root/code/train.csv.original"),
    )


def test_an_encoding_in_which_every_byte_is_a_letter_is_left_to_the_person() -> None:
    data = Data(files=(InspectedFile(path="/a.csv", kind="text", encoding="latin-1"),))
    assert not isinstance(cured("file-encoding-not-utf8", data=data), Fix)


# ---------------------------------------------------------------------------------------- packages
PACKAGES: list[tuple[str, str, dict[str, Any], tuple[str, ...], tuple[str, ...], tuple[str, ...]]] = [
    # id of the row, finding, machine -> requirements, taken out, frozen
    ("NumPy 2", "numpy2-torch-abi", {"packages": packages(torch="2.1.0+cu121", numpy="2.1.0"), "torch": torch("2.1.0+cu121")}, ("numpy<2",), (), ("torch==2.1.0+cu121",)),
    ("tokenizers", "transformers-requirement-out-of-range", {"packages": packages(torch="2.6.0+cu124", torchvision="0.21.0+cu124", transformers="4.49.0", tokenizers="0.19.1"), "torch": torch("2.6.0+cu124")}, ("tokenizers<0.22,>=0.21",), (), ("torch==2.6.0+cu124", "torchvision==0.21.0+cu124")),
    ("accelerate 1", "accelerate-transformers-mismatch", {"packages": packages(torch="2.2.0+cu121", transformers="4.38.0", accelerate="1.2.0")}, ("accelerate<1.0",), (), ("torch==2.2.0+cu121",)),
    ("an accelerate that is missing", "needed-package-missing", {"packages": packages(True, torch="2.6.0+cu124", transformers="4.49.0"), "workload": Workload(features=("trainer",))}, ("accelerate",), (), ("torch==2.6.0+cu124",)),
    ("onnxruntime twice", "onnxruntime-cpu-shadows-gpu", {"packages": packages(onnxruntime="1.20.0", onnxruntime_gpu="1.20.0")}, ("onnxruntime-gpu==1.20.0",), ("onnxruntime", "onnxruntime-gpu"), ()),
    ("two CUDA majors", "mixed-cuda-wheel-majors", {"packages": packages(nvidia_nccl_cu11="2.19.3", nvidia_nccl_cu12="2.21.5"), "torch": torch("2.6.0+cu124")}, ("nvidia-nccl-cu12==2.21.5",), ("nvidia-nccl-cu11",), ()),
]  # fmt: skip


@pytest.mark.parametrize(
    ("finding_id", "sections", "requirements", "remove", "frozen"),
    [pytest.param(*row[1:], id=row[0]) for row in PACKAGES],
)
def test_the_smallest_change_with_torch_frozen(
    finding_id: str,
    sections: dict[str, Any],
    requirements: tuple[str, ...],
    remove: tuple[str, ...],
    frozen: tuple[str, ...],
) -> None:
    (step,) = cured(finding_id, **sections).steps
    assert isinstance(step, InstallPackages)
    assert (step.requirements, step.remove, step.frozen) == (requirements, remove, frozen)
    assert step.python == "/venv/bin/python" and step.index_url is None


def test_torch_is_installed_again_as_it_was_and_its_remains_are_put_aside() -> None:
    broken = Packages(
        items=(Distribution(name="torch", version="2.6.0+cu124", missing_files=("torch/lib/libtorch.so",)),),
        leftovers=("/venv/lib/~orch",),
    )
    found = cured(
        "torch-install-broken", packages=broken, torch=torch("2.6.0+cu124", broken="libtorch.so is missing")
    )
    assert found.steps[0] == RemovePath(path="/venv/lib/~orch")
    step = found.steps[1]
    assert (step.requirements, step.no_deps, step.force) == (("torch==2.6.0+cu124",), True, True)
    assert step.index_url == "https://download.pytorch.org/whl/cu124"


@pytest.mark.parametrize(
    "python",
    [
        Python(executable="/usr/bin/python3", externally_managed=True),
        Python(executable="/opt/python", writable=False),
    ],
    ids=["the system's", "not writable"],
)
def test_nothing_is_installed_where_it_may_not_be(python: Python) -> None:
    sections = {
        "packages": packages(torch="2.1.0+cu121", numpy="2.1.0"),
        "torch": torch("2.1.0+cu121"),
        "python": python,
    }
    assert not isinstance(cured("numpy2-torch-abi", **sections), Fix)


def test_conda_is_told_that_pip_goes_beside_it() -> None:
    python = Python(executable="/opt/conda/bin/python", kind="conda", writable=True)
    sections = {
        "packages": packages(torch="2.1.0+cu121", numpy="2.1.0"),
        "torch": torch("2.1.0+cu121"),
        "python": python,
    }
    found = cured("numpy2-torch-abi", **sections)
    assert found.risk is not None and "conda" in found.risk.msgid


def test_the_guard_keeps_the_torch_that_is_installed() -> None:
    project = Project(
        cwd="/root/code", requirements=(Requirement(line="torch==2.3.0", file="requirements.txt"),)
    )
    found = cured(
        "requirements-would-replace-torch",
        project=project,
        torch=torch("2.6.0+cu124"),
        packages=packages(torch="2.6.0+cu124", torchvision="0.21.0+cu124"),
    )
    assert found.steps[0] == WriteFile(
        path="/root/.config/rundoctor/constraints.txt",
        content="torch==2.6.0+cu124\ntorchvision==0.21.0+cu124\n",
    )
    assert set_by(found) == dict.fromkeys(
        ("PIP_CONSTRAINT", "UV_CONSTRAINT"), "/root/.config/rundoctor/constraints.txt"
    )


def test_what_reaches_beyond_the_judged_environment_is_done_only_when_asked_for() -> None:
    project = Project(
        cwd="/root/code", requirements=(Requirement(line="torch==2.3.0", file="requirements.txt"),)
    )
    installed = {"torch": torch("2.6.0+cu124"), "packages": packages(torch="2.6.0+cu124")}
    assert cured("requirements-would-replace-torch", project=project, **installed).only_when_asked


def test_a_guarded_torch_is_no_longer_in_danger() -> None:
    project = Project(
        cwd="/root/code", requirements=(Requirement(line="torch==2.3.0", file="requirements.txt"),)
    )
    guarded = variables(PIP_CONSTRAINT="/root/.config/rundoctor/constraints.txt")
    for environment, expected in (
        (variables(), True),
        (guarded, False),
        (variables(PIP_CONSTRAINT="/my.txt"), True),
    ):
        report = judge(machine(project=project, torch=torch("2.6.0+cu124"), environment=environment))
        assert ("requirements-would-replace-torch" in [one.id for one in report.findings()]) is expected


def test_on_a_machine_of_ones_own_there_is_no_provider_to_write_to() -> None:
    finding = Finding(id="nvml-driver-library-mismatch", level="fail", title=t("x"))
    own = machine(container=Container(inside=False), platform=Reading(status="absent"))
    assert for_the_provider(finding, own) is None
    assert for_the_provider(finding, machine(container=Container(inside=True))) is not None


def test_the_guard_follows_a_torch_that_is_replaced() -> None:
    environment = variables(PIP_CONSTRAINT="/root/.config/rundoctor/constraints.txt")
    found = cured(
        "torch-cpu-only-build",
        torch=torch("2.6.0+cpu"),
        gpus=CARD,
        driver=Driver(version="550.54.15", cuda_version="12.4"),
        packages=packages(torch="2.6.0+cpu"),
        environment=environment,
    )
    assert [type(step) for step in found.steps] == [InstallPackages, WriteFile]
    assert found.steps[1].content.startswith("torch==2.6.0+cu12")


@pytest.mark.parametrize(
    ("line", "asked"),
    [
        ("/v/bin/python -m pip install 'numpy<2' torch==2.1.0", Asked(("numpy<2", "torch==2.1.0"), None, False, False)),
        ("python -m pip install torchvision==0.21.0 --no-deps --force-reinstall --index-url https://x/cu124", Asked(("torchvision==0.21.0",), "https://x/cu124", True, True)),
        ("unset X", Asked((), None, False, False)),
    ],
)  # fmt: skip
def test_a_pip_line_is_read_as_what_it_asks_for(line: str, asked: Asked) -> None:
    assert parse_pip(line) == asked


@pytest.mark.parametrize(
    ("requirement", "name"),
    [
        ("torch==2.6.0+cu124", "torch"),
        ("huggingface_hub>=0.2,<1", "huggingface-hub"),
        ("numpy<2", "numpy"),
        ("peft[x]", "peft"),
    ],
)
def test_a_requirement_begins_with_its_name(requirement: str, name: str) -> None:
    assert name_of(requirement) == name


# ---------------------------------------------------------------------------------------- which, and none
def test_every_id_that_is_said_to_have_a_cure_has_one() -> None:
    assert set(all_fixes()) == FIXABLE
    assert has_fix("numpy2-torch-abi") and not has_fix("gpu-hardware-fault")


def test_no_cure_ever_installs_a_driver_or_resets_a_card_or_kills_by_name() -> None:
    import inspect

    source = "".join(inspect.getsource(inspect.getmodule(one)) for one in all_fixes().values())  # type: ignore[arg-type]
    for word in ("gpu-reset", "pkill", "killall", "nvidia-driver", "apt-get", "cuda-drivers"):
        assert word not in source


def test_what_is_the_hosts_gets_a_text_for_the_provider() -> None:
    card = Gpu(name="NVIDIA A100", uuid="GPU-12345678", index=3, error="GPU is lost")
    snapshot = machine(gpus=Gpus(items=(card,)), driver=Driver(version="535.104"))
    finding = Finding(id="gpu-hardware-fault", level="fail", title=t("Xid 79"))
    proposal = propose(finding, snapshot)
    assert proposal.fix is None and "not reset by its tenant" in str(proposal.why_not)
    said = str(for_the_provider(finding, snapshot))
    assert all(word in said for word in ("GPU-12345678", "Xid 79", "535.104", "GPU is lost"))


def test_what_is_ones_own_is_no_matter_for_the_provider() -> None:
    assert for_the_provider(Finding(id="label-out-of-range", level="fail", title=t("x")), machine()) is None
    assert not OF_THE_HOST & FIXABLE


def test_the_same_steps_are_taken_once_and_symptoms_are_left_to_their_cause() -> None:
    snapshot = machine(host=MANY_CPUS, container=FEW, environment=variables(OMP_NUM_THREADS="128"))
    report = judge(snapshot)
    found = proposals(report, snapshot, (), everything=True)
    assert [one.finding.id for one in found if one.fix] == ["thread-count-above-cpus"]
    assert [one.id for one in chosen(report, ["cpu-quota-below-host-count"])] == [
        "cpu-quota-below-host-count"
    ]
    assert chosen(report, ["thread-count-above-cpus:MKL_NUM_THREADS"]) == []


def test_ending_a_process_is_never_part_of_all() -> None:
    proposal = propose(
        Finding(id="hub-offline", level="note", subject="HF_HUB_OFFLINE", title=t("x")), machine()
    )
    assert is_left_out(proposal, ()) and not is_left_out(proposal, ("hub-offline",))
