"""What happens after a supervised command has ended: a countdown that anybody can cancel, then the user's command."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress

from doctor.stopping import StopLadder
from runner.command_plan import CommandPlan
from runner.rundir import RunDir

Write = Callable[..., None]


class OnFinish:
    """Carries out ``--on-finish``; every turn of it is an event, so any session sees it and can cancel it."""

    def __init__(self, run: RunDir, plan: CommandPlan, stop: StopLadder, write: Write) -> None:
        self.run, self.plan, self.stop, self._write = run, plan, stop, write

    def carry_out(self, outcome: str, exit_code: int) -> None:
        """Wait, then run the command; not after a stop by hand, unless the plan says always."""
        if not self.plan.on_finish or (outcome == "interrupted" and not self.plan.on_finish_always):
            return
        asked_before = len(self.stop.requests)
        if self._cancelled(asked_before):
            self._say("cancelled")
            return
        self._say("running")
        self._say("done", exit_code=self._run(outcome, exit_code, asked_before))

    def _cancelled(self, asked_before: int) -> bool:
        self._say("waiting", at=time.time() + self.plan.countdown_s)
        end = time.monotonic() + self.plan.countdown_s
        while time.monotonic() < end:
            if self.run.cancel_on_finish.exists() or len(self.stop.requests) > asked_before:
                return True
            time.sleep(0.1)
        return self.run.cancel_on_finish.exists()

    def _run(self, outcome: str, exit_code: int, asked_before: int) -> int:
        """Run the command in the shell, its output into ``on-finish.log``; a request to stop ends it."""
        environ = {**os.environ, "DOCTOR_RUN_DIR": str(self.run.path), "DOCTOR_OUTCOME": outcome,
                   "DOCTOR_EXIT_CODE": str(exit_code)}  # fmt: skip
        try:
            with open(self.run.path / "on-finish.log", "ab") as log:
                process = subprocess.Popen(
                    ["/bin/sh", "-c", self.plan.on_finish], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                    start_new_session=True, cwd=self.plan.folder, env=environ,
                )  # fmt: skip
        except OSError:
            return 127
        while process.poll() is None:
            if len(self.stop.requests) > asked_before:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGTERM)
                asked_before = len(self.stop.requests)
            time.sleep(0.1)
        return process.returncode

    def _say(self, state: str, **data: object) -> None:
        self._write("on-finish", None, state=state, command=self.plan.on_finish, **data)
