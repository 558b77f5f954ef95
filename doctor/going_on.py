"""How a command that is started again goes on from the checkpoints of its own script: named to it, or handed over in its words."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable
from pathlib import Path

from doctor.ended import Note
from doctor.own_checkpoints import OwnCheckpoint, checkpoints_at, newest_whole, written_since
from runner.command_plan import CommandPlan
from runner.rundir import RunDir
from runner.strings import printable, unescape
from runner.text import t

FIELD = "{checkpoint}"
VARIABLE = "DOCTOR_CHECKPOINT"
TOLD_DAMAGED = 3

Tell = Callable[[Note], None]


class GoingOn:
    """Looks for checkpoints before the first start (those are not this run's) and before each further one."""

    def __init__(self, run: RunDir, plan: CommandPlan) -> None:
        self._run, self._plan = run, plan
        self._folder = Path(plan.folder)
        self._begun_ns = time.time_ns()
        self._before = {one.path: one.modified_ns for one in self._all()} if plan.retries else {}

    def _all(self) -> list[OwnCheckpoint]:
        found = checkpoints_at(self._folder, self._plan.words, unescape(self._plan.checkpoints))
        return [one for one in found if self._run.path not in one.path.parents]

    def found(self) -> list[OwnCheckpoint]:
        """Return the checkpoints of this run, newest first."""
        return written_since(self._all(), self._before)

    @property
    def newest_step(self) -> int:
        """The highest number in the name of a checkpoint of this run; 0: there is none, or nobody will ask."""
        if not self._plan.retries:
            return 0
        return max((one.step or 0 for one in self.found()), default=0)

    def tell_newest(self, tell: Tell) -> None:
        """Name the newest whole checkpoint that was written since the first start: a run that ended early can go on from it."""
        newest, _ = newest_whole(one for one in self._all() if one.modified_ns >= self._begun_ns)
        if newest is not None:
            path = printable(str(newest.path))
            tell(Note("info", t("The newest whole checkpoint of this run is {path}.", path=path), {"advice": True}))  # fmt: skip

    def words_and_variables(self, attempt: int, tell: Tell) -> tuple[list[str], dict[str, str]]:
        """Return what is started, and what it is told by its environment; say from where it goes on."""
        words, variables = self._plan.words, {"DOCTOR_RETRY": str(attempt)}
        if attempt == 0:
            return words, variables
        again = {"again": attempt}
        newest, damaged = newest_whole(self.found())
        for one, trouble in damaged[:TOLD_DAMAGED]:
            tell(Note("warn", trouble, {"file": printable(str(one.path)), **again}))
        if newest is None:
            tell(Note("warn", t("No whole checkpoint of this run was found below {folder}: it begins anew.",
                                folder=printable(str(self._folder))), again))  # fmt: skip
            return words, variables
        path = printable(str(newest.path))
        if self._plan.resume_with:
            tell(Note("info", t("It goes on from {path}.", path=path), again))
        else:
            tell(Note("info", t("Its newest whole checkpoint is {path} (DOCTOR_CHECKPOINT holds it): whether it goes on from there is up to the "
                                "script.", path=path), again))  # fmt: skip
        return [*words, *resume_words(self._plan.resume_with, newest.path)], {**variables, VARIABLE: str(newest.path)}  # fmt: skip


def resume_words(resume_with: str, checkpoint: Path) -> list[str]:
    """Return the words of ``--resume-with`` with the checkpoint's path in its place. Raises ValueError: an unclosed quote."""
    return [word.replace(FIELD, str(checkpoint)) for word in shlex.split(unescape(resume_with))]
