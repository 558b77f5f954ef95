"""The judged interpreter as a fact: which, why that one, and where it imports from."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from doctor.model import OtherAnswer, Python, Reading, Text, ok
from doctor.probes.bounded import is_folder, is_there, names_in
from doctor.probes.pip_on_path import pip_command
from doctor.probes.target import without_python
from runner.strings import printable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from doctor.probes import Context
    from doctor.probes.target import Target


def probe(context: Context) -> Reading[Python]:
    target = context.target
    if target.executable is None:
        return without_python(target)
    search, own = target.search, target.search.own if target.search else None
    unread: dict[str, Text] = {"executable": target.problem} if target.problem else {}
    python = Python(
        version=target.version or None,
        executable=printable(str(target.executable)),
        prefix=printable(str(target.prefix)),
        kind=target.kind,
        chosen_by=target.chosen_by,
        conda_env=conda_env(target.prefix, context.environ) if target.kind == "conda" else None,
        search_path=tuple(printable(str(folder)) for folder in target.site_packages),
        user_site_enabled=search.user_site_enabled if search else None,
        user_site_before_env=search.user_site_before_env if search else None,
        externally_managed=_externally_managed(target),
        has_pip=any(name == "pip" for folder in target.site_packages for name in names_in(folder)),
        pip_command=pip_command(context, target),
        writable=os.access(own, os.W_OK) if own else None,
        unread=unread,
    )
    return ok(python, source=_source(target), others=_others(target))


def _source(target: Target) -> str:
    return f"{target.executable} -c 'import sys; print(sys.version, sys.path)'"


def _others(target: Target) -> tuple[OtherAnswer, ...]:
    """What ``python`` runs here, where that is not what was judged."""
    return (
        (OtherAnswer(source="PATH", value=printable(str(target.first_on_path))),)
        if target.first_on_path
        else ()
    )


def _externally_managed(target: Target) -> bool | None:
    """Whether pip refuses to install here (PEP 668); an environment of its own never is."""
    if target.layout is None or target.layout.library is None:
        return None
    return target.layout.venv is None and is_there(target.layout.library / "EXTERNALLY-MANAGED")


def conda_env(prefix: Path | None, environ: Mapping[str, str]) -> str | None:
    """Return the environment's name as conda shows it: ``base`` for the installation itself."""
    if prefix is None:
        return None
    if environ.get("CONDA_PREFIX") == str(prefix) and environ.get("CONDA_DEFAULT_ENV"):
        return printable(environ["CONDA_DEFAULT_ENV"])
    return "base" if is_folder(prefix / "condabin") else printable(prefix.name)
