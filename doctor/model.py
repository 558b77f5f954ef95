"""The words everything else speaks: readings, facts, snapshots, findings, fixes.

Pure records. A field that is ``None`` was not read (unknown), never "no"; where a reason is known it stands in the
section's ``unread`` under the field's name. Units are in names; ``*_bytes`` are bytes, ``*_s`` seconds.
"""

from __future__ import annotations

from functools import cached_property
from typing import Generic, Literal, TypeVar

import msgspec

from runner.text import Text, t

__all__ = ["Text", "t"]

SCHEMA = 1
"""Version of the snapshot and report formats; older ones stay readable."""

T = TypeVar("T")


class Record(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Base of every record: frozen, keyword-only, defaults left out on disk."""


# ---------------------------------------------------------------------------------------------------- readings
Status = Literal["ok", "absent", "failed", "skipped"]


class OtherAnswer(Record, frozen=True):
    """What another source said of the same fact; kept, since disagreement is a finding."""

    source: str
    value: str = ""
    why: Text | None = None


class Reading(Record, Generic[T], frozen=True):
    """The answer to "what is there?", with how it was had.

    ``ok``: read. ``absent``: looked, and it is not there. ``failed``: could not look. ``skipped``: nobody looked
    (checks stay silent, the report lists it). The four are never the same.
    """

    status: Status
    value: T | None = None
    why: Text | None = None
    source: str = ""
    """Where it was read: a path, an API or a command, as a person would look it up."""
    took_ms: float | None = None
    others: tuple[OtherAnswer, ...] = ()


def ok(
    value: T, source: str = "", took_ms: float | None = None, others: tuple[OtherAnswer, ...] = ()
) -> Reading[T]:
    return Reading(status="ok", value=value, source=source, took_ms=took_ms, others=others)


def skipped() -> Reading[T]:
    return Reading(status="skipped")


class Section(Record, frozen=True):
    """Base of the sections of :class:`Facts`."""

    unread: dict[str, Text] = {}
    """Field name -> why that field could not be read though the section could."""


# ---------------------------------------------------------------------------------------------------- the machine
class Host(Section, frozen=True):
    os_name: str | None = None
    """``NAME VERSION_ID`` as in /etc/os-release: ``Ubuntu 22.04``."""
    kernel: str | None = None
    """``uname -r``."""
    arch: str | None = None
    """``uname -m``: x86_64, aarch64."""
    wheel_platform: str | None = None
    """Set only where it is not Linux (a recorded Windows or macOS machine): ``win_amd64``."""
    glibc: str | None = None
    """``ldd --version``: ``2.35``; empty on musl."""
    wsl: bool | None = None
    virtual_machine: str | None = None
    """Hypervisor as DMI names it; empty: looked, none."""
    cpu_model: str | None = None
    cpu_flags: tuple[str, ...] | None = None
    """Those of the CPU's flags that decide a precision: avx512_bf16, amx_bf16 (``grep flags /proc/cpuinfo``)."""
    cpu_count: int | None = None
    """What ``os.cpu_count()`` returns: the host's logical CPUs."""
    affinity_count: int | None = None
    """``taskset -cp $$``: CPUs this process may run on."""
    memory_total_bytes: int | None = None
    memory_available_bytes: int | None = None
    uid: int | None = None
    has_passwd_entry: bool | None = None
    capabilities_effective: int | None = None
    """``grep CapEff /proc/self/status``, as a number; bit 19 is SYS_PTRACE, 21 SYS_ADMIN."""
    yama_ptrace_scope: int | None = None
    """``cat /proc/sys/kernel/yama/ptrace_scope``; None also where the kernel has no Yama."""
    seccomp_mode: int | None = None
    locale_encoding: str | None = None
    """``locale.getpreferredencoding(False)`` of a fresh interpreter: UTF-8, ANSI_X3.4-1968, gbk."""
    services: dict[str, str] = {}
    """systemd unit -> state (``systemctl is-active``), for the units that matter; absent key: not looked at."""
    open_files_soft_limit: int | None = None
    """``ulimit -n``."""
    memlock_soft_limit_bytes: int | None = None
    """``ulimit -l`` (-1: unlimited)."""
    network_interfaces: tuple[str, ...] | None = None
    """Names under /sys/class/net."""
    infiniband_devices: tuple[str, ...] | None = None
    in_terminal_multiplexer: bool | None = None
    """Inside tmux or screen."""
    interrupted_over_ssh: bool | None = None
    """This session came over SSH (SSH_CONNECTION is set)."""
    clock_skew_s: float | None = None
    """By how much ``date`` is certainly wrong (negative: behind). None: no fault shows, which does not prove it right."""


class Container(Section, frozen=True):
    inside: bool | None = None
    kind: str | None = None
    """docker, podman, kubernetes, lxc, apptainer, slurm ...; empty: none recognised."""
    host_pid_namespace: bool | None = None
    cpu_quota_cores: float | None = None
    """cpu.max quota divided by period; None with ``cpu_quota_unlimited``: no limit set."""
    cpu_quota_unlimited: bool | None = None
    memory_limit_bytes: int | None = None
    memory_limit_unlimited: bool | None = None
    memory_current_bytes: int | None = None
    oom_kill_count: int | None = None
    """``oom_kill`` in memory.events: processes of this cgroup that the kernel killed for memory."""
    first_process_variables: tuple[str, ...] | None = None
    """Names (never values) in /proc/1/environ: what the pod was started with."""


class Platform(Section, frozen=True):
    """Where the machine was rented. ``name`` is a key of tables/platforms.toml; empty: none recognised."""

    name: str = ""
    evidence: tuple[str, ...] = ()
    no_gpu_mode: bool | None = None
    """The platform's no-card start mode (AutoDL 无卡模式)."""
    gpus_rented: int | None = None
    """What the platform says was rented (RUNPOD_GPU_COUNT ...)."""
    network_turbo: bool | None = None
    """AutoDL's /etc/network_turbo exists."""


class Driver(Section, frozen=True):
    version: str | None = None
    """User-space driver: ``nvidia-smi --query-gpu=driver_version --format=csv``."""
    cuda_version: str | None = None
    """Newest CUDA that the driver serves (nvmlSystemGetCudaDriverVersion): ``12.4``."""
    reported_cuda_version: str | None = None
    """What a tool printed, where that differs (a cuda-compat library in front of the driver)."""
    kernel_module_version: str | None = None
    """``cat /sys/module/nvidia/version``."""
    nvml_library_version: str | None = None
    libcuda_path: str | None = None
    """The libcuda.so.1 that the loader finds."""
    libcuda_version: str | None = None
    nvml_error: int | None = None
    """What nvmlInit returned: 0 fine, 9 driver not loaded, 12 library missing, 18 mismatch, 999 unknown."""
    hung: bool | None = None
    """A question to the driver never came back: whoever asks it next waits as well."""
    cuda_init_error: int | None = None
    """What cuInit returned: 0 fine; 802, 803, 804 ... None: nobody asked."""
    device_nodes: dict[str, str] = {}
    """Device file -> "" when it opens, else the errno's name (ENOENT, EPERM ...)."""
    nvswitch: bool | None = None
    fabric_state: str | None = None
    open_kernel_module: bool | None = None
    other_vendor_gpus: tuple[str, ...] = ()
    """PCI names of GPUs that are not NVIDIA's: not judged, but named."""
    pci_gpu_count: int | None = None
    """NVIDIA display controllers on the PCI bus (``lspci -d 10de:``), whether or not a driver serves them."""


class Gpu(Record, frozen=True):
    index: int = 0
    name: str = ""
    uuid: str = ""
    pci_address: str = ""
    compute_capability: str = ""
    """``8.9``; empty: unknown."""
    memory_total_bytes: int | None = None
    memory_used_bytes: int | None = None
    memory_free_bytes: int | None = None
    memory_reserved_bytes: int | None = None
    """What the driver keeps for itself (NVML memory info v2)."""
    utilization_pct: float | None = None
    memory_activity_pct: float | None = None
    """Share of time in which device memory was read or written (nvidia-smi --query-gpu=utilization.memory)."""
    temperature_c: float | None = None
    temperature_slowdown_c: float | None = None
    power_w: float | None = None
    power_limit_w: float | None = None
    power_default_limit_w: float | None = None
    sm_clock_mhz: float | None = None
    throttle_reasons: tuple[str, ...] | None = None
    """Decoded clock event reasons: hw-thermal, sw-thermal, power-cap, power-brake, hw-slowdown, idle ..."""
    mig_enabled: bool | None = None
    ecc_enabled: bool | None = None
    ecc_uncorrected_volatile: int | None = None
    ecc_uncorrected_aggregate: int | None = None
    row_remap_pending: bool | None = None
    row_remap_failed: bool | None = None
    retired_pages_pending: bool | None = None
    pcie_generation: int | None = None
    pcie_generation_max: int | None = None
    pcie_width: int | None = None
    pcie_width_max: int | None = None
    persistence_mode: bool | None = None
    performance_state: str | None = None
    recovery_action: str | None = None
    error: str = ""
    """What NVML said when this card could not be opened (``GPU is lost``); empty: fine."""
    error_code: int | None = None
    unread: dict[str, str] = {}
    """Field -> NVML's reason (``Not Supported``)."""


class Gpus(Section, frozen=True):
    items: tuple[Gpu, ...] = ()
    topology_worst_link: str | None = None
    """Worst link between two cards as ``nvidia-smi topo -m`` names it: NV#, PIX, PHB, NODE, SYS."""


class GpuProcess(Record, frozen=True):
    pid: int
    gpu_index: int | None = None
    used_bytes: int | None = None
    command: str | None = None
    """None: the pid is not in our /proc (another container's, or another PID namespace's)."""
    uid: int | None = None
    is_ours: bool | None = None
    """It is this user's process in our PID namespace, its identity proven by an open /dev/nvidia* file."""
    age_s: float | None = None


class GpuProcesses(Section, frozen=True):
    items: tuple[GpuProcess, ...] = ()


class KernelLog(Section, frozen=True):
    """What the kernel said of GPUs, PCIe and killed processes: ``dmesg | grep -E 'NVRM|Xid|AER|oom'``."""

    lines: tuple[str, ...] = ()
    complete: bool = True


# ---------------------------------------------------------------------------------------------------- the environment
class PipCommand(Record, frozen=True):
    """The first ``pip`` on PATH."""

    path: str
    python: str
    """The interpreter that it starts, and so installs into: ``head -1 $(which pip)``."""
    is_of_judged: bool
    """That is the judged Python."""


class Python(Section, frozen=True):
    """The interpreter that is judged; not the one that runs the doctor, unless they are the same."""

    version: str | None = None
    executable: str | None = None
    prefix: str | None = None
    kind: str | None = None
    """venv, conda, system, pyenv, uv ..."""
    chosen_by: str | None = None
    """Why this one: ``--python``, VIRTUAL_ENV, CONDA_PREFIX, first on PATH, ours."""
    conda_env: str | None = None
    search_path: tuple[str, ...] | None = None
    """site-packages directories in import order."""
    user_site_enabled: bool | None = None
    user_site_before_env: bool | None = None
    externally_managed: bool | None = None
    has_pip: bool | None = None
    pip_command: PipCommand | None = None
    """None also where PATH has none, or its script does not tell."""
    writable: bool | None = None
    """Its site-packages can be written by this user."""


class Distribution(Record, frozen=True):
    name: str
    """Normalised as PEP 503 has it: lower case, dashes."""
    version: str = ""
    location: str = ""
    """The directory that holds its ``*.dist-info``."""
    requires_dist: tuple[str, ...] | None = None
    requires_python: str | None = None
    wheel_tags: tuple[str, ...] = ()
    installer: str | None = None
    requested: bool | None = None
    direct_url: str | None = None
    """Redacted: no userinfo, no query."""
    editable: bool | None = None
    missing_files: tuple[str, ...] = ()
    """RECORD entries of import-critical files (.so, __init__.py) that are not there."""
    metadata_error: str = ""
    """Why its METADATA could not be read; empty: read."""
    from_conda: bool | None = None


class Extension(Record, frozen=True):
    """A compiled package and what it was built for."""

    distribution: str
    torch: str | None = None
    """torch minor it was built for: ``2.6``."""
    cuda: str | None = None
    cxx11_abi: bool | None = None
    needs_glibc: str | None = None
    needs_glibcxx: str | None = None
    cuda_builds: tuple[str, ...] | None = None
    """CUDA versions it carries binaries for (bitsandbytes); None: not looked."""
    loads_package: str | None = None
    """The distribution whose files really lie in the import folder (onnxruntime over onnxruntime-gpu)."""


class Packages(Section, frozen=True, dict=True):
    items: tuple[Distribution, ...] = ()
    complete: bool = True
    """False: an excerpt. What is not in it may well be installed."""
    not_installed: tuple[str, ...] = ()
    """Looked for in vain (only where ``complete`` is False)."""
    extensions: tuple[Extension, ...] = ()
    leftovers: tuple[str, ...] = ()
    """``~orch``-like remains of interrupted installs."""

    @cached_property
    def _first_copies(self) -> dict[str, Distribution]:
        return {item.name: item for item in reversed(self.items)}

    def get(self, name: str) -> Distribution | None:
        """Return the first copy on the import path, or None."""
        return self._first_copies.get(name)

    def version(self, name: str) -> str | None:
        found = self.get(name)
        return found.version if found and found.version else None

    def is_missing(self, name: str) -> bool | None:
        """Return whether ``name`` is certainly not installed; None when the list cannot say."""
        if self.get(name):
            return False
        return True if self.complete or name in self.not_installed else None

    def extension(self, name: str) -> Extension | None:
        return next((item for item in self.extensions if item.distribution == name), None)


class Torch(Section, frozen=True):
    """The torch of the examined interpreter, read from its files; ``absent`` when there is none."""

    version: str = ""
    """``torch.__version__`` (from torch/version.py): ``2.6.0+cu124``."""
    cuda: str | None = None
    """``torch.version.cuda``: "12.4"; "" for a build without CUDA; None: unknown."""
    hip: str | None = None
    arch_list: tuple[str, ...] | None = None
    """``torch.cuda.get_arch_list()``: sm_75 ... compute_90."""
    arch_source: str = ""
    """fatbin, string or table."""
    cxx11_abi: bool | None = None
    location: str = ""
    copies: tuple[str, ...] = ()
    """Every dist-info or package folder of torch on the import path, in order."""
    broken: str = ""
    """Why it cannot import, where that shows without importing (a missing .so); empty: nothing seen."""
    cudnn_version: str | None = None
    nccl_version: str | None = None
    transformers_minimum: str | None = None
    """The oldest torch that the installed transformers accepts (a literal in its import_utils.py)."""


class FoundLibrary(Record, frozen=True):
    soname: str
    path: str
    version: str | None = None
    found_by: str = ""
    """LD_LIBRARY_PATH, bundled, system, conda."""
    newest_symbol: str | None = None
    """Newest versioned symbol (GLIBCXX_3.4.21), for libstdc++."""


class Libraries(Section, frozen=True):
    items: tuple[FoundLibrary, ...] = ()
    nvcc_version: str | None = None
    nvcc_path: str | None = None
    compiles_extensions: tuple[str, ...] | None = None
    """What is compiled here and needs nvcc: distributions (deepspeed) or files of the project (setup.py)."""
    compiler_version: str | None = None


class Mount(Record, frozen=True):
    path: str
    fstype: str = ""
    source: str = ""
    size_bytes: int | None = None
    free_bytes: int | None = None
    inodes_total: int | None = None
    inodes_free: int | None = None
    quota_bytes: int | None = None
    quota_used_bytes: int | None = None
    read_bytes_per_s: float | None = None
    """Measured; None: nobody measured."""
    rotational: bool | None = None
    read_only: bool | None = None
    error: str = ""
    """statvfs failed or hung; the sizes are unknown then."""


class Place(Record, frozen=True):
    """A directory that matters, and where it lies."""

    name: str
    """hf_home, hf_hub_cache, torch_home, pip_cache, uv_cache, triton_cache, wandb_dir, tmp, home, cwd ..."""
    path: str
    exists: bool | None = None
    mount: str | None = None
    set_by: str = ""
    """The variable that set it; empty: a default."""
    size_bytes: int | None = None
    writable: bool | None = None


class WriteProbe(Record, frozen=True):
    path: str
    size_bytes: int
    errno: int
    """0: it could be written (and was removed again)."""


class Storage(Section, frozen=True):
    mounts: tuple[Mount, ...] = ()
    places: tuple[Place, ...] = ()
    write_probes: tuple[WriteProbe, ...] = ()

    def mount(self, path: str) -> Mount | None:
        """Return the mount that holds the absolute ``path``: the longest mount point above it."""
        above = [
            item for item in self.mounts if path == item.path or path.startswith(item.path.rstrip("/") + "/")
        ]
        return max(above, key=lambda item: len(item.path), default=None)

    def place(self, name: str) -> Place | None:
        return next((item for item in self.places if item.name == name), None)


class Environment(Section, frozen=True):
    """Variables of the session that will train. Values only of names on the allow-list (see redact.py)."""

    variables: dict[str, str] = {}
    names: tuple[str, ...] = ()
    """Every other name that is set; its value was not taken."""
    complete: bool = True
    """False: names not listed may be set."""

    def get(self, name: str) -> str | None:
        return self.variables.get(name)


class Process(Record, frozen=True):
    pid: int
    parent_pid: int | None = None
    uid: int | None = None
    command: str = ""
    state: str = ""
    """R, S, D, Z ... as in ``ps -o stat``."""
    age_s: float | None = None
    rss_bytes: int | None = None
    gpu_files: tuple[str, ...] = ()
    """Open /dev/nvidia* files."""
    is_ours: bool | None = None
    started_ticks: int | None = None
    """Field 22 of /proc/PID/stat: with the pid it names one process for good."""


class Processes(Section, frozen=True):
    """Processes that hold a GPU device file, train, or are asked about; not the whole table."""

    items: tuple[Process, ...] = ()


# ---------------------------------------------------------------------------------------------------- the purpose
class Requirement(Record, frozen=True):
    line: str
    file: str = ""


class Project(Section, frozen=True):
    """What lies in the working directory and would act on the environment."""

    cwd: str | None = None
    requirements: tuple[Requirement, ...] = ()
    shadowing_files: tuple[str, ...] = ()
    """Files here that hide an installed module (torch.py, random.py)."""
    shadowing_folder: str | None = None
    """Where ``shadowing_files`` lie; None: in ``cwd``. A script's own folder comes first on its path."""
    is_package: bool | None = None
    """It has an ``__init__.py``: the inside of a package, whose files are imported by its name."""


class Workload(Section, frozen=True):
    """The run that is meant or was had: from a profile, a script, or a log."""

    source: str = ""
    output_dir: str | None = None
    data_path: str | None = None
    data_bytes: int | None = None
    data_files: int | None = None
    num_workers: int | None = None
    gpu_utilization_pct: float | None = None
    model_parameters: int | None = None
    optimizer: str | None = None
    training_args: dict[str, str | int | float | bool | None] = {}
    model_accepts_loss_kwargs: bool | None = None
    colocated: tuple[str, ...] = ()
    checkpoint_bytes: int | None = None
    checkpoints_kept: int | None = None
    memory_needed_bytes: int | None = None
    """Peak GPU memory that the run needs on one card, from ``doctor plan``."""
    memory_needed_low_bytes: int | None = None
    """The low end of that prediction."""
    imports: tuple[str, ...] = ()
    features: tuple[str, ...] = ()
    """What the run does that asks something of the machine: trainer, torch-compile, flash-attention-2 ... (purpose.py)."""
    seeds_set: tuple[str, ...] | None = None
    deterministic: bool | None = None
    scales_loss_itself: bool | None = None


class Incident(Section, frozen=True):
    """How a run ended: numbers and lines from its log."""

    log_lines: tuple[str, ...] = ()
    exit_code: int | None = None
    oom_killed: bool | None = None
    torch_allocated_bytes: int | None = None
    torch_reserved_bytes: int | None = None
    oom_tried_bytes: int | None = None
    own_gpu_process_bytes: int | None = None
    newly_initialized: tuple[str, ...] | None = None
    unused_weights: tuple[str, ...] | None = None
    mean_abs_diff: float | None = None
    max_abs_diff: float | None = None
    output_scale: float | None = None


class InspectedFile(Record, frozen=True):
    path: str
    kind: str = ""
    """text, checkpoint, vocab, library, script, folder ..."""
    encoding: str | None = None
    """utf-8, utf-8-bom, gb18030, utf-16, mixed, binary."""
    bad_lines: int | None = None
    lines: int | None = None
    size_bytes: int | None = None
    problem: str = ""
    """What an inspection found wrong: ``zip end-of-central-directory missing``; empty: nothing."""
    pickle_globals: tuple[str, ...] | None = None
    note: str = ""


class Data(Section, frozen=True):
    """What a look into data, labels, vocabulary and checkpoints found."""

    files: tuple[InspectedFile, ...] = ()
    num_labels: int | None = None
    label_values: tuple[int, ...] | None = None
    tokenizer: str | None = None
    tokenizer_size: int | None = None
    embedding_rows: int | None = None
    max_token_id: int | None = None
    unknown_token_share: float | None = None
    unknown_characters: tuple[str, ...] = ()
    vanishing_characters: tuple[str, ...] = ()
    sample: str | None = None


# ---------------------------------------------------------------------------------------------------- where it came from
class GitState(Record, frozen=True):
    """One working tree: ``git status``, ``git diff HEAD --binary``."""

    root: str = ""
    commit: str | None = None
    """None: no commit yet, or it could not be read (``why`` says so)."""
    branch: str = ""
    remote: str | None = None
    """Where it was cloned from, without user, password and query."""
    dirty: bool | None = None
    """Tracked files differ from the commit."""
    patch: str | None = None
    """``git apply`` brings the changes back, on this commit. Word for word, never cleaned."""
    patch_is_base64: bool = False
    """The patch is not UTF-8; ``patch`` holds its bytes in base64."""
    patch_bytes: int | None = None
    patch_sha256: str = ""
    """Of the patch, kept where the patch itself is left out."""
    patch_why: Text | None = None
    """Why there is no patch although files differ."""
    untracked: tuple[str, ...] = ()
    """Names only, the first of them; ``untracked_count`` says how many there are."""
    untracked_count: int | None = None
    why: Text | None = None


class Content(Record, frozen=True):
    """What proves that an installed distribution is the same one elsewhere. Digests are ``sha256:HEX``."""

    name: str
    version: str = ""
    location: str = ""
    record_sha256: str = ""
    """Over the sorted ``path,hash`` rows of RECORD, without what installers add; empty: ``why`` says why."""
    record_files: int | None = None
    metadata_sha256: str = ""
    build: str = ""
    """``Build:`` of WHEEL: part of the wheel's file name."""
    url: str | None = None
    """direct_url.json: no user, password or query in it."""
    vcs: str = ""
    commit: str = ""
    requested_revision: str = ""
    subdirectory: str = ""
    archive_sha256: str = ""
    editable: bool = False
    git: GitState | None = None
    """Of an editable install's source tree."""
    file_url: str = ""
    """Where the file that was installed can be had, once `doctor snapshot resolve` has looked."""
    file_sha256: str = ""
    index: str = ""
    """The index that offers it."""
    why: Text | None = None


class CondaPackage(Record, frozen=True):
    """One file of conda-meta."""

    name: str
    version: str = ""
    build: str = ""
    channel: str = ""
    url: str = ""
    sha256: str = ""


class DataFingerprint(Record, frozen=True):
    path: str
    size_bytes: int | None = None
    files: int | None = None
    modified_at: str = ""
    """UTC, ISO 8601; of a folder: its newest file's."""
    sha256: str = ""
    how: str = ""
    """``whole``: every byte; ``sampled``: size, first, last and evenly spaced blocks of each file."""
    why: Text | None = None
    """Why it could not be read, or not all of it."""


class KeptProof(Record, frozen=True):
    """What `doctor prove RUN` kept: the first steps, computed twice, equal to the bit."""

    steps: int
    sha256: str
    """``sha256:HEX`` over weights, batches, random state, gradients and optimizer state of each step."""
    plan_sha256: str = ""
    made_at: str = ""
    level: str = ""
    device: str = ""
    driver: str = ""
    torch: str = ""
    threads: int = 0


class RunSettings(Record, frozen=True):
    """What a run was told: from its plan.json."""

    name: str = ""
    plan_sha256: str = ""
    profile: dict[str, str | int | float | bool | None] = {}
    """``train.lr`` -> 3e-05; lists as JSON."""
    settings: dict[str, str | int | float | bool | None] = {}
    """Device, precision, micro batch, threads, workers as they were settled."""
    seeds: dict[str, int] = {}
    environment: dict[str, str] = {}
    """Variables set before the interpreter started."""
    proof: KeptProof | None = None
    """From its proof.json; None: `doctor prove RUN` was not asked."""


class IndexLine(Record, frozen=True):
    """Where packages are asked for: one line of a pip or uv configuration."""

    option: str
    """index-url, extra-index-url, find-links."""
    url: str
    source: str = ""
    """The file or variable it stands in."""


class Provenance(Section, frozen=True):
    """Where the environment, the code and the data came from. Read for a snapshot, not for a check."""

    contents: tuple[Content, ...] = ()
    conda: tuple[CondaPackage, ...] = ()
    os_packages: dict[str, str] = {}
    """Of the system's package manager, those that a training environment stands on."""
    indexes: tuple[IndexLine, ...] = ()
    git: GitState | None = None
    """Of the working directory; None: it is in no git working tree."""
    data: tuple[DataFingerprint, ...] = ()
    run: RunSettings | None = None

    def content(self, name: str) -> Content | None:
        return next((item for item in self.contents if item.name == name), None)


StepStatus = Literal["ok", "failed", "crashed", "timed-out"]


class DeepStep(Record, frozen=True):
    """One thing that was tried in the examined interpreter."""

    name: str
    """import, see-gpus, start, matmul, backward, fp16, bf16, round-trip, read."""
    subject: str
    """The package, the device (cpu, cuda:0), the backend (nccl, gloo), the path."""
    status: StepStatus
    """``crashed``: the process died in it. ``timed-out``: it did not end."""
    seconds: float | None = None
    detail: str = ""
    """The version, the error's own text, the signal, or where it hung."""


class DeepDevice(Record, frozen=True):
    """A card as torch sees it."""

    index: int
    name: str = ""
    compute_capability: str = ""
    memory_total_bytes: int | None = None
    memory_free_bytes: int | None = None


class Deep(Section, frozen=True):
    """What happened when torch was really used (``doctor check --deep``)."""

    steps: tuple[DeepStep, ...] = ()
    finished: bool = False
    """False: it was ended before the last step."""
    limit_s: float | None = None
    not_installed: tuple[str, ...] = ()
    torch_version: str | None = None
    torch_cuda: str | None = None
    """``torch.version.cuda``; "" for a build without CUDA."""
    cuda_available: bool | None = None
    device_count: int | None = None
    devices: tuple[DeepDevice, ...] = ()
    backend: str | None = None
    ranks: int | None = None
    read_path: str | None = None
    read_bytes: int | None = None
    read_files: int | None = None
    read_bytes_per_s: float | None = None
    read_past_cache: bool | None = None
    """False: the file system has no direct reads, so memory may have served a part."""

    def step(self, name: str, subject: str) -> DeepStep | None:
        return next((item for item in self.steps if (item.name, item.subject) == (name, subject)), None)


class Facts(Record, frozen=True):
    """Everything known of a machine. Field names are what a check's parameters are called."""

    host: Reading[Host] = Reading(status="skipped")
    container: Reading[Container] = Reading(status="skipped")
    platform: Reading[Platform] = Reading(status="skipped")
    driver: Reading[Driver] = Reading(status="skipped")
    gpus: Reading[Gpus] = Reading(status="skipped")
    gpu_processes: Reading[GpuProcesses] = Reading(status="skipped")
    kernel_log: Reading[KernelLog] = Reading(status="skipped")
    python: Reading[Python] = Reading(status="skipped")
    packages: Reading[Packages] = Reading(status="skipped")
    torch: Reading[Torch] = Reading(status="skipped")
    libraries: Reading[Libraries] = Reading(status="skipped")
    storage: Reading[Storage] = Reading(status="skipped")
    environment: Reading[Environment] = Reading(status="skipped")
    processes: Reading[Processes] = Reading(status="skipped")
    project: Reading[Project] = Reading(status="skipped")
    workload: Reading[Workload] = Reading(status="skipped")
    incident: Reading[Incident] = Reading(status="skipped")
    data: Reading[Data] = Reading(status="skipped")
    deep: Reading[Deep] = Reading(status="skipped")
    provenance: Reading[Provenance] = Reading(status="skipped")


SECTIONS: dict[str, type[Section]] = {
    "host": Host,
    "container": Container,
    "platform": Platform,
    "driver": Driver,
    "gpus": Gpus,
    "gpu_processes": GpuProcesses,
    "kernel_log": KernelLog,
    "python": Python,
    "packages": Packages,
    "torch": Torch,
    "libraries": Libraries,
    "storage": Storage,
    "environment": Environment,
    "processes": Processes,
    "project": Project,
    "workload": Workload,
    "incident": Incident,
    "data": Data,
    "deep": Deep,
    "provenance": Provenance,
}


class KnownGood(Record, frozen=True):
    """What is known of an environment that comes with the doctor."""

    tested: bool = False
    """It was restored from the very file, compared file by file, and trained with; else `restore` wants --untested."""
    how: Text | None = None
    """What was done with it, on what machine; of an untested one, what could not be."""
    before: str = ""
    """No release in it is younger than this day: they existed together."""
    evidence: tuple[str, ...] = ()
    """Where a digest comes from that no index within reach confirmed."""


class Snapshot(Record, frozen=True):
    """A machine as a file. Ours is read by probes, anyone else's from disk; from there on nobody can tell."""

    schema: int = SCHEMA
    taken_at: str = ""
    """UTC, ISO 8601."""
    tool: str = ""
    label: str = ""
    redacted: bool = False
    facts: Facts = Facts()
    known_good: KnownGood | None = None
    """Only of those in snapshots/."""
    unknown_keys: tuple[str, ...] = ()
    """Paths in the file that this version does not know; never judged."""


# ---------------------------------------------------------------------------------------------------- findings
Level = Literal["fail", "warn", "note", "unknown"]
LEVELS: tuple[Level, ...] = ("fail", "warn", "note", "unknown")
"""Worst first."""


class Evidence(Record, frozen=True):
    fact: str
    """Path in Facts: ``driver.version``, ``gpus.items[0].compute_capability``."""
    value: str


class Finding(Record, frozen=True):
    """One thing a person should know. A finding that is wrong once costs more trust than ten that are missing."""

    id: str
    level: Level
    title: Text
    """One sentence: what is wrong, with the numbers."""
    subject: str = ""
    """Of what: the package, card, path, variable. Short, not translated."""
    advice: Text | None = None
    """What to do, in one or two sentences; commands in it can be pasted."""
    evidence: tuple[Evidence, ...] = ()
    cause_of: tuple[str, ...] = ()
    """Ids of findings that are only symptoms of this one when both are given."""
    fix: str = ""
    """Id of the fix that mends it; empty: none."""
    link: str = ""


class Diagnosis(Record, frozen=True):
    """A finding with the symptoms that stand under it."""

    finding: Finding
    symptoms: tuple[Finding, ...] = ()


class Unanswered(Record, frozen=True):
    """Checks that could not answer because a section could not be read."""

    section: str
    why: Text
    checks: tuple[str, ...]


class Report(Record, frozen=True):
    """What judging a snapshot gave: worst first, causes before symptoms."""

    schema: int = SCHEMA
    label: str = ""
    taken_at: str = ""
    diagnoses: tuple[Diagnosis, ...] = ()
    unanswered: tuple[Unanswered, ...] = ()
    unread: tuple[Unanswered, ...] = ()
    """Sections that could not be read and that no check hangs on here, and lists that were not read to their end; they
    change no exit code."""
    passed: tuple[str, ...] = ()
    """Checks that looked and found nothing."""
    not_applicable: tuple[str, ...] = ()
    not_looked: tuple[str, ...] = ()
    """Sections that nobody read."""
    crashed: tuple[str, ...] = ()
    """Checks that raised: a bug of ours, reported as such."""

    def findings(self) -> list[Finding]:
        """Return every finding, symptoms included, in the order shown."""
        return [item for diagnosis in self.diagnoses for item in (diagnosis.finding, *diagnosis.symptoms)]


# ---------------------------------------------------------------------------------------------------- fixes
class Run(Record, frozen=True, tag="run"):
    argv: tuple[str, ...]
    undo: tuple[str, ...] | None = None
    """The command that takes it back; None: cannot be undone, and says so."""


class WriteFile(Record, frozen=True, tag="write-file"):
    path: str
    content: str
    mode: int = 0o644


class MovePath(Record, frozen=True, tag="move-path"):
    source: str
    target: str
    leave_link: bool = True


class SetVariable(Record, frozen=True, tag="set-variable"):
    """A line in the managed block of a file that the user sources; ``value`` None removes the variable."""

    name: str
    value: str | None
    file: str


class StopProcess(Record, frozen=True, tag="stop-process"):
    pid: int
    started_ticks: int
    command: str


class AddLine(Record, frozen=True, tag="add-line"):
    """One line at the end of a file, once; the file is made where there is none."""

    path: str
    line: str


class RecodeFile(Record, frozen=True, tag="recode-file"):
    """A text file written anew as UTF-8 without a byte order mark; the original stays under ``kept``."""

    path: str
    encoding: str
    """What it is in now, as Python names it: gb18030, utf-8-sig, utf-16."""
    kept: str


class RemovePath(Record, frozen=True, tag="remove-path"):
    """A file or folder taken away: put aside beside its place, or (a cache that fills itself again) deleted."""

    path: str
    keep: bool = True


class InstallPackages(Record, frozen=True, tag="install-packages"):
    """Packages taken out of, and put into, the examined interpreter by its own installer."""

    python: str
    requirements: tuple[str, ...] = ()
    remove: tuple[str, ...] = ()
    """Distributions taken out first."""
    frozen: tuple[str, ...] = ()
    """Constraint lines (``torch==2.6.0+cu124``) that nothing may move."""
    index_url: str | None = None
    no_deps: bool = False
    force: bool = False
    """Install again what is there already."""
    imports: tuple[str, ...] = ()
    """Modules that must import afterwards; else everything is put back."""
    needs_bytes: int = 0
    """Room that must be free where the packages lie."""


class AskUrl(Record, frozen=True, tag="ask-url"):
    """Go on only when this address answers; changes nothing."""

    url: str


Step = (
    Run
    | WriteFile
    | MovePath
    | SetVariable
    | StopProcess
    | AddLine
    | RecodeFile
    | RemovePath
    | InstallPackages
    | AskUrl
)


class Fix(Record, frozen=True):
    id: str
    """The finding it mends."""
    title: Text
    steps: tuple[Step, ...]
    touches: tuple[str, ...] = ()
    """Sections to read again afterwards."""
    risk: Text | None = None
    subject: str = ""
    """The finding's subject: with the id it names one finding."""
    only_when_asked: bool = False
    """Never part of ``--all``: what it does may not be what the person wants (ending a process)."""


class Change(Record, frozen=True):
    """One fix that was begun: written before its first step, closed after its last."""

    id: str
    at: str
    fix: Fix
    closed: bool = False


Outcome = Literal["begun", "done", "failed", "undoing", "undone"]


class JournalEntry(Record, frozen=True):
    """Written *before* the act, completed after."""

    id: str
    """``CHANGE.STEP``: 3.2 is the second step of change 3."""
    at: str
    fix: str
    step: Step
    before: dict[str, str | int | None] = {}
    """What was there: kind, mode, sha256, the blob that holds the bytes ..."""
    after: dict[str, str | int | None] = {}
    outcome: Outcome = "begun"
    undo: str = ""
    """Empty: it can be undone; else why not."""
    error: str = ""
