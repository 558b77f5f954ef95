"""The keys of each screen in words, for the help; those that act are left out where nothing may be done."""

from __future__ import annotations

from collections.abc import Sequence

from doctor.language import say

Keys = list[tuple[str, str]]


def key_sections(is_readonly: bool) -> Sequence[tuple[str, Keys]]:
    """Return the title and the keys of each section."""
    acting = not is_readonly
    return (
        (say("Everywhere"), _everywhere()),
        (say("Machine"), _machine(acting)),
        (say("Profiles"), _profiles(acting)),
        (say("Runs"), _runs(acting)),
        (say("One run"), _run(acting)),
        (say("Looking back in a run"), _time()),
        (say("Snapshots"), _snapshots(acting)),
    )


def _everywhere() -> Keys:
    return [
        ("1 2 3 4", say("machine, profiles, runs, snapshots")),
        ("l", say("English / 中文, at once")),
        ("? h F1", say("this help")),
        ("Ctrl+P", say("every command, by name")),
        ("q Ctrl+C", say("leave; runs go on")),
        ("Shift", say("held down, the mouse selects text, to copy a command")),
        (
            "↑ ↓ ⏎",
            say("walk through a list and open an item; j k g G PgUp PgDn too, and the mouse"),
        ),
        ("Tab", say("to the page beside a list, and back")),
        ("/", say("only what holds these words; Esc shows all again")),
        ("y", say("copy the item under the cursor, or the page with the keys, as text")),
    ]


def _machine(acting: bool) -> Keys:
    fix = say(
        "what can be done about a finding: each step shown first, applied after a question, undone by a key"
    )
    return [
        ("r", say("check again")),
        *([("f", fix)] if acting else []),
        *([("d", say("the deep check: torch really used, for a minute at most"))] if acting else []),
        ("⏎", say("evidence, advice and symptoms of a finding")),
        ("e", say("unfold or fold all")),
        ("Tab", say("the facts that were read, and those that were not")),
    ]


def _profiles(acting: bool) -> Keys:
    return [
        ("⏎", say("the plan: every choice with its reason")),
        ("c", say("change the few values that matter, and plan again")),
        *([("s", say("start a run, after a question"))] if acting else []),
    ]


def _runs(acting: bool) -> Keys:
    return [
        ("⏎", say("watch a run, live or finished")),
        ("m c", say("mark a run, then compare another with it")),
        ("S", say("the next order: newest, by status, best metric, lowest loss, by name")),
        *([("R", say("resume a run that is over, after a question"))] if acting else []),
    ]


def _run(acting: bool) -> Keys:
    return [
        ("Tab", say("next pane, where panes are tabs (F5 to F8 pick one)")),
        *([("s", say("stop the run, after a question: it saves and can be resumed"))] if acting else []),
        *(
            [("r A", say("resume a run that is over, after a question; A where it cannot go on to the bit"))]
            if acting
            else []
        ),
        ("p", say("pause the view; the run goes on")),
        ("g", say("loss on a logarithmic scale")),
        ("i", say("stacks as a table, or as a picture of who calls whom")),
        ("o", say("events, or the end of the trainer's log")),
        ("Esc", say("back to the runs")),
    ]


def _time() -> Keys:
    return [
        ("← →", say("a hundredth of the run back or forward; everything on the screen shows that moment")),
        ("[ ]", say("a tenth of the run")),
        (", .", say("a second")),
        ("Home End", say("the start; now")),
        ("Space v", say("play and stop; the speed")),
    ]


def _snapshots(acting: bool) -> Keys:
    return [
        ("⏎", say("what is in a snapshot")),
        ("m d", say("mark one, then show what another one does to the result")),
        *(
            [("x", say("write this machine, or the difference that is shown, to a file here"))]
            if acting
            else []
        ),
    ]
