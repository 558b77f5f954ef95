"""Patterns of the driver, the card, and CUDA as a whole."""

from __future__ import annotations

from doctor.explain.match import Pattern
from doctor.model import t

PATTERNS: tuple[Pattern, ...] = (
    # RuntimeError: CUDA error: no kernel image is available for execution on the device
    Pattern(
        id="no-kernel-image",
        regex=r"no kernel image is available|cudaErrorNoKernelImageForDevice",
        meaning=t("The installed build (of torch or of an extension) carries no code for this card."),
        advice=t(
            "Install a build that carries the card's architecture; reinstalling the same wheel changes nothing."
        ),
        confirms=("gpu-arch-not-in-torch-build",),
        hides=("cuda-error-late",),
    ),
    # ... with CUDA capability sm_120 is not compatible with the current PyTorch installation.
    Pattern(
        id="capability-not-compatible",
        regex=r"with CUDA capability (?P<arch>sm_\d+) is not compatible with the current PyTorch installation",
        meaning=t("torch says itself that it has no code for {arch}.", arch="sm_??"),
        advice=t("Install a torch build that lists this architecture."),
        confirms=("gpu-arch-not-in-torch-build",),
    ),
    # UserWarning: CUDA initialization: The NVIDIA driver on your system is too old (found version 11040).
    Pattern(
        id="driver-too-old",
        regex=r"NVIDIA driver on your system is too old \(found version (?P<found>\d+)\)",
        meaning=t(
            "torch was built for a newer CUDA major than the driver serves (the driver reports {found}: 1000 x major + 10 x minor).",
            found="?",
        ),
        advice=t(
            "On a rented machine the driver cannot be changed: install a torch build for an older CUDA, or rent a newer driver."
        ),
        confirms=("driver-too-old-for-torch-cuda",),
    ),
    # CUDA driver version is insufficient for CUDA runtime version
    Pattern(
        id="driver-insufficient",
        regex=r"CUDA driver version is insufficient for CUDA runtime version|cudaErrorInsufficientDriver",
        meaning=t("The driver is older than the CUDA runtime that the program carries needs (error 35)."),
        advice=t("Install a build for an older CUDA, or rent a machine with a newer driver."),
        confirms=("driver-too-old-for-torch-cuda", "cuda-compat-on-unsupported-gpu"),
        hides=("cuda-error-late",),
    ),
    # AssertionError: Torch not compiled with CUDA enabled
    Pattern(
        id="torch-without-cuda",
        regex=r"Torch not compiled with CUDA enabled",
        meaning=t("The installed torch is a CPU build."),
        advice=t(
            "Uninstall torch and install a CUDA build from its index with --no-cache-dir; no CUDA toolkit is needed."
        ),
        confirms=("torch-cpu-only-build",),
    ),
    # RuntimeError: Found no NVIDIA driver on your system.
    Pattern(
        id="no-driver",
        regex=r"Found no NVIDIA driver on your system|NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver|\bnvidia-smi: command not found|\bnvidia-smi[:：] ?未找到命令",
        meaning=t(
            "No NVIDIA driver is reachable from here: the machine was started without a card, the container without the GPU, or the module is not loaded."
        ),
        advice=t(
            "Start the instance with a GPU (a container with --gpus all); drivers are not installed inside containers."
        ),
        confirms=("no-gpu-visible", "nvml-lost-in-container", "nvml-driver-library-mismatch"),
    ),
    # RuntimeError: No CUDA GPUs are available
    Pattern(
        id="no-gpus",
        regex=r"No CUDA GPUs are available|Cannot access accelerator device when none is available|cudaErrorNoDevice|no CUDA-capable device is detected",
        meaning=t(
            "CUDA starts, but sees no card: none was given to this container, or CUDA_VISIBLE_DEVICES hides them all."
        ),
        advice=t(
            "Look at CUDA_VISIBLE_DEVICES first (`echo $CUDA_VISIBLE_DEVICES`); else start the instance with a GPU."
        ),
        confirms=("no-gpu-visible", "cuda-visible-devices-invalid", "nvml-lost-in-container"),
    ),
    # RuntimeError: No HIP GPUs are available
    Pattern(
        id="no-hip-gpus",
        regex=r"No HIP GPUs are available",
        meaning=t("The installed torch is a ROCm build, for AMD cards, and sees none here."),
        advice=t("On a machine with NVIDIA cards, uninstall it and install torch's CUDA build."),
        confirms=("torch-rocm-build",),
    ),
    # RuntimeError: CUDA error: invalid device ordinal
    Pattern(
        id="invalid-device-ordinal",
        regex=r"invalid device ordinal",
        meaning=t(
            "The program asks for a card number that does not exist here (numbers count from 0 within CUDA_VISIBLE_DEVICES)."
        ),
        advice=t(
            "Start as many processes as there are visible cards, and use cuda:0 for the first visible one."
        ),
        confirms=("cuda-visible-devices-invalid", "no-gpu-visible"),
        hides=("cuda-error-late",),
    ),
    # Error 802: system not yet initialized
    Pattern(
        id="cuda-802",
        regex=r"[Ee]rror 802|system not yet initialized|CUDA_ERROR_SYSTEM_NOT_READY",
        meaning=t(
            "Error 802: the cards are joined by NVSwitch, and the fabric manager that sets it up is not running (or not of the driver's version)."
        ),
        advice=t(
            "The host must start nvidia-fabricmanager; inside a container this cannot be done: tell the provider."
        ),
        confirms=("fabric-manager-not-running", "cuda-init-fails"),
    ),
    # Error 803: system has unsupported display driver / cuda driver combination
    Pattern(
        id="cuda-803",
        regex=r"[Ee]rror 803|unsupported display driver / cuda driver combination|CUDA_ERROR_SYSTEM_DRIVER_MISMATCH",
        meaning=t("Error 803: the libcuda that was loaded belongs to another driver than the kernel module."),
        advice=t(
            "Look for a cuda-compat folder or an old libcuda.so.1 in LD_LIBRARY_PATH; else restart the container or instance."
        ),
        confirms=("nvml-driver-library-mismatch", "cuda-compat-on-unsupported-gpu", "cuda-init-fails"),
    ),
    # Error 804: forward compatibility was attempted on non supported HW
    Pattern(
        id="cuda-804",
        regex=r"[Ee]rror 804|forward compatibility was attempted on non supported HW|CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE",
        meaning=t(
            "Error 804: a cuda-compat library was loaded in front of the driver, and this card does not support that (only data-centre cards do)."
        ),
        advice=t(
            "Take the compat folder out of LD_LIBRARY_PATH (`/usr/local/cuda/compat`), or use an image of the driver's CUDA."
        ),
        confirms=("cuda-compat-on-unsupported-gpu",),
    ),
    # RuntimeError: CUDA unknown error - this may be due to an incorrectly set up environment   |   RuntimeError: CUDA error: unknown error
    Pattern(
        id="cuda-unknown",
        regex=r"CUDA unknown error - this may be due to|CUDA error: unknown error|[Ee]rror 999\b",
        meaning=t(
            "CUDA could not start for a reason the driver does not name: often a device file that may not be opened, or CUDA_VISIBLE_DEVICES changed after start."
        ),
        advice=t("Restart the container or instance; set CUDA_VISIBLE_DEVICES before Python starts."),
        confirms=("nvml-lost-in-container", "gpu-device-permission", "cuda-init-fails", "gpu-hardware-fault"),
        hides=("cuda-error-late",),
    ),
    # Failed to initialize NVML: Driver/library version mismatch
    Pattern(
        id="nvml-mismatch",
        regex=r"Driver/library version mismatch",
        meaning=t("The driver's libraries were replaced while the old kernel module stayed loaded."),
        advice=t("Restart the container or reboot the machine; running jobs go on until then."),
        confirms=("nvml-driver-library-mismatch",),
    ),
    # Failed to initialize NVML: Unknown Error
    Pattern(
        id="nvml-unknown",
        regex=r"Failed to initialize NVML: Unknown Error",
        meaning=t(
            "The container lost its access to the GPU device files, typically after a reload of systemd on the host."
        ),
        advice=t("Save your work and restart the container; reinstalling torch changes nothing."),
        confirms=("nvml-lost-in-container",),
    ),
    # Failed to initialize NVML: Insufficient Permissions   |   pynvml.NVMLError_NoPermission: Insufficient Permissions
    Pattern(
        id="nvml-permission",
        regex=r"Failed to initialize NVML: Insufficient Permissions|NVMLError_NoPermission|^Insufficient Permissions$",
        meaning=t("This user may not open the GPU's device files, so the driver answers nothing."),
        advice=t(
            "`ls -l /dev/nvidia*` shows who may; ask the machine's administrator for the group, or restart the container with the GPU."
        ),
        confirms=("gpu-device-permission", "nvml-lost-in-container"),
    ),
)
