"""The trainer asks the kernel to admit a profiler, whatever the kernel makes of it."""

from __future__ import annotations

from pathlib import Path

from runner.attach import allow_attach


def test_the_kernel_grants_it_exactly_where_it_has_yama() -> None:
    has_yama = Path("/proc/sys/kernel/yama/ptrace_scope").exists()
    assert allow_attach() is has_yama
