"""Run one command; ask one address. What a command printed last is what is said when it fails."""

from __future__ import annotations

import shlex
import subprocess
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence

from doctor.acts import Act, Keeper, Kept, Refused
from doctor.model import AskUrl, Run, Text, t
from runner.strings import printable

LIMIT_S = 3600.0
_ANSWER_S = 5.0


def run_command(
    argv: Sequence[str], keeper: Keeper, environ: Mapping[str, str], limit_s: float = LIMIT_S
) -> subprocess.CompletedProcess[str]:
    """Run ``argv``, its output to a file that is kept with the entry; the child holds the journal's lock as long as it lives.

    Raises:
        Refused: it is not there, or took longer than ``limit_s``.
    """
    held = () if keeper.journal.lock_fd is None else (keeper.journal.lock_fd,)
    try:
        return subprocess.run(
            list(argv), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, pass_fds=held,
            env=dict(environ), timeout=limit_s, check=False, encoding="utf-8", errors="replace", cwd="/",
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise Refused(t("{command} did not end within {seconds} s", command=shlex.join(argv), seconds=round(limit_s))) from None  # fmt: skip
    except OSError as error:
        raise Refused(t("{command} cannot be started: {error}", command=shlex.join(argv), error=error.strerror or str(error))) from None  # fmt: skip


def last_words(output: str, lines: int = 3) -> str:
    """Return the last lines that say something, safe to show."""
    said = [line.strip() for line in output.splitlines() if line.strip()]
    return printable(" | ".join(said[-lines:])[-400:])


class RunAct(Act[Run]):
    def look(self, step: Run, keeper: Keeper) -> Kept:
        return {}

    def do(self, step: Run, before: Kept, keeper: Keeper) -> Kept:
        self._run(step.argv, keeper)
        return {"status": 0}

    def _run(self, argv: tuple[str, ...], keeper: Keeper) -> None:
        done = run_command(argv, keeper, keeper.environ)
        if done.returncode != 0:
            raise Refused(t("{command} failed ({status}): {words}", command=shlex.join(argv), status=done.returncode, words=last_words(done.stdout)))  # fmt: skip

    def undo(self, step: Run, before: Kept, after: Kept | None, keeper: Keeper) -> None:
        if step.undo is not None:
            self._run(step.undo, keeper)
        elif after is not None:
            raise Refused(t("this command has no way back: {command}", command=shlex.join(step.argv)))

    def cannot_undo(self, step: Run) -> Text | None:
        return (
            None if step.undo else t("this command has no way back: {command}", command=shlex.join(step.argv))
        )

    def preview(self, step: Run) -> list[str]:
        return [shlex.join(step.argv)]


class AskUrlAct(Act[AskUrl]):
    def look(self, step: AskUrl, keeper: Keeper) -> Kept:
        return {}

    def do(self, step: AskUrl, before: Kept, keeper: Keeper) -> Kept:
        try:
            with urllib.request.urlopen(urllib.request.Request(step.url, method="HEAD"), timeout=_ANSWER_S) as answer:  # fmt: skip
                return {"status": int(answer.status)}
        except urllib.error.HTTPError as error:
            if error.code < 500:
                return {"status": error.code}  # it answers, if not with a page for everyone
            why = str(error)
        except (OSError, ValueError) as error:
            why = str(error)
        raise Refused(t("{url} does not answer ({error}): nothing was changed", url=step.url, error=why))

    def undo(self, step: AskUrl, before: Kept, after: Kept | None, keeper: Keeper) -> None:
        """Nothing was changed."""

    def preview(self, step: AskUrl) -> list[str]:
        return [f"curl -sSI {step.url}"]
