"""The installers' commands for a restore, what of this session's variables they see, and how they are run and heard."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from doctor.redact_secrets import without_secrets
from doctor.snapshots.restore_plan import Phase
from runner.strings import printable

Tell = Callable[[str], None]
NOTES = ".doctor-restore"
_DROPPED = (
    "PYTHONPATH", "PYTHONHOME", "PIP_USER", "PIP_TARGET", "PIP_PREFIX", "PIP_CONSTRAINT", "PIP_REQUIRE_VIRTUALENV", "PIP_REQUIRE_HASHES",
    "UV_CONSTRAINT", "UV_PROJECT_ENVIRONMENT", "__PYVENV_LAUNCHER__", "VIRTUAL_ENV", "CONDA_PREFIX",
)  # fmt: skip


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """What the person, not the snapshot, says about how to install."""

    consents: tuple[str, ...] = ()
    find_links: tuple[str, ...] = ()
    no_index: bool = False
    uv: str | None = None
    """Path of uv where it is to install the wheels; None: pip of the new environment."""
    untested: bool = False
    """Whether a shipped environment that nobody has restored yet may be."""


def interpreter(folder: Path) -> Path:
    return folder / "bin" / "python"


def venv_argv(python: Path, folder: Path, uv: str | None) -> list[str]:
    if uv:
        return [uv, "venv", "--seed", "--allow-existing", "--no-config", "--python", str(python), str(folder)]
    return [str(python), "-m", "venv", str(folder)]


def install_argv(phase: Phase, folder: Path, options: Options) -> list[str]:
    """Return the command of a phase. pip does what builds or clones: uv knows no ``-e git+``."""
    file = str(folder / NOTES / f"{phase.name}.txt")
    if options.uv and not phase.builds and phase.name != "build-tools":
        words = [options.uv, "pip", "install", "--python", str(interpreter(folder)), "--index-strategy", "unsafe-best-match"]  # fmt: skip
    else:
        words = [
            str(interpreter(folder)),
            "-m",
            "pip",
            "install",
            "--no-input",
            "--disable-pip-version-check",
        ]
    words += ["--no-deps"]
    words += ["--only-binary", ":all:"] if "sdists" not in options.consents and not phase.builds else []
    words += ["--no-build-isolation"] if phase.builds else []
    words += ["--require-hashes"] if phase.hashed else []
    words += ["--src", str(folder / "src")] if phase.name == "source-folders" else []
    for links in options.find_links:
        words += ["--find-links", links]
    if options.no_index:
        words += ["--no-index"]
    else:
        words += [word for index in phase.indexes for word in ("--extra-index-url", index)]
    return [*words, "-r", file]


def run_told(
    argv: Sequence[str], folder: Path, tell: Tell, limit_s: float | None = None, keeps_open: int | None = None
) -> tuple[int, list[str]]:
    """Run a command, pass on what it says line by line, and return its status and its last lines.

    It has a process group of its own, so that whatever it started ends with it. ``keeps_open``: a file descriptor that
    it holds as long as it lives (a lock).
    """
    said: list[str] = []
    try:
        process = subprocess.Popen(
            list(argv), cwd=folder, env=installer_environ(os.environ), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, encoding="utf-8", errors="replace", start_new_session=True,
            pass_fds=() if keeps_open is None else (keeps_open,),
        )  # fmt: skip
    except OSError as error:
        return 127, [f"{argv[0]}: {error.strerror}"]
    timer = threading.Timer(limit_s or 0, _end, (process,))
    if limit_s:
        timer.start()
    try:
        assert process.stdout is not None
        for line in process.stdout:
            clean = printable(without_secrets(line.rstrip()))
            said = [*said[-40:], clean]
            tell(f"  {clean}")
        return process.wait(), said
    finally:
        timer.cancel()
        if process.poll() is None:
            _end(process)
            process.wait()


def _end(process: subprocess.Popen[str]) -> None:
    """End a command and everything it started."""
    with contextlib.suppress(ProcessLookupError):  # it ended by itself meanwhile
        os.killpg(process.pid, signal.SIGKILL)


def installer_environ(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables for the installer: indexes and proxies stay, what would install elsewhere goes."""
    kept = {name: value for name, value in environ.items() if name not in _DROPPED}
    return {**kept, "PYTHONNOUSERSITE": "1", "PIP_NO_INPUT": "1", "GIT_TERMINAL_PROMPT": "0"}


def reason_of(said: Sequence[str]) -> str:
    """Return the line that says why a command failed: of uv's causes, the first and the deepest."""
    lines = [line.strip() for line in said if line.strip()]
    errors = [line for line in lines if "ERROR" in line or "error:" in line.lower()]
    causes = [line.removeprefix("cause: ") for line in lines if line.startswith("cause: ")]
    full = [line for line in lines if "No space left on device" in line]
    told = [": ".join(dict.fromkeys((causes[0], causes[-1])))] if causes else []
    return (full or told or errors or lines or ["?"])[-1]


def our_uv() -> str | None:
    """Return uv, where there is one."""
    return shutil.which("uv") or shutil.which("uv", path=str(Path(sys.executable).parent))
