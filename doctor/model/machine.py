"""What the machine is: host, container, platform, driver, cards and what runs on them."""

from __future__ import annotations

from doctor.model.readings import Record, Section


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
