"""What ``doctor fix`` and ``doctor undo`` say while they act, and the questions they ask. No verb of its own."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from doctor.commands import CommandError, Exit, complain
from doctor.language import say
from runner.text import t

if TYPE_CHECKING:
    from doctor.apply import Applied, Confirm
    from doctor.journal import Journal
    from doctor.model import Change, Step
    from runner.text import Text


def waiting(pid: str) -> None:
    complain(t("another doctor (pid {pid}) is changing this machine; waiting for it", pid=pid))


def teller(number: int, step: Step, what: str, why: Text | None) -> None:
    """Say one thing that happened to a step."""
    from doctor.render.fix_text import step_words
    from doctor.render.text import printable_text

    word = {
        "doing": say("doing"),
        "done": say("done"),
        "failed": say("failed"),
        "undone": say("undone"),
        "kept": say("left as it is"),
    }[what]
    reason = f": {printable_text(say(why))}" if why is not None else ""
    print(f"    {number}. {word}: {step_words(step)}{reason}", file=sys.stderr, flush=True)


def asking(count: int) -> Confirm:
    """Return what asks for each step; ``a`` answers for the rest of this fix."""
    from doctor.render.fix_text import step_words

    rest = False

    def confirm(number: int, step: Step) -> bool:
        nonlocal rest
        if rest:
            return True
        answer = ask(say(t("step {number} of {count}: {what} - do it? [y/N/a(ll)] ", number=number, count=count, what=step_words(step))))  # fmt: skip
        rest = answer in ("a", "all")
        return rest or answer in ("y", "yes")

    return confirm


def ask(question: str) -> str:
    """Ask on the terminal; no answer (Ctrl-D) is no."""
    sys.stdout.flush()
    try:
        return input(question).strip().lower()
    except EOFError:
        return ""


def say_outcome(applied: Applied) -> None:
    """Say what became of a fix, and how to take it back."""
    from doctor.model import SetVariable

    file = next((step.file for step in applied.steps if isinstance(step, SetVariable)), None)
    if applied.outcome == "done":
        print(say(t("done; `doctor undo {id}` takes it back", id=applied.change)))
        if file:
            print(say(t("new shells have the variables; in this one: `. {file}`", file=file)))
    elif applied.outcome == "stopped" and applied.done:
        print(say(t("stopped after {count} {count:step|steps}; `doctor undo {id}` takes them back", count=applied.done, id=applied.change)))  # fmt: skip
    elif applied.outcome == "failed":
        print(say("it did not work out, and everything was put back as it was"))
    elif applied.outcome == "stuck":
        complain(t("it did not work out, and could not be put back whole: change {id} is half done; `doctor undo {id}` tries again", id=applied.change))  # fmt: skip


def repair(journal: Journal, change: Change, may_ask: bool) -> None:
    """Name a change that was cut off, and go on with it or go back as the person says.

    Raises:
        CommandError: nobody is there to ask, or it could not be repaired.
    """
    from doctor import service

    named = t("change {id} ({fix}, {time}) was cut off half way", id=change.id, fix=change.fix.id, time=change.at)  # fmt: skip
    if not (may_ask and sys.stdin.isatty()):
        ways = t("`doctor undo {id}` goes back, `doctor journal --finish {id}` goes on; nothing else is done before.", id=change.id)  # fmt: skip
        raise CommandError(f"{say(named)}. {say(ways)}")
    print(say(named))
    answer = ask(say("go [b]ack, [f]inish it, or leave [Enter]? "))
    if answer in ("b", "back"):
        why = service.undo(journal, change.id, teller)
    elif answer in ("f", "finish"):
        why = service.finish(journal, change, asking(len(change.fix.steps)), teller).error
    else:
        raise CommandError(t("change {id} is still half done; nothing else is done before", id=change.id))
    if why is not None:
        raise CommandError(why, Exit.FOUND)
