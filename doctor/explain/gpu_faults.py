"""Patterns of cards that fail: lost, with errors of the driver or the memory, or a kernel that died on them."""

from __future__ import annotations

from doctor.explain.match import Pattern
from doctor.model import t

PATTERNS: tuple[Pattern, ...] = (
    # NVRM: The NVIDIA GPU 0000:01:00.0 (PCI ID: 10de:2b85) installed in this system requires use of the NVIDIA open kernel modules.
    Pattern(
        id="open-kernel-module",
        regex=r"requires use of the NVIDIA open kernel modules",
        meaning=t(
            "The card is driven by NVIDIA's open kernel module only, and the closed one was loaded: the driver leaves the card alone."
        ),
        advice=t(
            "Install the same driver with its open module and reboot; on a rented machine the host must do it: take another one."
        ),
        confirms=("gpu-needs-open-kernel-module", "no-gpu-visible"),
    ),
    # nvidia-smi: Unable to determine the device handle for GPU 0000:03:00.0: Unknown Error   |  GPU is lost
    Pattern(
        id="gpu-lost",
        regex=r"Unable to determine the device handle for GPU|GPU is lost|has fallen off the bus|GPU has fallen off the bus",
        meaning=t("A card no longer answers: it fell off the bus."),
        advice=t("Rent another machine, and send the provider the card's address and the kernel log lines."),
        confirms=("gpu-hardware-fault", "fewer-gpus-than-rented"),
    ),
    # NVRM: Xid (PCI:0000:01:00): 79, GPU has fallen off the bus.
    Pattern(
        id="xid",
        regex=r"NVRM: Xid \((?P<address>[^)]*)\): (?P<code>\d+)",
        meaning=t("The driver logged Xid {code} for {address}.", code="?", address="?"),
        advice=t(
            "Some Xids are the program's own (13, 31, 43, 45), others the card's (48, 63, 64, 74, 79, 92, 94, 95): `doctor check` tells which."
        ),
        confirms=("gpu-hardware-fault", "gpu-application-error"),
    ),
    # RuntimeError: CUDA error: uncorrectable ECC error encountered
    Pattern(
        id="ecc-error",
        regex=r"uncorrectable ECC error",
        meaning=t(
            "The card's memory gave an error that it could not correct; results since then cannot be trusted."
        ),
        advice=t("Stop the run, resume from the last checkpoint on another card, and tell the provider."),
        confirms=("gpu-hardware-fault",),
        hides=("cuda-error-late",),
    ),
    # RuntimeError: CUDA error: an illegal memory access was encountered
    Pattern(
        id="illegal-memory-access",
        regex=r"an illegal memory access was encountered|cudaErrorIllegalAddress|CUDA error: misaligned address|cudaErrorMisalignedAddress",
        meaning=t(
            "A kernel read or wrote memory it does not own: a bug in a kernel, an index out of range, or two libraries that do not fit each other. The Python line shown may be late."
        ),
        advice=t(
            "Run once with CUDA_LAUNCH_BLOCKING=1 to see the true line; check indices and the versions of compiled extensions."
        ),
        confirms=(
            "flash-attn-torch-abi-mismatch",
            "token-id-out-of-vocab",
            "gpu-application-error",
            "gpu-hardware-fault",
        ),
        hides=("cuda-error-late",),
    ),
    # RuntimeError: CUDA error: unspecified launch failure
    Pattern(
        id="launch-failure",
        regex=r"unspecified launch failure|cudaErrorLaunchFailure",
        meaning=t(
            "A kernel died on the card; later CUDA calls of this process all fail. The Python line shown may be late."
        ),
        advice=t("Run once with CUDA_LAUNCH_BLOCKING=1; look for an Xid in the kernel log."),
        confirms=("gpu-application-error", "gpu-hardware-fault"),
        hides=("cuda-error-late",),
    ),
    # CUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be incorrect.
    Pattern(
        id="cuda-error-late",
        regex=r"CUDA kernel errors might be asynchronously reported",
        meaning=t(
            "CUDA reports errors late: the Python line in this traceback may not be the one that failed."
        ),
        advice=t("Run once with CUDA_LAUNCH_BLOCKING=1 (slow) to see the true line, then unset it."),
        general=True,
    ),
)
