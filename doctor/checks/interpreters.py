"""Checks on the commands of a session: do ``python`` and ``pip`` belong to the environment that is active? Pure."""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote

from doctor.checks import check, evidence
from doctor.model import Finding, Python, Reading, t

_OF_THIS_SESSION = ("VIRTUAL_ENV", "CONDA_PREFIX", "PATH")
"""What ``--python`` names may be another environment than the session's own, and then says nothing of it."""


@check("python-on-path-is-another")
def the_active_environment_is_what_python_runs(python: Reading[Python]) -> Iterator[Finding]:
    """Does the command python run the environment that is active?"""
    judged = python.value
    if judged is None or judged.chosen_by not in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        return
    first = next((other.value for other in python.others if other.source == "PATH"), None)
    if first is None or judged.executable is None or "executable" in judged.unread:
        return
    yield Finding(
        id="python-on-path-is-another",
        level="warn",
        subject=first,
        title=t(
            "{variable} names {prefix}, but the command python runs {other}: what one of them has, the other lacks",
            variable=judged.chosen_by,
            prefix=judged.prefix or judged.executable,
            other=first,
        ),
        advice=t(
            "Activate the environment anew in this shell, or name its Python: {python} train.py. To judge the other one: doctor check --python {other}",
            python=quote(judged.executable),
            other=quote(first),
        ),
        evidence=evidence(python__executable=judged.executable, python__chosen_by=judged.chosen_by),
        cause_of=("pip-of-another-python",),
    )


@check("pip-of-another-python")
def pip_installs_where_python_looks(python: Python) -> Iterator[Finding]:
    """Does the command pip install into the Python that is judged?"""
    pip = python.pip_command
    if pip is None or pip.is_of_judged or python.chosen_by not in _OF_THIS_SESSION or not python.executable:
        return
    if "executable" in python.unread:
        return
    advice = (
        t("Install with {python} -m pip install ...", python=quote(python.executable))
        if python.has_pip
        else t("Install with uv pip install --python {python} ...", python=quote(python.executable))
    )
    yield Finding(
        id="pip-of-another-python",
        level="warn" if python.has_pip else "note",
        subject=pip.path,
        title=t(
            "the command pip installs into {other}, not into {python}: what it installs is not found there",
            other=pip.python,
            python=python.executable,
        ),
        advice=advice,
        evidence=evidence(python__pip_command__path=pip.path, python__pip_command__python=pip.python),
    )
