"""Copies that shadow each other, leftovers, installs cut in half; overlays that are meant stay silent."""

from __future__ import annotations

import pytest

from doctor.model import Distribution, Finding, Packages, Python, Reading, Torch, t
from tests.checks.judged import findings, loud, said, the, torch, variables

HOME = "/root/.local/lib/python3.12/site-packages"
ENV = "/opt/env/lib/python3.12/site-packages"


def two(name: str, first: tuple[str, str], second: tuple[str, str]) -> Packages:
    """Two copies of one distribution as ``(version, folder)``, in import order."""
    return Packages(
        items=tuple(
            Distribution(name=name, version=version, location=place) for version, place in (first, second)
        ),
        complete=False,
    )


CONDA = Python(conda_env="env", kind="conda", user_site_enabled=True, user_site_before_env=True)


@pytest.mark.parametrize(
    ("packages", "python", "expected"),
    [
        pytest.param(
            two("torch", ("2.6.0", HOME), ("2.8.0", ENV)),
            CONDA,
            {"user-site-shadows-env": "fail"},
            id="torch from ~/.local",
        ),
        pytest.param(
            two("scipy", ("1.9", HOME), ("1.14", ENV)),
            CONDA,
            {"user-site-shadows-env": "warn"},
            id="another package from ~/.local",
        ),
        pytest.param(two("scipy", ("1.14", HOME), ("1.14", ENV)), CONDA, {}, id="the same version in both"),
        pytest.param(two("scipy", ("1.14", ENV), ("1.9", HOME)), CONDA, {}, id="the environment comes first"),
        pytest.param(
            two("scipy", ("1.9", HOME), ("1.14", ENV)),
            Python(kind="venv", user_site_enabled=False),
            {},
            id="a venv without the user site",
        ),
        pytest.param(
            two("numpy", ("2.1", HOME), ("1.21", "/usr/lib/python3/dist-packages")),
            Python(kind="system", user_site_enabled=True),
            {},
            id="pip --user over the distribution's own Python",
        ),
        pytest.param(
            two(
                "jinja2",
                ("3.1", "/usr/local/lib/python3.10/dist-packages"),
                ("3.0", "/usr/lib/python3/dist-packages"),
            ),
            Python(kind="system"),
            {},
            id="pip over apt in an image",
        ),
        pytest.param(
            two("tokenizers", ("0.13", ENV), ("0.19", ENV)),
            CONDA,
            {"duplicate-distribution-metadata": "warn"},
            id="two dist-info in one folder",
        ),
        pytest.param(two("tokenizers", ("0.19", ENV), ("0.19", ENV)), CONDA, {}, id="the same version twice"),
    ],
)
def test_of_two_copies_only_a_hidden_or_stale_one_is_trouble(
    packages: Packages, python: Python, expected: dict[str, str]
) -> None:
    assert loud(packages=packages, python=python) == expected


def test_the_user_site_is_out_of_the_way_when_the_variable_says_so() -> None:
    shadowed = two("torch", ("2.6.0", HOME), ("2.8.0", ENV))
    assert loud(packages=shadowed, python=CONDA, environment=variables(PYTHONNOUSERSITE="1")) == {}


def test_two_copies_of_torch_in_an_overlay_are_a_note() -> None:
    overlay = two(
        "torch", ("2.8.0", "/venv/lib/python3.12/site-packages"), ("2.6.0", "/usr/lib/python3/dist-packages")
    )
    assert said(packages=overlay, python=Python(kind="venv", user_site_enabled=False)) == {
        "duplicate-distribution-metadata": "note"
    }


def test_the_shadowing_torch_is_the_cause_and_its_mismatch_the_symptom() -> None:
    shadowed = two("torch", ("2.6.0", HOME), ("2.8.0", ENV))
    items = (*shadowed.items, Distribution(name="torchvision", version="0.23.0", location=ENV))
    given = findings(packages=Packages(items=items, complete=False), python=CONDA, torch=torch("2.6.0+cu124"))
    cause = next(item for item in given if item.id == "user-site-shadows-env")
    assert "torchvision-torch-mismatch" in cause.cause_of
    assert [item.id for item in given].index("user-site-shadows-env") == 0


def test_a_torch_that_was_cut_off_is_broken_however_that_shows() -> None:
    missing = Packages(
        items=(Distribution(name="torch", version="2.8.0", missing_files=("torch/lib/libtorch_cuda.so",)),)
    )
    assert loud(packages=missing, torch=torch("2.8.0+cu128")) == {"torch-install-broken": "fail"}
    broken = Torch(
        version="2.8.0+cu128", cuda="12.8", broken="torch/_C.cpython-311-x86_64-linux-gnu.so is missing"
    )
    assert loud(torch=broken) == {"torch-install-broken": "fail"}
    gone = Packages(leftovers=("~orch-2.6.0.dist-info", "~orch"))
    assert loud(packages=gone, torch=Reading(status="absent")) == {"torch-install-broken": "fail"}
    hollow = Packages(leftovers=("/venv/lib/python3.11/site-packages/torch",))
    assert loud(packages=hollow, torch=Reading(status="absent")) == {"torch-install-broken": "fail"}


def test_an_environment_without_torch_is_told_where_to_get_one() -> None:
    assert said(packages=Packages(), torch=Reading(status="absent")) == {"torch-not-installed": "note"}
    assert said(packages=Packages(), torch=Reading(status="failed")) == {}


def test_leftovers_beside_a_whole_torch_are_a_note() -> None:
    whole = Packages(items=(Distribution(name="torch", version="2.8.0"),), leftovers=("~orch", "~umpy"))
    assert said(packages=whole, torch=torch("2.8.0+cu128")) == {"leftover-of-an-install": "note"}


def test_files_missing_from_another_distribution_are_a_warning() -> None:
    cut = Packages(
        items=(
            Distribution(
                name="tokenizers", version="0.22.0", missing_files=("tokenizers/tokenizers.abi3.so",)
            ),
        )
    )
    assert loud(packages=cut) == {"distribution-files-missing": "warn"}


def test_an_interpreter_that_does_not_run_is_a_failure_and_one_that_does_is_not() -> None:
    dead = Python(executable="/v/bin/python", unread={"executable": t("its link leads nowhere")})
    assert said(python=dead)["python-cannot-run"] == "fail"
    assert "python-cannot-run" not in said(python=Python(executable="/v/bin/python"))


PINS = (
    'nvidia-cudnn-cu12==9.1.0.70; platform_system == "Linux"',
    'nvidia-nccl-cu12==2.21.5; platform_system == "Linux"',
    'nvidia-cuda-runtime-cu12==12.4.127; platform_system == "Linux"',
)


def lost(names: str, *items: Distribution, version: str = "2.6.0+cu124") -> Finding:
    own = Distribution(name="torch", version=version, requires_dist=PINS)
    return the(
        "torch-install-broken",
        torch=torch(version, broken=f"not found: {names}"),
        packages=Packages(items=(own, *items), complete=False),
    )


@pytest.mark.parametrize(
    ("names", "wheels"),
    [
        pytest.param("libcudnn.so.9", "nvidia-cudnn-cu12==9.1.0.70", id="one"),
        pytest.param("libnccl.so.2, libcudart.so.12", "nvidia-nccl-cu12==2.21.5 nvidia-cuda-runtime-cu12==12.4.127", id="two"),
    ],
)  # fmt: skip
def test_a_lost_library_is_brought_back_by_its_wheel_and_torch_stays(names: str, wheels: str) -> None:
    advice = str(lost(names).advice)
    assert (
        f"install --force-reinstall --no-deps {wheels} --index-url https://download.pytorch.org/whl/cu124"
        in advice
    )
    assert "uninstall" not in advice
    assert "--index-url" not in str(lost(names, version="2.6.0").advice), "PyPI's build takes PyPI's wheels"


def test_a_library_of_no_known_wheel_has_pip_fill_the_gap() -> None:
    advice = str(lost("libcudnn.so.9, libmystery.so.1").advice)
    assert advice.endswith("install torch==2.6.0+cu124 --index-url https://download.pytorch.org/whl/cu124")


def test_the_torn_wheel_is_the_symptom_another_torn_package_is_not() -> None:
    torn = Distribution(name="nvidia-cudnn-cu12", version="9.1.0.70", missing_files=("libcudnn.so.9",))
    assert "distribution-files-missing" in lost("libcudnn.so.9", torn).cause_of
    other = Distribution(name="scipy", version="1.14", missing_files=("scipy/_lib.so",))
    assert "distribution-files-missing" not in lost("libcudnn.so.9", torn, other).cause_of


def test_a_torch_of_another_python_is_not_called_incomplete() -> None:
    found = the("torch-install-broken", torch=torch("2.6.0", broken="built for another Python: _C.cpython-311-x86_64-linux-gnu.so, not for 3.12"))  # fmt: skip
    assert "for another Python (_C.cpython-311-x86_64-linux-gnu.so): Python 3.12" in str(found.title)
