"""Where variables that last are kept on a machine: the managed file, and the start file of the user's shell. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Mapping

from doctor.model import AddLine, SetVariable, Snapshot, Step


def home_of(snapshot: Snapshot) -> str | None:
    """Return the home folder; None where nobody looked."""
    environment, storage = snapshot.facts.environment.value, snapshot.facts.storage.value
    place = storage.place("home") if storage else None
    return (environment.get("HOME") if environment else None) or (place.path if place else None)


def config_folder(snapshot: Snapshot) -> str | None:
    """Return the folder of the doctor's own files (``~/.config/rundoctor``)."""
    environment, home = snapshot.facts.environment.value, home_of(snapshot)
    base = environment.get("XDG_CONFIG_HOME") if environment else None
    if not base and not home:
        return None
    return f"{base or f'{home}/.config'}".rstrip("/") + "/rundoctor"


def start_file(snapshot: Snapshot) -> str:
    """Return the file that an interactive shell of this user reads; bash's, unless the shell is zsh."""
    environment, home = snapshot.facts.environment.value, home_of(snapshot)
    shell = (environment.get("SHELL") if environment else None) or ""
    return f"{home}/.zshrc" if shell.endswith("zsh") else f"{home}/.bashrc"


def set_variables(snapshot: Snapshot, values: Mapping[str, str | None]) -> tuple[Step, ...]:
    """Return the steps that give each variable its value (None: unset) in every new shell; empty: no home is known."""
    folder = config_folder(snapshot)
    if folder is None:
        return ()
    file = f"{folder}/env.sh"
    quoted = shlex.quote(file)
    steps: tuple[Step, ...] = tuple(SetVariable(name=name, value=value, file=file) for name, value in values.items())  # fmt: skip
    return (*steps, AddLine(path=start_file(snapshot), line=f"[ -r {quoted} ] && . {quoted}"))
