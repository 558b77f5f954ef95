"""What happens after a supervised command has ended: a countdown that anybody can cancel, then the user's command.

It is usually a shutdown: nothing of the command may still be writing by then, and what it wrote has reached the disk.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from doctor.ended import Note
from doctor.leftovers import Leftovers
from doctor.stopping import StopLadder
from runner.command_plan import CommandPlan
from runner.rundir import RunDir
from runner.strings import printable
from runner.text import t

LEFTOVERS_S = 600.0
"""So long processes that the command left behind (a save, an upload) are waited for."""
SYNC_S = 60.0
COULD_NOT_START = 127

Write = Callable[..., None]


class OnFinish:
    """Carries out ``--on-finish``; every turn of it is an event, so any session sees it and can cancel it."""

    def __init__(
        self, run: RunDir, plan: CommandPlan, stop: StopLadder, write: Write, note: Callable[[Note], None]
    ) -> None:
        self.run, self.plan, self.stop = run, plan, stop
        self._write, self._note = write, note
        self._log = run.path / "on-finish.log"
        self._asked_before = len(stop.requests)

    def carry_out(self, outcome: str, exit_code: int) -> None:
        """Wait, then run the command; not after a stop by hand, unless the plan says always."""
        if not self.plan.on_finish or (outcome == "interrupted" and not self.plan.on_finish_always):
            return
        self._wait_for_leftovers()
        if self._is_cancelled() or self._counted_down_to_a_cancel():
            self._say("cancelled")
            return
        self._say("running")
        _flush_disks()
        code = self._run(outcome, exit_code)
        self._say("done", exit_code=code)
        if code:
            self._note(Note("fail", t("The command of --on-finish failed with status {code}: {command} {line}",
                                      code=code, command=printable(self.plan.on_finish), line=self._last_line())))  # fmt: skip

    def _is_cancelled(self) -> bool:
        return self.run.cancel_on_finish.exists() or len(self.stop.requests) > self._asked_before

    def _wait_for_leftovers(self) -> None:
        """Let what the command left behind end by itself: it may be the last save on its way to the disk."""
        leftovers = Leftovers(self.run)
        count = len(leftovers.pids())
        if not count:
            return
        self._note(Note("warn", t("--on-finish waits for {count} {count:process|processes} that the command left behind, at most {minutes} min.",
                                  count=count, minutes=round(LEFTOVERS_S / 60))))  # fmt: skip
        leftovers.wait(LEFTOVERS_S, self._is_cancelled)

    def _counted_down_to_a_cancel(self) -> bool:
        self._say("waiting", at=time.time() + self.plan.countdown_s, cancel=printable(str(self.run.cancel_on_finish)))  # fmt: skip
        end = time.monotonic() + self.plan.countdown_s
        while time.monotonic() < end:
            if self._is_cancelled():
                return True
            time.sleep(0.1)
        return self._is_cancelled()

    def _run(self, outcome: str, exit_code: int) -> int:
        """Run the command in the shell, its output into ``on-finish.log``; a request to stop ends it."""
        environ = {**os.environ, "DOCTOR_RUN_DIR": str(self.run.path), "DOCTOR_OUTCOME": outcome,
                   "DOCTOR_EXIT_CODE": str(exit_code)}  # fmt: skip
        try:
            with self._output() as log:
                process = subprocess.Popen(
                    ["/bin/sh", "-c", self.plan.on_finish], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                    start_new_session=True, cwd=_folder(self.plan.folder), env=environ,
                )  # fmt: skip
        except OSError:
            return COULD_NOT_START
        asked = len(self.stop.requests)
        while process.poll() is None:
            if len(self.stop.requests) > asked:
                asked = len(self.stop.requests)
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGTERM)
            time.sleep(0.1)
        return process.returncode if process.returncode >= 0 else 128 - process.returncode

    def _output(self) -> BinaryIO:
        """Return where the command prints to: a full disk must not keep the machine from being shut down."""
        try:
            return open(self._log, "ab")
        except OSError:
            return open(os.devnull, "ab")

    def _last_line(self) -> str:
        try:
            lines = self._log.read_bytes()[-4096:].decode("utf-8", "replace").split("\n")
        except OSError:
            return ""
        return printable(next((line.strip() for line in reversed(lines) if line.strip()), ""))[:300]

    def _say(self, state: str, **data: object) -> None:
        self._write("on-finish", None, state=state, command=self.plan.on_finish, **data)


def _folder(folder: str) -> str:
    """Return where the command is run: where the training was, or, should that be gone, at the root."""
    return folder if Path(folder).is_dir() else "/"


def _flush_disks() -> None:
    """Have what was written reach the disk before the machine goes; a dead network disk is not waited for."""
    with suppress(OSError, subprocess.TimeoutExpired):
        subprocess.Popen(["sync"], stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL).wait(SYNC_S)
