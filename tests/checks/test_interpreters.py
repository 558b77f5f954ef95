"""The commands of a session: another python or pip than the active environment's is said, its own never."""

from __future__ import annotations

import pytest

from doctor.judge import judge
from doctor.model import Facts, OtherAnswer, PipCommand, Python, Reading, Snapshot, t
from tests.checks.judged import said

BASE = "/root/miniconda3/bin/python"
VENV = "/root/venv/bin/python"


def active(chosen_by: str = "VIRTUAL_ENV", **fields: object) -> Python:
    return Python(executable=VENV, prefix="/root/venv", version="3.11.7", chosen_by=chosen_by, **fields)  # type: ignore[arg-type]


def pip(python: str) -> PipCommand:
    return PipCommand(path=python.replace("/python", "/pip"), python=python, is_of_judged=python == VENV)


@pytest.mark.parametrize(
    ("python", "found"),
    [
        pytest.param(active(has_pip=True, pip_command=pip(BASE)), {"pip-of-another-python": "warn"}, id="base's pip in a venv"),
        pytest.param(active(has_pip=False, pip_command=pip(BASE)), {"pip-of-another-python": "note"}, id="uv's environments have no pip"),
        pytest.param(active("PATH", has_pip=True, pip_command=pip(BASE)), {"pip-of-another-python": "warn"}, id="python and pip from two folders of PATH"),
        pytest.param(active(has_pip=True, pip_command=pip(VENV)), {}, id="its own pip"),
        pytest.param(active(has_pip=True), {}, id="no pip on PATH"),
        pytest.param(active("--python", has_pip=True, pip_command=pip(BASE)), {}, id="an environment asked for by name"),
        pytest.param(active(has_pip=True, pip_command=pip(BASE), unread={"executable": t("x")}), {"python-cannot-run": "fail"}, id="one that cannot run"),
    ],
)  # fmt: skip
def test_whose_pip_it_is(python: Python, found: dict[str, str]) -> None:
    assert said(python=python) == found


@pytest.mark.parametrize(
    ("chosen_by", "first", "found"),
    [
        pytest.param("VIRTUAL_ENV", BASE, {"python-on-path-is-another": "warn"}, id="conda's base in front of a venv"),
        pytest.param("CONDA_PREFIX", "/usr/bin/python3", {"python-on-path-is-another": "warn"}, id="the system's in front of conda"),
        pytest.param("VIRTUAL_ENV", None, {}, id="its own python"),
        pytest.param("--python", BASE, {}, id="an environment asked for by name"),
    ],
)  # fmt: skip
def test_whose_python_it_is(chosen_by: str, first: str | None, found: dict[str, str]) -> None:
    others = (OtherAnswer(source="PATH", value=first),) if first else ()
    reading = Reading(status="ok", value=active(chosen_by), others=others)
    assert said(python=reading) == found


def test_another_python_in_front_explains_its_pip() -> None:
    python = active(has_pip=True, pip_command=pip(BASE))
    reading = Reading(status="ok", value=python, others=(OtherAnswer(source="PATH", value=BASE),))
    (diagnosis,) = judge(Snapshot(facts=Facts(python=reading))).diagnoses
    assert diagnosis.finding.id == "python-on-path-is-another"
    assert [item.id for item in diagnosis.symptoms] == ["pip-of-another-python"]
