"""The ranked list of what renters meet (rank -> the findings that answer it): none of it may get lost."""

from __future__ import annotations

import pytest

from doctor.pages import all_pages
from tests.pages import all_ids

RANKS = {
    "1 no usable GPU, or fewer than rented": ("no-gpu-visible", "fewer-gpus-than-rented", "cuda-visible-devices-invalid"),
    "2 CPU-only torch on a GPU box": ("torch-cpu-only-build", "torch-rocm-build"),
    "3 driver too old for torch's CUDA": ("driver-too-old-for-torch-cuda",),
    "4 architecture not in the build": ("gpu-arch-not-in-torch-build", "gpu-runs-by-ptx-jit", "ptx-jit-newer-than-driver"),
    "5 caches on the small disk": ("hf-cache-on-small-disk", "xet-cache-on-small-disk", "cache-variable-not-read"),
    "6 output that will not survive": ("output-on-ephemeral-disk", "work-on-ephemeral-disk"),
    "7 VRAM already in use": ("vram-held-by-process", "orphan-process-holds-vram", "vram-mostly-used", "gpu-processes-hidden-by-pid-namespace"),
    "8 NVML and driver faults": ("nvml-driver-library-mismatch", "nvml-lost-in-container", "gpus-not-readable", "gpu-device-permission"),
    "9 /dev/shm too small": ("shm-too-small",),
    "10 CPU quota below visible cores": ("cpu-quota-below-host-count", "thread-count-above-cpus"),
    "11 memory limit, past kills": ("cgroup-memory-below-host", "process-killed-for-memory"),
    "12 disk or inodes nearly full": ("disk-nearly-full", "inode-exhausted", "quota-exceeded-on-target", "checkpoint-budget-exceeds-disk", "target-not-writable"),
    "13 torch broken, shadowed, doubled": ("torch-install-broken", "user-site-shadows-env", "duplicate-distribution-metadata", "leftover-of-an-install", "local-file-hides-module"),
    "14 torch's mates": ("torchvision-torch-mismatch",),
    "15 transformers' version rules": ("transformers-torch-too-old", "transformers-requirement-out-of-range", "accelerate-transformers-mismatch", "torch-load-blocked-by-transformers"),
    "16 requirements that replace torch": ("requirements-would-replace-torch",),
    "17 compiled extensions": ("flash-attn-torch-abi-mismatch", "xformers-torch-mismatch", "bitsandbytes-missing-cuda-binary", "extension-torch-abi-mismatch", "dependent-library-too-old", "numpy2-torch-abi"),
    "18 libraries in front of torch's": ("ld-library-path-shadows-bundled-cuda", "system-cudnn-in-bundled-gap", "libstdcxx-too-old"),
    "19 sick hardware": ("gpu-hardware-fault", "gpu-xid-unknown", "gpu-application-error", "pcie-link-errors"),
    "20 throttled, capped, narrow": ("gpu-throttled", "gpu-power-capped", "gpu-pcie-narrow"),
    "21 pod variables missing over SSH": ("pod-variables-missing-over-ssh",),
    "22 mirror and proxy": ("mirror-with-xet", "platform-proxy-on", "platform-proxy-there", "hub-endpoint-invalid", "proxy-catches-localhost"),
    "23 several cards": ("nccl-p2p-hang-risk", "nccl-interface-missing", "memlock-too-small", "fabric-manager-not-running", "rendezvous-variables-left-over"),
    "24 seeds and determinism": ("seeds-incomplete", "seeds-missing", "cublas-workspace-unset", "numpy-worker-seed"),
    "25 harmful or stale variables": ("allocator-setting-without-effect", "debug-variable-left-on", "cuda-compat-on-unsupported-gpu", "pythonpath-with-other-packages", "nvcc-torch-cuda-mismatch"),
    "next: tmux": ("session-ends-with-ssh",),
    "next: ulimit -n": ("open-files-limit-low",),
    "next: clock": ("clock-wrong",),
    "next: glibc": ("glibc-too-old-for-wheel",),
    "next: MIG": ("mig-multiple-instances-unsupported", "nvml-field-not-supported"),
    "next: a stopped machine is released": ("output-on-ephemeral-disk",),
    "next: TensorBoard's folder": ("tensorboard-folder-elsewhere",),
}  # fmt: skip
"""The last of the list, a card that idles while it is paid for, is the watch's matter: a check finds it idle by nature."""


@pytest.mark.parametrize("rank", RANKS)
def test_a_rank_has_findings_that_are_given_and_explained(rank: str) -> None:
    given, pages = set(all_ids()), all_pages()
    assert set(RANKS[rank]) <= given
    assert set(RANKS[rank]) <= set(pages)


def test_all_twenty_five_are_here() -> None:
    numbers = {int(rank.split()[0]) for rank in RANKS if rank[0].isdigit()}
    assert numbers == set(range(1, 26))
