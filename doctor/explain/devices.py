"""Patterns of cards that are there and cannot be used: busy, too old, asked by two ranks, taken from the container."""

from __future__ import annotations

from doctor.explain.match import Pattern
from doctor.model import t

PATTERNS: tuple[Pattern, ...] = (
    # RuntimeError: CUDA error: all CUDA-capable devices are busy or unavailable   |   CUDA-capable device(s) is/are busy or unavailable
    Pattern(
        id="devices-busy",
        regex=r"CUDA-capable devices? are busy or unavailable|CUDA-capable device\(s\) is/are busy or unavailable|cudaErrorDevicesUnavailable",
        meaning=t("The driver refuses a context on the card: it is in exclusive mode and taken, has no memory left for one, or is in a bad state."),
        advice=t("`nvidia-smi -q -d COMPUTE` shows the mode and `doctor check` who holds the card; if nobody does, restart the instance."),
        confirms=("vram-held-by-process", "orphan-process-holds-vram", "gpu-hardware-fault", "cuda-init-fails"),
        hides=("cuda-error-late",),
    ),
    # Found GPU0 Tesla K40m which is of cuda capability 3.5. PyTorch no longer supports this GPU because it is too old.
    Pattern(
        id="gpu-too-old",
        regex=r"which is of cuda capability (?P<capability>\d+\.\d+)|no longer supports this GPU because it is too old",
        meaning=t("This torch no longer carries code for so old a card (compute capability {capability}).", capability="?"),
        advice=t("Install an older torch build that still does (`doctor recommend` names it), or rent a newer card."),
        confirms=("gpu-arch-not-in-torch-build",),
    ),
    # RuntimeError: CUDA error: the launch timed out and was terminated
    Pattern(
        id="launch-timed-out",
        regex=r"the launch timed out and was terminated|cudaErrorLaunchTimeout",
        meaning=t("A kernel ran longer than the display watchdog allows: the card also drives a screen."),
        advice=t("Smaller batches, or a card without a display."),
        hides=("cuda-error-late",),
    ),
    # RuntimeError: NVML_SUCCESS == r INTERNAL ASSERT FAILED at "../c10/cuda/CUDACachingAllocator.cpp":830, please report a bug to PyTorch.
    Pattern(
        id="nvml-assert",
        regex=r"NVML_SUCCESS == r INTERNAL ASSERT FAILED",
        meaning=t("torch asked NVML while its memory was full, and NVML did not answer: nearly always an out-of-memory in a container or a shared card."),
        advice=t("Treat it as an out-of-memory: a smaller micro-batch, and see who else holds the card (`doctor check`)."),
        confirms=("vram-held-by-process", "orphan-process-holds-vram", "vram-mostly-used", "nvml-lost-in-container", "nvml-driver-library-mismatch"),
    ),
    # NCCL WARN Duplicate GPU detected : rank 0 and rank 1 both on CUDA device 1000
    Pattern(
        id="duplicate-gpu",
        regex=r"Duplicate GPU detected ?: rank (?P<one>\d+) and rank (?P<other>\d+) both on CUDA device",
        meaning=t("Ranks {one} and {other} use the same card: there are more processes than cards, or each took cuda:0.", one="?", other="?"),
        advice=t("--nproc_per_node no larger than the number of cards, and torch.cuda.set_device(int(os.environ['LOCAL_RANK'])) before the process group is made."),
        confirms=("fewer-gpus-than-rented", "cuda-visible-devices-invalid"),
        hides=("nccl-error",),
    ),
    # ValueError: Default process group has not been initialized, please make sure to call init_process_group.
    Pattern(
        id="no-process-group",
        regex=r"Default process group has not been initialized",
        meaning=t("Something distributed was asked for before, or without, init_process_group."),
        advice=t("Start with torchrun or accelerate launch, or leave the distributed part out on one card."),
    ),
    # No devices were found
    Pattern(
        id="smi-no-devices",
        regex=r"^No devices were found\s*$",
        meaning=t("nvidia-smi reaches the driver, and there is no card: this container was given none, or the card no longer answers."),
        advice=t("`doctor check` tells which, from the bus and the kernel's log; then start the instance with a GPU, or take another one."),
        confirms=("no-gpu-visible", "gpu-hardware-fault", "fewer-gpus-than-rented"),
    ),
    # RuntimeError: "addmm_impl_cpu_" not implemented for 'Half'
    Pattern(
        id="half-on-cpu",
        regex=r"\"(?P<op>\w+)\" not implemented for 'Half'",
        meaning=t("A model in fp16 runs on the CPU, which has no fp16 form of {op}: torch sees no card, or the model was never moved to it.", op="?"),
        advice=t("`python -c \"import torch; print(torch.cuda.is_available())\"`: if True, model.cuda(); if False, `doctor check` says why. On a CPU load in float32 or bfloat16."),
        confirms=("torch-cpu-only-build", "no-gpu-visible", "driver-too-old-for-torch-cuda", "cuda-visible-devices-invalid"),
    ),
    # rocBLAS error: Cannot read .../torch/lib/rocblas/library/TensileLibrary.dat: No such file or directory
    Pattern(
        id="rocm-without-kernels",
        regex=r"rocBLAS error: Cannot read \S*TensileLibrary|hipErrorNoBinaryForGpu",
        meaning=t("This ROCm build of torch has no kernels for this AMD card."),
        advice=t("A torch built for a newer ROCm that lists the card, or one of the same family by HSA_OVERRIDE_GFX_VERSION (RDNA 2: 10.3.0, RDNA 3: 11.0.0)."),
    ),
    # >>> torch.cuda.is_available() False
    Pattern(
        id="cuda-not-available",
        regex=r"torch\.cuda\.is_available\(\)\)?\s+False\b",
        meaning=t("torch sees no card here: it is a build for the CPU ('+cpu' in torch.__version__), the driver is too old for it, or this machine was given no card."),
        advice=t("`doctor check` tells which of them it is; `nvidia-smi` alone shows the driver and not whether torch fits it. AutoDL: an instance in no-card mode has none."),
        confirms=("torch-cpu-only-build", "driver-too-old-for-torch-cuda", "no-gpu-visible", "cuda-visible-devices-invalid", "cuda-init-fails"),
    ),
)  # fmt: skip
