"""``--alert``: told of a run's alerts and of its end by bell, webhook or a command of one's own. Off unless asked for."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from doctor.commands import CommandError, Exit, complain
from doctor.language import say

if TYPE_CHECKING:
    from doctor.alert_follow import AlertThread, Look
    from runner.alert_settings import AlertsSection
    from runner.rundir import RunDir


def configure(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group(
        say("alerts"),
        say("loss not finite or jumping, over-fitting, memory or disk nearly full, a hot or throttled card, a stall, the "
            "end of the run. Off unless asked for. No message holds this machine's name, a folder, or a credential."),
    )  # fmt: skip
    group.add_argument(
        "--alert", action="append", default=[], metavar="WHERE", dest="alerts",
        help=say("bell, webhook=URL, webhook='$NAME' (a variable holds it, and so the process list does not), or "
                 "command=CMD (DOCTOR_ALERT_TEXT is the message); may be given again. WeCom, DingTalk, Feishu, ServerChan "
                 "and Slack get what they take, others {\"text\": ...}"),
    )  # fmt: skip
    group.add_argument(
        "--alert-on", action="append", default=[], metavar="KIND", dest="alert_kinds",
        help=say("only this kind: finished, failed, stalled, hung, non-finite, loss-spike, overfitting, vram, throttled, "
                 "temperature, disk or xid; may be given again"),
    )  # fmt: skip
    group.add_argument(
        "--alert-body", default="", metavar="JSON",
        help=say("what is posted to a webhook: JSON with {text} in it (also {title} {kind} {level} {run})"),
    )  # fmt: skip


def settings_of(namespace: argparse.Namespace, profile: AlertsSection | None = None) -> AlertsSection:
    """Return the alerts of the command line laid over a profile's. Raises CommandError with every mistake."""
    import msgspec

    from runner.alert_settings import KINDS, AlertsSection, problems_of
    from runner.text import t

    kinds = [kind for words in namespace.alert_kinds for kind in words.split(",") if kind]
    wrong = [t("--alert-on takes {kinds} (not {word})", kinds=", ".join(KINDS), word=kind)
             for kind in kinds if kind not in KINDS]  # fmt: skip
    before = profile or AlertsSection()
    if not namespace.alerts and (kinds or namespace.alert_body) and not before.is_on:
        wrong.append(t("--alert-on and --alert-body go with --alert WHERE"))
    settings = msgspec.structs.replace(
        before,
        to=[*before.to, *namespace.alerts],
        kinds=kinds or before.kinds,
        body=namespace.alert_body or before.body,
    )
    wrong += problems_of(settings)
    if wrong:
        raise CommandError("\n  ".join(map(say, wrong)), Exit.USAGE)
    return settings


def send_trial(settings: AlertsSection) -> int:
    """Send one message to every place, now, and say what came of it."""
    from doctor.alert_follow import places_in
    from doctor.alert_out import Outlet, ring
    from doctor.alert_words import trial
    from runner.text import t

    places = places_in(settings)
    if any(place.kind == "bell" for place in places):
        ring()
    troubles = Outlet(places, settings.body, sleep=lambda seconds: None).deliver(trial())
    for trouble in troubles:
        complain(trouble)
    if not troubles:
        print(say(t("{count} {count:place was|places were} told", count=len(places))))
    return Exit.FOUND if troubles else Exit.OK


def follow(look: Look, settings: AlertsSection, run: str, bell_only: bool = False) -> AlertThread | None:
    """Start telling in the background of this command; None: nobody asked for it."""
    from doctor.alert_follow import AlertThread, places_in

    places = places_in(settings)
    if not any(place.kind == "bell" or not bell_only for place in places):
        return None
    return AlertThread(look, settings, run, bell_only).start()


def follow_run(run: RunDir, settings: AlertsSection, bell_only: bool = False) -> AlertThread | None:
    """As :func:`follow`, of a run, read with eyes of its own."""
    from doctor.watching import RunWatcher

    watcher = RunWatcher(run)
    return follow(
        lambda: (watcher.poll(), watcher.status(), watcher.is_over()), settings, run.name, bell_only
    )


def finish(thread: AlertThread | None) -> None:
    """Let what is on its way arrive, and say what did not."""
    for trouble in thread.close() if thread is not None else ():
        complain(trouble)
