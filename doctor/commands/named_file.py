"""What a file is that was named without an option."""

from __future__ import annotations

from doctor.commands import CommandError, Exit


def script_named(file: str) -> str:
    """Return ``file``, which was named without an option, where it is a script.

    Raises:
        CommandError: it is no Python file; the options for the other kinds are named.
    """
    from runner.text import t

    if file.endswith((".py", ".ipynb")):
        return file
    raise CommandError(
        t("{file} is no Python script. `--facts FILE` judges a recorded machine, `--profile FILE` a run, `doctor explain FILE` reads a log.", file=file),
        Exit.USAGE,
    )  # fmt: skip
