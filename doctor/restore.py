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
from doctor.restore_folder import State, locked, make_folder, open_state, write_state
from doctor.restore_project import apply_to
from doctor.snapshots.restore_plan import Phase, RestoreError, RestorePlan

GIT_LIMIT_S = 300.0


class Work(msgspec.Struct, frozen=True):
    """A folder that is being made, and how."""

    folder: Path
    state: State
    options: Options
    tell: Tell
    lock: int
    """Every command holds it too: an installer that outlives us keeps a second restore out."""

    def call(self, argv: Sequence[str], limit_s: float | None = None) -> tuple[int, list[str]]:
        return run_told(argv, self.folder, self.tell, limit_s, self.lock)

    def note(self, name: str) -> None:
        self.state.done.append(name)
        write_state(self.folder, self.state)


def restore(plan: RestorePlan, folder: Path, python: Path, options: Options, tell: Tell) -> Path:
    """Make the environment and return its interpreter.

    Raises:
        RestoreError: it is refused, or went wrong; the folder is gone again then.
        KeyboardInterrupt: stopped; the same command goes on.
    """
    may_restore(plan, options)
    make_folder(folder)
    with locked(folder) as lock:
        state = open_state(plan, folder)
        work = Work(folder=folder, state=state, options=options, tell=tell, lock=lock)
        try:
            _carry_out(plan, python, work)
        except RestoreError:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        state.complete = True
        write_state(folder, state)
    return interpreter(folder)


def may_restore(plan: RestorePlan, options: Options) -> None:
    """Raise RestoreError where the plan wants a yes that ``options`` does not have."""
    if waiting := plan.unconsented(options.consents):
        raise RestoreError(t("this snapshot wants more than wheels from your indexes; allow it with {flags}", flags=" ".join(f"--yes-to {one}" for one in waiting)))  # fmt: skip
    if plan.untested is not None and not options.untested:
        raise RestoreError(t("this environment is marked untested: --untested restores it all the same"))


def _carry_out(plan: RestorePlan, python: Path, work: Work) -> None:
    _make_venv(python, work)
    for phase in plan.phases:
        if phase.name not in work.state.done:
            _install(phase, work)
            work.note(phase.name)
    for name, state in plan.patches.items():
        if f"patch {name}" not in work.state.done:
            work.tell(f"patch: {name}")
            apply_to(work.folder / "src" / name, state)
            work.note(f"patch {name}")


# ---------------------------------------------------------------------------------------- the phases
def _make_venv(python: Path, work: Work) -> None:
    if "venv" in work.state.done:
        return
    folder, options = work.folder, work.options
    work.tell(f"venv {folder}")
    code, said = work.call(venv_argv(python, folder, options.uv))
    uv = shutil.which("uv")
    if code != 0 and not options.uv and uv:  # Debian's Python without python3-venv
        code, said = work.call(venv_argv(python, folder, uv))
    if code != 0:
        raise RestoreError(t("no environment could be made with {python}: {error}", python=str(python), error=reason_of(said)))  # fmt: skip
    work.note("venv")


def _install(phase: Phase, work: Work) -> None:
    folder, options = work.folder, work.options
    work.tell(f"{phase.name}: {len(phase.lines)}")
    if phase.needs == "vcs":
        for url in sorted({address_of(line) for line in phase.lines}):
            _ask_server(url, work)
    _write_lines(phase, folder)
    code, said = work.call(install_argv(phase, folder, options))
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


def _write_lines(phase: Phase, folder: Path) -> None:
    try:
        (folder / NOTES / f"{phase.name}.txt").write_text("\n".join(phase.lines) + "\n", "utf-8")
    except OSError as error:
        raise RestoreError(
            t("cannot write {folder}: {error}", folder=str(folder), error=error.strerror or "")
        ) from None


def address_of(line: str) -> str:
    """``lib @ git+https://h/r.git@COMMIT#subdirectory=x`` -> ``https://h/r.git``."""
    return line.partition("git+")[2].partition("#")[0].rpartition("@")[0]


def _ask_server(url: str, work: Work) -> None:
    """Raise RestoreError unless a git server answers there.

    Plain files behind a web server are refused: pip clones partially, and where such a place lacks the commit, git
    fetches what is missing by starting itself over and over, without end. A shallow fetch is what it cannot do.
    """
    with tempfile.TemporaryDirectory() as bare:
        code, said = work.call(["git", "init", "-q", "--bare", bare])
        if code == 0:
            code, said = work.call(
                ["git", "-C", bare, "fetch", "-q", "--depth", "1", url, "HEAD"], GIT_LIMIT_S
            )
    folder = work.folder
    if code != 0:
        raise RestoreError(t("{url} does not answer as a git server, and {folder} was removed again: {error}", url=url, folder=str(folder), error=reason_of(said)))  # fmt: skip


def _wants_source(said: Sequence[str], options: Options) -> bool:
    text = "\n".join(said)
    return "sdists" not in options.consents and (
        "No matching distribution" in text or "no usable wheels" in text
    )
