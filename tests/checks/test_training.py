"""A run that is meant, against the versions that would run it."""

from __future__ import annotations

from typing import Any

import pytest

from doctor.model import Environment, Python, Workload
from tests.checks.judged import packages, said, torch, variables

SCALED = "accumulation-loss-not-scaled"


@pytest.mark.parametrize(
    ("transformers", "steps", "accepts", "level"),
    [
        pytest.param("4.46.0", 4, False, "warn", id="4.46"),
        pytest.param("4.47.1", 8, False, "warn", id="4.47"),
        pytest.param("4.47.1", 8, None, "note", id="a model nobody looked at"),
        pytest.param("4.47.1", 8, True, None, id="a model that takes loss arguments"),
        pytest.param("4.47.1", 1, False, None, id="no accumulation"),
        pytest.param("4.48.0", 8, False, None, id="4.48 divides"),
        pytest.param("4.45.2", 8, False, None, id="4.45 divided"),
    ],
)
def test_the_accumulated_loss(transformers: str, steps: int, accepts: bool | None, level: str | None) -> None:
    run = Workload(training_args={"gradient_accumulation_steps": steps}, model_accepts_loss_kwargs=accepts)
    assert said(workload=run, packages=packages(transformers=transformers)).get(SCALED) == level


@pytest.mark.parametrize(
    ("python", "torch_version", "run", "level"),
    [
        pytest.param("3.12.3", "2.3.1", {"features": ("torch-compile",)}, "fail", id="asked for on 3.12"),
        pytest.param(
            "3.13.0",
            "2.5.1",
            {"training_args": {"torch_compile": True}},
            "fail",
            id="by a training argument on 3.13",
        ),
        pytest.param("3.12.3", "2.3.1", {"source": "x"}, "note", id="not asked for"),
        pytest.param("3.12.3", "2.4.0", {"features": ("torch-compile",)}, None, id="2.4 knows 3.12"),
        pytest.param(
            "3.14.0", "2.9.1", {"features": ("torch-compile",)}, "fail", id="2.9 does not know 3.14"
        ),
        pytest.param(
            "3.16.0", "2.16.0", {"features": ("torch-compile",)}, None, id="a Python that no table knows"
        ),
    ],
)
def test_torch_compile_and_python(
    python: str, torch_version: str, run: dict[str, Any], level: str | None
) -> None:
    given = said(python=Python(version=python), torch=torch(torch_version), workload=Workload(**run))
    assert given.get("torch-compile-python-unsupported") == level


def test_workers_of_python_3_14_do_not_fork() -> None:
    run = Workload(num_workers=4)
    assert said(python=Python(version="3.14.0"), workload=run) == {"workers-start-by-forkserver": "note"}
    assert said(python=Python(version="3.13.1"), workload=run) == {}
    assert said(python=Python(version="3.14.0"), workload=Workload(num_workers=0, source="x")) == {}


SCRIPT = Workload(source="train.py", deterministic=True)


@pytest.mark.parametrize(
    ("run", "environment", "level"),
    [
        pytest.param(SCRIPT, variables(), "fail", id="asked for and not set"),
        pytest.param(SCRIPT, variables(CUBLAS_WORKSPACE_CONFIG=":4096:8"), None, id="set"),
        pytest.param(SCRIPT, variables(CUBLAS_WORKSPACE_CONFIG="4096:8"), "warn", id="without its colon"),
        pytest.param(SCRIPT, Environment(complete=False), None, id="variables nobody read"),
        pytest.param(
            Workload(source="quickstart", deterministic=True),
            variables(),
            None,
            id="a profile's run sets it itself",
        ),
        pytest.param(Workload(source="train.py"), variables(), None, id="not asked for"),
    ],
)
def test_deterministic_matrix_products(run: Workload, environment: Environment, level: str | None) -> None:
    given = said(workload=run, environment=environment, torch=torch("2.6.0+cu124"))
    assert given.get("cublas-workspace-unset") == level


def test_seeds_are_notes() -> None:
    assert said(workload=Workload(seeds_set=("torch",)), environment=variables()) == {
        "seeds-incomplete": "note"
    }
    assert (
        said(
            workload=Workload(seeds_set=("numpy", "python", "torch")),
            environment=variables(PYTHONHASHSEED="0"),
        )
        == {}
    )
    assert said(workload=Workload(source="fragment.py"), environment=variables()) == {}
