"""What a process holds beside its tensors: context and allocator on a GPU, the interpreter and the C library on a CPU.

None of it can be counted from a configuration. Each is a named constant with its range and where it comes from.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from runner.text import Text, t

if TYPE_CHECKING:
    from runner.estimate import MemoryRequest

MIB = 1 << 20

CUDA_CONTEXT_BYTES = 500 * MIB
"""Context and loaded kernels of one process: 300 to 700 MiB by card and CUDA release, in nvidia-smi but not in torch."""
CUDA_CONTEXT_RANGE = (300 * MIB, 700 * MIB)
BLAS_WORKSPACE_BYTES = 40 * MIB
"""cuBLAS and cuBLASLt workspaces: 8 MiB by default, 32 MiB more on Hopper (torch.cuda docs, CUBLAS_WORKSPACE_CONFIG)."""
NCCL_BYTES = 300 * MIB
"""NCCL's buffers on each card once two or more talk: some hundred MiB, by channels and links. An assumption."""
RESERVED_SHARE = 0.04
"""What the caching allocator holds over what tensors ask for: 2 MiB blocks, holes. More where lengths vary."""
RESERVED_SHARE_HIGH = 0.12
CPU_PROCESS_BYTES = 500 * MIB
"""A CPU's process before there is a model: python, torch 2.13 and transformers 5.24 held 360 MiB here, with datasets more."""
CPU_PROCESS_RANGE = (300 * MIB, 800 * MIB)
CPU_HELD_SHARE = 0.3
"""What the C library keeps of freed blocks, of the tensors: 7 to 44 % measured here with glibc's malloc as it is, fp32 and bf16
(benchmarks/memory.py, which has it give everything back at once, shows the tensors alone)."""
CPU_HELD_SHARE_HIGH = 0.6


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """One piece of the peak."""

    name: str
    """weights, gradients, optimizer, activations, logits, workspace, context, rounding; on a CPU process and held."""
    size_bytes: int
    why: Text


def outside_parts(request: MemoryRequest, tensor_bytes: int) -> tuple[Part, ...]:
    """Return what comes on top of ``tensor_bytes`` on the device."""
    if request.device == "cpu":
        return (
            Part(name="process", size_bytes=CPU_PROCESS_BYTES,
                 why=t("Python, torch and transformers themselves (assumed: {low} to {high} MiB)",
                       low=CPU_PROCESS_RANGE[0] // MIB, high=CPU_PROCESS_RANGE[1] // MIB)),
            Part(name="held", size_bytes=int(tensor_bytes * CPU_HELD_SHARE),
                 why=t("kept by the C library of what was freed (assumed: {share} %)", share=round(CPU_HELD_SHARE * 100))),
        )  # fmt: skip
    nccl = NCCL_BYTES if request.cards > 1 else 0
    return (
        Part(name="context", size_bytes=CUDA_CONTEXT_BYTES + BLAS_WORKSPACE_BYTES + nccl,
             why=t("CUDA context, loaded kernels and library workspaces (assumed: {low} to {high} MiB)",
                   low=CUDA_CONTEXT_RANGE[0] // MIB, high=CUDA_CONTEXT_RANGE[1] // MIB)),
        Part(name="rounding", size_bytes=int(tensor_bytes * RESERVED_SHARE),
             why=t("held by the caching allocator beyond what tensors ask for (assumed: {share} %)",
                   share=round(RESERVED_SHARE * 100))),
    )  # fmt: skip


def with_outside(
    request: MemoryRequest, low_bytes: float, high_bytes: float, held: bool = True
) -> tuple[int, int]:
    """Return the range of the whole process from that of its tensors. ``held``: a CPU's allocator comes on top."""
    if request.device == "cpu":
        low, high = CPU_PROCESS_RANGE
        return int(low_bytes) + low, int(high_bytes * (1 + (CPU_HELD_SHARE_HIGH if held else 0))) + high
    nccl = NCCL_BYTES if request.cards > 1 else 0
    low, high = CUDA_CONTEXT_RANGE
    return int(low_bytes) + low, int(
        high_bytes * (1 + RESERVED_SHARE_HIGH)
    ) + high + BLAS_WORKSPACE_BYTES + nccl
