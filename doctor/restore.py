"""Makes an environment of a restore plan: a fresh venv, phase by phase, in a folder that was not there before.

The folder says from its first moment whose it is (``.doctor-restore/state.json``): an interrupted restore goes on where
it stopped, a failed one is removed, and a folder that is not ours is never touched. Nothing goes through a shell.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

import msgspec

from doctor.model import t
from doctor.restore_commands import (
    NOTES,
    Options,
    Tell,
    install_argv,
    interpreter,
    reason_of,
    run_told,
    venv_argv,
)
from doctor.snapshots.restore_plan import Phase, RestoreError, RestorePlan
from doctor.state_dir import write_whole

GIT_LIMIT_S = 300.0


class State(msgspec.Struct):
    """What of a plan is done."""

    digest: str
    python: str
    done: list[str] = []
    complete: bool = False


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


# ---------------------------------------------------------------------------------------- the phases
def _make_venv(folder: Path, python: Path, state: State, options: Options, tell: Tell) -> None:
    if "venv" in state.done:
        return
    tell(f"venv {folder}")
    code, said = run_told(venv_argv(python, folder, options.uv), folder, tell)
    uv = shutil.which("uv")
    if code != 0 and not options.uv and uv:  # Debian's Python without python3-venv
        code, said = run_told(venv_argv(python, folder, uv), folder, tell)
    if code != 0:
        raise RestoreError(t("no environment could be made with {python}: {error}", python=str(python), error=reason_of(said)))  # fmt: skip
    _done(folder, state, "venv")


def _install(phase: Phase, folder: Path, options: Options, tell: Tell) -> None:
    file = folder / NOTES / f"{phase.name}.txt"
    tell(f"{phase.name}: {len(phase.lines)}")
    if phase.needs == "vcs":
        for url in sorted({address_of(line) for line in phase.lines}):
            _ask_server(url, folder, tell)
    file.write_text("\n".join(phase.lines) + "\n", "utf-8")
    code, said = run_told(install_argv(phase, folder, options), folder, tell)
    if code == 0:
        return
    if _wants_source(said, options):
        raise RestoreError(
            t(
                "the phase {phase} failed, and {folder} was removed again: {error}. If no wheel of it can be had, `--yes-to sdists` lets it be built from source.",
                phase=phase.name, folder=str(folder), error=reason_of(said),
            )
        )  # fmt: skip
    raise RestoreError(t("the phase {phase} failed, and {folder} was removed again: {error}", phase=phase.name, folder=str(folder), error=reason_of(said)))  # fmt: skip


def address_of(line: str) -> str:
    """``lib @ git+https://h/r.git@COMMIT#subdirectory=x`` -> ``https://h/r.git``."""
    return line.partition("git+")[2].partition("#")[0].rpartition("@")[0]


def _ask_server(url: str, folder: Path, tell: Tell) -> None:
    """Raise RestoreError unless a git server answers there.

    Plain files behind a web server are refused: pip clones partially, and where such a place lacks the commit, git
    fetches what is missing by starting itself over and over, without end. A shallow fetch is what it cannot do.
    """
    with tempfile.TemporaryDirectory() as bare:
        code, said = run_told(["git", "init", "-q", "--bare", bare], folder, tell)
        if code == 0:
            code, said = run_told(
                ["git", "-C", bare, "fetch", "-q", "--depth", "1", url, "HEAD"], folder, tell, GIT_LIMIT_S
            )
    if code != 0:
        raise RestoreError(t("{url} does not answer as a git server, and {folder} was removed again: {error}", url=url, folder=str(folder), error=reason_of(said)))  # fmt: skip


def _wants_source(said: Sequence[str], options: Options) -> bool:
    text = "\n".join(said)
    return "sdists" not in options.consents and (
        "No matching distribution" in text or "no usable wheels" in text
    )
