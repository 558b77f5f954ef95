"""From a finding and the facts to the steps that mend it. Pure. One subject a file, one function a kind of cure.

Which findings have one is :data:`FIXABLE`: asking that imports no fix. A function returns the ``Fix``, or the ``Text`` that
says why there is none on this machine.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable

from doctor.model import Finding, Fix, Snapshot, Text

FixFunction = Callable[[Finding, Snapshot], Fix | Text]

MODULES = ("variables", "caches", "torch_build", "packages", "leftovers", "processes", "data_files", "shared_memory", "guard")  # fmt: skip

FIXABLE = frozenset([
    # variables
    "allocator-fragmentation", "allocator-setting-without-effect", "cache-variable-not-read", "cpu-quota-below-host-count",
    "cublas-workspace-unset", "debug-variable-left-on", "hf-transfer-missing", "hub-endpoint-invalid", "hub-offline",
    "ld-library-path-shadows-bundled-cuda", "libstdcxx-too-old", "locale-default-encoding", "mirror-with-xet",
    "nccl-interface-missing", "platform-proxy-there", "proxy-catches-localhost", "pythonpath-with-other-packages",
    "seeds-incomplete", "thread-count-above-cpus", "tracker-variable-not-read", "transport-switched-off",
    "uid-without-passwd-entry", "user-site-shadows-env", "xet-cache-on-small-disk",
    # caches and disks
    "disk-nearly-full", "hf-cache-on-small-disk", "inode-exhausted", "quota-exceeded-on-target",
    # the torch build
    "driver-too-old-for-torch-cuda", "gpu-arch-not-in-torch-build", "torch-cpu-only-build", "torch-install-broken", "torch-rocm-build",
    # packages
    "accelerate-transformers-mismatch", "datasets-refuses-loading-scripts", "declared-requirement-not-met",
    "dependent-library-too-old", "distribution-files-missing", "leftover-nvidia-wheels", "mixed-cuda-wheel-majors",
    "needed-package-missing", "numpy2-torch-abi", "nvidia-wheel-version-drift", "onnxruntime-cpu-shadows-gpu",
    "onnxruntime-cuda-major-mismatch", "peft-accelerate-mismatch", "peft-transformers-mismatch", "torchvision-torch-mismatch",
    "transformers-requirement-out-of-range", "transformers-torch-too-old", "xformers-torch-mismatch",
    "duplicate-distribution-metadata", "leftover-of-an-install", "requirements-would-replace-torch",
    # the rest
    "orphan-process-holds-vram", "vram-held-by-process", "file-encoding-not-utf8", "utf8-bom", "shm-too-small",
])  # fmt: skip
"""Ids of the findings that ``doctor fix`` can mend, where the machine lets it."""

_FIXES: dict[str, FixFunction] = {}


def has_fix(finding_id: str) -> bool:
    """Return whether there is a cure for this kind of finding. Imports none of them."""
    return finding_id in FIXABLE


_NEEDS_A_COMMAND = (
    "torch-cpu-only-build", "torch-rocm-build", "gpu-arch-not-in-torch-build", "driver-too-old-for-torch-cuda",
)  # fmt: skip
_NEEDS_A_NAME = ("declared-requirement-not-met", "needed-package-missing")
"""Not where many are summed up: which of them to install is the person's choice."""
_OWN_PROCESSES = ("vram-held-by-process", "orphan-process-holds-vram")


def may_fix(finding: Finding) -> bool:
    """Return whether it is worth a word that `doctor fix` exists for this finding. Imports no cure.

    Not for a torch or a package that nobody can name, nor for another user's process: those cures could only explain themselves.
    """
    if finding.id in _NEEDS_A_COMMAND:
        return bool(finding.advice and finding.advice.params.get("command"))
    if finding.id in _NEEDS_A_NAME:
        return bool(finding.advice and {"wanted", "name"} & finding.advice.params.keys())
    if finding.id in _OWN_PROCESSES and not finding.fix:
        return False
    return has_fix(finding.id)


def fix(*ids: str) -> Callable[[FixFunction], FixFunction]:
    """Register the cure of findings with ``ids``.

    Raises:
        ValueError: one is not in :data:`FIXABLE`, or has a cure already.
    """

    def register(function: FixFunction) -> FixFunction:
        for finding_id in ids:
            if finding_id not in FIXABLE or finding_id in _FIXES:
                raise ValueError(f"{finding_id} is not in FIXABLE, or is mended by two functions")
            _FIXES[finding_id] = function
        return function

    return register


def all_fixes() -> dict[str, FixFunction]:
    """Import every module and return id -> function."""
    for module in MODULES:
        importlib.import_module(f"doctor.fixes.{module}")
    return dict(_FIXES)


def fix_for(finding: Finding, snapshot: Snapshot) -> Fix | Text:
    """Return the cure of ``finding`` on this machine, or why there is none."""
    function = all_fixes().get(finding.id)
    if function is None:
        from doctor.fixes.no_fix import why_no_fix

        return why_no_fix(finding, snapshot)
    return function(finding, snapshot)
