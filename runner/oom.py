"""Out of memory: told from other errors by any text it comes with, and the next smaller way to do the same.
Pure."""

from __future__ import annotations

_TEXTS = (
    "out of memory",  # CUDA out of memory. Tried to allocate ... / CUDA error: out of memory / NCCL, Triton
    "cublas_status_alloc_failed",
    "cudnn_status_not_supported",
    "cudnn_status_alloc_failed",
    "defaultcpuallocator: can't allocate memory",
    "defaultcpuallocator: not enough memory",
    "could not create a primitive\n",  # oneDNN; with "descriptor" behind it the operation is not supported
    "unable to find an engine to execute this computation",
)


def is_out_of_memory(error: BaseException) -> bool:
    """Does ``error`` say that memory was short, whoever says it?"""
    return isinstance(error, MemoryError) or any(text in f"{error}\n".lower() for text in _TEXTS)


def next_smaller(micro_batch_size: int, batch_size: int) -> int | None:
    """Return the largest divisor of ``batch_size`` below ``micro_batch_size``; None below 1.

    A divisor, so that every micro-batch but those of an epoch's last window has the same size.
    """
    for size in range(min(micro_batch_size, batch_size + 1) - 1, 0, -1):
        if batch_size % size == 0:
            return size
    return None
