"""py-spy's failures told apart, so that each has its own words and its own way out. Pure: what it wrote in, a reason out."""

from __future__ import annotations

import re
from dataclasses import dataclass

from runner.strings import printable
from runner.text import Text, t


@dataclass(frozen=True)
class Trouble:
    """Why there are no stacks: ``kind`` for programs, ``why`` for people."""

    kind: str
    """GONE, NOT_PYTHON, NO_PERMISSION, PTRACE_BLOCKED, YAMA, UNSUPPORTED, MISSING, OTHER."""
    why: Text
    lasting: bool
    """Trying again every few seconds cannot help."""


def missing(install: str) -> Trouble:
    return Trouble(
        "MISSING", t("py-spy is not installed here; get it with: `{command}`", command=install), True
    )


def classify(stderr: str, yama_scope: int | None = None) -> Trouble:
    """Tell py-spy's failures apart by its ``Error:`` line and the causes under it.

    Args:
        stderr: what it wrote, with RUST_BACKTRACE unset.
        yama_scope: ``/proc/sys/kernel/yama/ptrace_scope``; None where the kernel has no Yama.
    """
    # Error: Failed to get process executable name. Check that the process is running.
    # Caused by:  0: Permission denied (os error 13)    <- the same headline stands over os error 2 (gone)
    denied = (
        "os error 13" in stderr
        or "Permission Denied" in stderr
        or "os error 1)" in stderr
        or "EPERM" in stderr
    )
    if denied and yama_scope in (1, 2, 3):
        return Trouble("YAMA", _yama(yama_scope), True)
    if "Failed to suspend process" in stderr or (
        "Failed to get stack traces" in stderr and "EPERM" in stderr
    ):
        return Trouble(
            "PTRACE_BLOCKED",
            t("something forbids tracing here (seccomp), or a debugger is already attached"),
            False,
        )
    if denied:
        return Trouble(
            "NO_PERMISSION",
            t("this user may not look into that process: run the doctor as the same user with the same "
              "capabilities (in a container, the platform would have to grant SYS_PTRACE)"),
            True,
        )  # fmt: skip
    if "os error 2)" in stderr or "os error 3)" in stderr or "No such process" in stderr:
        return Trouble("GONE", t("the process is gone"), True)
    if "Failed to find python version" in stderr:
        return Trouble(
            "NOT_PYTHON", t("the process is not Python (or its interpreter could not be recognised)"), True
        )
    if re.search(r"nsupported version|version of python|Python version", stderr):
        return Trouble(
            "UNSUPPORTED",
            t("this py-spy does not know that Python version: {error}", error=headline(stderr)),
            True,
        )
    return Trouble("OTHER", t("py-spy failed: {error}", error=headline(stderr) or "?"), False)


def _yama(scope: int) -> Text:
    if scope == 1:
        return t(
            "the kernel lets only a parent look into a process (kernel.yama.ptrace_scope is 1), "
            "and this one did not allow us"
        )
    return t("the kernel forbids looking into processes (kernel.yama.ptrace_scope is {scope})", scope=scope)


def headline(stderr: str) -> str:
    """Return py-spy's first ``Error:`` line, or its last line where there is none."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    errors = [line.removeprefix("Error:").strip() for line in lines if line.startswith(("Error:", "thread "))]
    return printable((errors or lines[-1:] or [""])[0])[:200]
