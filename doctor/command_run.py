"""A command of the user's own as a run: which Python it trains with, its plan, its directory, its supervisor started."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

import msgspec

from doctor.command_environment import is_python, settle_environment
from doctor.detached import start_detached
from doctor.launch import LaunchError, StartedRun, new_run_dir, prepare_directory, start_telling, take_lock
from doctor.machine import with_facts
from doctor.model import Snapshot
from doctor.own_code import own_argv
from doctor.own_script import keep_script
from doctor.stopping import HELD_SIGNALS
from runner.alert_settings import AlertsSection
from runner.command_plan import CommandPlan, encode_command, sealed
from runner.rundir import RunDir
from runner.strings import printable
from runner.text import t

# #!/root/venv/bin/python3.11
_SHEBANG = re.compile(rb"^#!\s*(\S*/python[\d.]*)\s*$", re.MULTILINE)
_LAUNCHERS = frozenset({"env", "nohup", "time", "nice", "numactl", "torchrun", "accelerate", "deepspeed", "bash", "sh", "uv", "run", "launch", "poetry", "conda"})  # fmt: skip


@dataclass(frozen=True)
class CommandOptions:
    """What ``doctor run`` may be told about a command."""

    retries: int = 0
    resume_with: str = ""
    checkpoints: str = ""
    on_finish: str = ""
    on_finish_always: bool = False
    countdown_s: float = 30.0


def find_program(argv: Sequence[str]) -> Path:
    """Return the file that the command's first word runs.

    Raises:
        LaunchError: there is none.
    """
    found = shutil.which(argv[0])
    if found is None:
        raise LaunchError(
            t(
                "there is no command {name}: neither a program on PATH nor an executable file",
                name=printable(argv[0]),
            )
        )
    return Path(found)


def refuse_unknown_finish(command: str) -> None:
    """Raises LaunchError: `--on-finish` names a program that is not here. Learned after the training, it costs money."""
    words = command.split()
    if not words or not re.fullmatch(r"[\w./+-]+", words[0]):
        return  # a shell's own syntax, which only a shell can judge
    known = subprocess.run(
        ["/bin/sh", "-c", 'command -v -- "$1"', "sh", words[0]], stdin=subprocess.DEVNULL, capture_output=True, check=False
    )  # fmt: skip
    if known.returncode:
        raise LaunchError(
            t(
                "--on-finish: there is no command {name} here: neither a program on PATH nor a word of the shell",
                name=printable(words[0]),
            )
        )


def python_of(argv: Sequence[str]) -> str | None:
    """Return the interpreter that a command trains with, where that shows: itself, or its first line's (torchrun).

    None: it does not show (a shell script); the session's own is examined then.
    """
    program = find_program(argv)
    if is_python(argv):
        return str(program)
    try:
        with open(program, "rb") as file:
            match = _SHEBANG.match(file.read(256))
    except OSError:
        return None
    python = os.fsdecode(match[1]) if match else None
    return python if python and os.access(python, os.X_OK) else None


def named_by_command(snapshot: Snapshot, argv: Sequence[str]) -> Snapshot:
    """Return ``snapshot`` with the word of the command that its interpreter was taken from, in place of ``--python``."""
    python = snapshot.facts.python.value
    if python is None or python.chosen_by != "--python":
        return snapshot
    chosen = msgspec.structs.replace(python, chosen_by=printable(os.path.basename(argv[0])))  # noqa: PTH119
    return with_facts(snapshot, python=msgspec.structs.replace(snapshot.facts.python, value=chosen))


def run_name_of(argv: Sequence[str]) -> str:
    """Return what a run directory's name begins with: the script's name, else the program's."""
    # torchrun --nproc_per_node 2 train.py --lr 1e-4 -> train
    scripts = [word for word in argv if re.search(r"\.(?:py|sh|bash|ipynb)$", word)]
    words = [word for word in argv if not word.startswith("-") and os.path.basename(word) not in _LAUNCHERS]  # noqa: PTH119
    chosen = (scripts or words[:1] or list(argv[:1]))[0]
    return re.sub(r"[^\w.-]+", "-", Path(chosen).stem).strip("-.")[:40] or "command"


def plan_command(argv: Sequence[str], snapshot: Snapshot, options: CommandOptions) -> CommandPlan:
    """Settle the command's plan for the machine of ``snapshot`` and the variables of this session."""
    environment, decisions = settle_environment(argv, snapshot.facts, os.environ)
    return sealed(
        CommandPlan(
            name=run_name_of(argv),
            made_at=datetime.now(timezone.utc).isoformat(timespec="seconds"),
            argv=tuple(printable(word) for word in argv),
            cwd=printable(str(Path.cwd())),
            environment=environment,
            decisions=decisions,
            retries=options.retries,
            resume_with=printable(options.resume_with),
            checkpoints=printable(options.checkpoints),
            on_finish=options.on_finish,
            on_finish_always=options.on_finish_always,
            countdown_s=options.countdown_s,
        )
    )


def begin_command(
    plan: CommandPlan,
    snapshot: Snapshot,
    run_dir: Path | None = None,
    with_sampler: bool = True,
    alerts: AlertsSection | None = None,
) -> StartedRun:
    """Make the run directory of a command and start its supervisor in a session of its own. Raises LaunchError."""
    run = prepare_directory(encode_command(plan), snapshot, run_dir or new_run_dir(plan.name), alerts=alerts)
    run.plan.chmod(0o600)  # a command's words may hold a key
    with suppress(OSError):  # without its copy it is a run all the same
        keep_script(run, plan.words, Path(plan.folder))
    lock = take_lock(run)
    try:
        started = StartedRun(run, _start_supervisor(run, with_sampler, lock))
        started.sampler_why = start_telling(run)
        return started
    finally:
        if lock is not None:
            os.close(lock)


def _start_supervisor(run: RunDir, with_sampler: bool, lock: int | None) -> subprocess.Popen[bytes]:
    """Start it in ``RUN/stacks`` with the session's variables untouched: the command inherits them from it."""
    argv = own_argv("doctor.supervisor", str(run.path), *([] if with_sampler else ["--no-sampler"]))
    try:
        run.stacks.mkdir(exist_ok=True)
        run.trainer_log.touch()
        return start_detached(
            argv, run.path / "supervisor.log", folder=run.stacks, lock=lock, held=HELD_SIGNALS
        )
    except OSError as error:
        raise LaunchError(
            t("the supervisor could not be started: {error}", error=error.strerror or str(error))
        ) from None
