"""A file of one's own in a module's place: how bad it is follows from who needs the module."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from doctor.model import Facts, Project, Reading, Snapshot, Workload, ok
from doctor.service import beside_script
from tests.checks.judged import packages, said, the, torch

BOTH = {"torch": torch("2.13.0+cu130"), "packages": packages(transformers="5.24.0")}
HF = Workload(source="train.py", imports=("torch", "transformers"))
PLAIN = Workload(source="/root/work/train.py", imports=("torch",))


def here(*names: str, **fields: Any) -> Project:
    return Project(cwd="/root/work", shadowing_files=names, **fields)


@pytest.mark.parametrize(
    ("project", "sections", "level"),
    [
        pytest.param(here("random.py"), BOTH, "warn", id="a standard module that torch imports"),
        pytest.param(here("random.py"), {**BOTH, "workload": PLAIN}, "fail", id="beside a script that imports torch"),
        pytest.param(here("torch.py"), {**BOTH, "workload": PLAIN}, "fail", id="torch itself"),
        pytest.param(here("tokenizers.py"), {**BOTH, "workload": HF}, "fail", id="what transformers imports"),
        pytest.param(here("tokenizers.py"), {**BOTH, "workload": PLAIN}, "note", id="the script does not use transformers"),
        pytest.param(here("datasets.py"), {**BOTH, "workload": HF}, "note", id="one's own data sets: meant"),
        pytest.param(here("datasets"), BOTH, "note", id="a package of one's own"),
        pytest.param(here("trace.py", "profile.py"), BOTH, "note", id="names that torch does without"),
        pytest.param(here("random.py", is_package=True), BOTH, "note", id="the inside of a package"),
        pytest.param(here("random.py"), {"torch": Reading(status="absent")}, "note", id="no torch to break"),
        pytest.param(here("random.py"), {**BOTH, "workload": Workload(source="sub/train.py", imports=("torch",))}, None, id="the script lies in another folder"),
        pytest.param(here("random.py", shadowing_folder="/root/work/sub"), {**BOTH, "workload": Workload(source="sub/train.py", imports=("torch",))}, "fail", id="and so does the file"),
        pytest.param(here("random.py"), {**BOTH, "workload": Workload(source="quickstart")}, None, id="a run of ours: the folder is off its path"),
        pytest.param(here(), BOTH, None, id="nothing is hidden"),
    ],
)  # fmt: skip
def test_a_file_in_a_modules_place(project: Project, sections: dict[str, Any], level: str | None) -> None:
    assert said(project=project, **sections).get("local-file-hides-module") == level


def test_the_advice_names_the_file_that_does_harm() -> None:
    found = the("local-file-hides-module", project=here("queue.py"), **BOTH)
    assert found.subject == "queue.py"
    assert "mv queue.py my_queue.py" in str(found.advice)
    assert [(row.fact, row.value) for row in found.evidence] == [("project.shadowing_files[0]", "queue.py")]


def test_the_folder_of_the_script_is_looked_at_not_the_working_directory(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "queue.py").write_text("x = 1\n", "utf-8")
    (tmp_path / "random.py").write_text("x = 1\n", "utf-8")
    script = tmp_path / "sub" / "train.py"
    script.write_text("import torch\n", "utf-8")
    snapshot = Snapshot(facts=Facts(project=ok(Project(cwd=str(tmp_path), shadowing_files=("random.py",)))))
    project = beside_script(snapshot, str(script)).facts.project.value
    assert project is not None
    assert (project.shadowing_files, project.shadowing_folder) == (("queue.py",), str(tmp_path / "sub"))
    assert project.cwd == str(tmp_path)
    assert beside_script(snapshot, str(tmp_path / "train.py")) is snapshot
