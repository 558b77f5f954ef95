"""Makes an environment of a restore plan: a fresh venv, phase by phase, in a folder that was not there before.

The folder says from its first moment whose it is (``.doctor-restore/state.json``): an interrupted restore goes on where
it stopped, a failed one is removed, and a folder that is not ours is never touched. Nothing goes through a shell.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from doctor.model import t
from doctor.redact_secrets import without_secrets
from doctor.snapshots.restore_plan import Phase, RestoreError, RestorePlan
from doctor.state_dir import write_whole
from runner.strings import printable

Tell = Callable[[str], None]
NOTES = ".doctor-restore"
GIT_LIMIT_S = 300.0
_DROPPED = (
    "PYTHONPATH", "PYTHONHOME", "PIP_USER", "PIP_TARGET", "PIP_PREFIX", "PIP_CONSTRAINT", "PIP_REQUIRE_VIRTUALENV", "PIP_REQUIRE_HASHES",
    "UV_CONSTRAINT", "UV_PROJECT_ENVIRONMENT", "__PYVENV_LAUNCHER__", "VIRTUAL_ENV", "CONDA_PREFIX",
)  # fmt: skip


class State(msgspec.Struct):
    """What of a plan is done."""

    digest: str
    python: str
    done: list[str] = []
    complete: bool = False


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """What the person, not the snapshot, says about how to install."""

    consents: tuple[str, ...] = ()
    find_links: tuple[str, ...] = ()
    no_index: bool = False
    uv: str | None = None
    """Path of uv where it is to install the wheels; None: pip of the new environment."""


def restore(plan: RestorePlan, folder: Path, python: Path, options: Options, tell: Tell) -> Path:
    """Make the environment and return its interpreter.

    Raises:
        RestoreError: it is refused, or went wrong; the folder is gone again then.
        KeyboardInterrupt: stopped; the same command goes on.
    """
    if waiting := plan.unconsented(options.consents):
        raise RestoreError(t("this snapshot wants more than wheels from your indexes; allow it with {flags}", flags=" ".join(f"--yes-to {one}" for one in waiting)))  # fmt: skip
    state = _open(plan, folder)
    try:
        _make_venv(folder, python, state, options, tell)
        for phase in plan.phases:
            if phase.name not in state.done:
                _install(phase, folder, options, tell)
                _done(folder, state, phase.name)
    except RestoreError:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    state.complete = True
    _write(folder, state)
    return interpreter(folder)


def interpreter(folder: Path) -> Path:
    return folder / "bin" / "python"


# ---------------------------------------------------------------------------------------- the folder
def _open(plan: RestorePlan, folder: Path) -> State:
    """Make the folder ours, or go on with what is ours and of the same plan. Raises RestoreError."""
    try:
        (folder / NOTES).mkdir(parents=True, exist_ok=False) if not folder.exists() else None
    except OSError as error:
        raise RestoreError(
            t("cannot make {folder}: {error}", folder=str(folder), error=error.strerror or "")
        ) from None
    if not (folder / NOTES).is_dir():
        raise RestoreError(t("{folder} is there already and is not a restore of ours: name another folder", folder=str(folder)))  # fmt: skip
    state = read_state(folder)
    if state is None:
        state = State(digest=plan.digest, python=plan.python)
        _write(folder, state)
    if state.digest != plan.digest:
        raise RestoreError(t("{folder} holds a restore of another snapshot: name another folder, or remove it", folder=str(folder)))  # fmt: skip
    if state.complete:
        raise RestoreError(t("{folder} was restored from this snapshot already: `doctor snapshot verify FILE --python {folder}`", folder=str(folder)))  # fmt: skip
    return state


def read_state(folder: Path) -> State | None:
    """Return what an earlier restore noted; None: nothing, or not readable."""
    try:
        return msgspec.json.decode((folder / NOTES / "state.json").read_bytes(), type=State)
    except (OSError, msgspec.MsgspecError):
        return None


def _write(folder: Path, state: State) -> None:
    try:
        write_whole(folder / NOTES / "state.json", msgspec.json.encode(state), 0o600)
    except OSError as error:
        raise RestoreError(
            t("cannot write {folder}: {error}", folder=str(folder), error=error.strerror or "")
        ) from None


def _done(folder: Path, state: State, name: str) -> None:
    state.done.append(name)
    _write(folder, state)


# ---------------------------------------------------------------------------------------- the commands
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


def _make_venv(folder: Path, python: Path, state: State, options: Options, tell: Tell) -> None:
    if "venv" in state.done:
        return
    tell(f"venv {folder}")
    code, said = _run(venv_argv(python, folder, options.uv), folder, tell)
    uv = shutil.which("uv")
    if code != 0 and not options.uv and uv:  # Debian's Python without python3-venv
        code, said = _run(venv_argv(python, folder, uv), folder, tell)
    if code != 0:
        raise RestoreError(t("no environment could be made with {python}: {error}", python=str(python), error=_reason(said)))  # fmt: skip
    _done(folder, state, "venv")


def _install(phase: Phase, folder: Path, options: Options, tell: Tell) -> None:
    file = folder / NOTES / f"{phase.name}.txt"
    tell(f"{phase.name}: {len(phase.lines)}")
    if phase.needs == "vcs":
        for url in sorted({address_of(line) for line in phase.lines}):
            _ask_server(url, folder, tell)
    file.write_text("\n".join(phase.lines) + "\n", "utf-8")
    code, said = _run(install_argv(phase, folder, options), folder, tell)
    if code == 0:
        return
    if _wants_source(said, options):
        raise RestoreError(
            t(
                "the phase {phase} failed, and {folder} was removed again: {error}. If no wheel of it can be had, `--yes-to sdists` lets it be built from source.",
                phase=phase.name, folder=str(folder), error=_reason(said),
            )
        )  # fmt: skip
    raise RestoreError(t("the phase {phase} failed, and {folder} was removed again: {error}", phase=phase.name, folder=str(folder), error=_reason(said)))  # fmt: skip


def address_of(line: str) -> str:
    """``lib @ git+https://h/r.git@COMMIT#subdirectory=x`` -> ``https://h/r.git``."""
    return line.partition("git+")[2].partition("#")[0].rpartition("@")[0]


def _ask_server(url: str, folder: Path, tell: Tell) -> None:
    """Raise RestoreError unless a git server answers there.

    Plain files behind a web server are refused: pip clones partially, and where such a place lacks the commit, git
    fetches what is missing by starting itself over and over, without end. A shallow fetch is what it cannot do.
    """
    with tempfile.TemporaryDirectory() as bare:
        code, said = _run(["git", "init", "-q", "--bare", bare], folder, tell)
        if code == 0:
            code, said = _run(
                ["git", "-C", bare, "fetch", "-q", "--depth", "1", url, "HEAD"], folder, tell, GIT_LIMIT_S
            )
    if code != 0:
        raise RestoreError(t("{url} does not answer as a git server, and {folder} was removed again: {error}", url=url, folder=str(folder), error=_reason(said)))  # fmt: skip


def _wants_source(said: Sequence[str], options: Options) -> bool:
    text = "\n".join(said)
    return "sdists" not in options.consents and (
        "No matching distribution" in text or "no usable wheels" in text
    )


def _run(
    argv: Sequence[str], folder: Path, tell: Tell, limit_s: float | None = None
) -> tuple[int, list[str]]:
    """Run a command, pass on what it says line by line, and return its status and its last lines.

    It has a process group of its own, so that whatever it started ends with it.
    """
    said: list[str] = []
    try:
        process = subprocess.Popen(
            list(argv), cwd=folder, env=installer_environ(os.environ), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, encoding="utf-8", errors="replace", start_new_session=True,
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


def _reason(said: Sequence[str]) -> str:
    errors = [line for line in said if "ERROR" in line or "error:" in line.lower()]
    return (errors or [line for line in said if line.strip()] or ["?"])[-1].strip()


def our_uv() -> str | None:
    """Return uv, where there is one."""
    return shutil.which("uv") or shutil.which("uv", path=str(Path(sys.executable).parent))
