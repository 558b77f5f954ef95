"""Names a fix that was killed half way, on the next check."""

from __future__ import annotations

from doctor.commands import complain


def name_what_was_cut_off() -> None:
    """A fix that was killed half way is named at the next start, whichever that is."""
    from doctor.state_dir import state_dir

    if not (state_dir() / "journal").exists():
        return
    from doctor import service
    from doctor.journal import JournalError
    from runner.text import t

    try:
        half_done = service.half_done_changes()
    except JournalError as error:
        complain(error.text)
        return
    for change in half_done:
        complain(
            t(
                "change {id} ({fix}, {time}) was cut off half way; `doctor journal` says more",
                id=change.id,
                fix=change.fix.id,
                time=change.at,
            )
        )
