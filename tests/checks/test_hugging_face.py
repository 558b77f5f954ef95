"""transformers and its neighbours: floors that only the code knows, ranges checked on import, silent changes."""

from __future__ import annotations

import pytest

from doctor.model import Data, Distribution, Incident, InspectedFile, Packages, Torch, Workload
from tests.checks.judged import loud, packages, said, the, torch, variables

TOO_OLD = "transformers-torch-too-old"
RANGE = "transformers-requirement-out-of-range"


@pytest.mark.parametrize(
    ("transformers", "torch_version", "expected"),
    [
        pytest.param("5.2.0", "2.3.0+cu121", {TOO_OLD: "fail"}, id="5.2 wants 2.4"),
        pytest.param(
            "5.0.0", "2.3.0+cu121", {"torch-load-blocked-by-transformers": "warn"}, id="5.0 wants 2.2 only"
        ),
        pytest.param("4.57.6", "2.0.1+cu118", {TOO_OLD: "fail"}, id="4.57 wants 2.1"),
        pytest.param(
            "4.57.6",
            "2.1.2",
            {"torch-load-blocked-by-transformers": "warn"},
            id="4.57 with 2.1, whatever its extra says",
        ),
        pytest.param("4.51.3", "2.0.1+cu118", {TOO_OLD: "fail"}, id="4.51 does not import with 2.0"),
        pytest.param("4.49.0", "2.0.1+cu118", {}, id="4.49 does"),
        pytest.param("5.24.0", "2.6.0a0+df5bbc09d1.nv24.11", {}, id="an image builder's 2.6 counts as 2.6"),
        pytest.param("5.24.0", "2.5.1", {TOO_OLD: "fail"}, id="5.24 wants 2.6"),
        pytest.param(
            "5.40.0",
            "2.5.1",
            {TOO_OLD: "warn"},
            id="a newer release asks for no less, said with less certainty",
        ),
        pytest.param("5.40.0", "2.9.1", {}, id="a newer release with a newer torch"),
        pytest.param("4.44.2", "1.13.1", {}, id="no floor in 4.44"),
    ],
)
def test_transformers_switches_an_old_torch_off(
    transformers: str, torch_version: str, expected: dict[str, str]
) -> None:
    assert loud(packages=packages(transformers=transformers), torch=torch(torch_version)) == expected


def test_the_floor_read_from_the_installed_files_goes_before_our_table() -> None:
    installed, own = packages(transformers="5.2.0"), Torch(version="2.3.0", transformers_minimum="2.2")
    assert TOO_OLD not in loud(packages=installed, torch=own)
    assert TOO_OLD in loud(packages=installed, torch=torch("2.3.0"))


def test_the_way_back_is_the_newest_transformers_that_takes_this_torch() -> None:
    found = the(TOO_OLD, packages=packages(transformers="5.2.0"), torch=torch("2.3.0+cu121"))
    assert "'transformers<5.1' torch==2.3.0" in str(found.advice)


@pytest.mark.parametrize(
    ("versions", "expected"),
    [
        pytest.param(
            {"transformers": "4.57.6", "huggingface_hub": "1.2.0"},
            {RANGE: "fail"},
            id="hub 1.x with transformers 4",
        ),
        pytest.param(
            {"transformers": "4.57.6", "huggingface_hub": "0.36.0"}, {}, id="hub 0.x with transformers 4"
        ),
        pytest.param(
            {"transformers": "5.0.0", "huggingface_hub": "0.36.0"},
            {RANGE: "fail"},
            id="hub 0.x with transformers 5",
        ),
        pytest.param({"transformers": "5.18.0", "huggingface_hub": "2.4.0"}, {}, id="hub 2 from 5.18"),
        pytest.param(
            {"transformers": "5.17.0", "huggingface_hub": "2.4.0"}, {RANGE: "fail"}, id="not yet in 5.17"
        ),
        pytest.param(
            {"transformers": "4.30.2", "huggingface_hub": "2.4.0"},
            {},
            id="4.30 does not check the hub on import",
        ),
        pytest.param(
            {"transformers": "4.49.0", "tokenizers": "0.19.1"}, {RANGE: "fail"}, id="tokenizers too old"
        ),
        pytest.param({"transformers": "4.49.0", "tokenizers": "0.21.0"}, {}, id="tokenizers in range"),
        pytest.param(
            {"transformers": "4.44.0", "tokenizers": "0.20.3"},
            {RANGE: "warn"},
            id="another patch than the table's, neighbours differ",
        ),
        pytest.param(
            {"transformers": "4.50.0", "tokenizers": "0.15.2"},
            {RANGE: "fail"},
            id="another patch, all neighbours agree",
        ),
        pytest.param(
            {"transformers": "4.42.4", "numpy": "2.0.1"}, {RANGE: "fail"}, id="4.42 excludes NumPy 2"
        ),
        pytest.param({"transformers": "9.1.0", "tokenizers": "2.0.0"}, {}, id="a future that no table knows"),
    ],
)
def test_ranges_that_are_checked_on_import(versions: dict[str, str], expected: dict[str, str]) -> None:
    assert loud(packages=packages(**versions)) == expected


def test_the_installed_metadata_goes_before_our_table() -> None:
    def installed(tokenizers: str) -> Packages:
        own = Distribution(
            name="transformers",
            version="4.49.0",
            requires_dist=("tokenizers>=0.30,<0.31", "torch>=2; extra == 'torch'"),
        )
        return Packages(items=(own, Distribution(name="tokenizers", version=tokenizers)), complete=False)

    assert loud(packages=installed("0.30.1")) == {}
    assert loud(packages=installed("0.21.0")) == {RANGE: "fail"}


def test_pickled_weights_with_an_old_torch_fail_where_one_is_certainly_loaded() -> None:
    pair = {"packages": packages(transformers="4.55.4"), "torch": torch("2.4.0+cu121")}
    resumes = Workload(training_args={"resume_from_checkpoint": "out/checkpoint-500"})
    pickled = Data(files=(InspectedFile(path="bert/pytorch_model.bin", kind="checkpoint"),))
    safe = Data(files=(InspectedFile(path="bert/model.safetensors", kind="checkpoint"),))
    assert loud(**pair, workload=resumes) == {"torch-load-blocked-by-transformers": "fail"}
    assert loud(**pair, data=pickled) == {"torch-load-blocked-by-transformers": "fail"}
    assert loud(**pair, data=safe) == {}
    assert loud(**pair) == {"torch-load-blocked-by-transformers": "warn"}


def test_pickled_weights_with_an_old_torch_are_a_warning() -> None:
    assert said(packages=packages(transformers="4.55.4"), torch=torch("2.4.0+cu121")) == {
        "torch-load-blocked-by-transformers": "warn"
    }
    assert said(packages=packages(transformers="4.51.3"), torch=torch("2.4.0+cu121")) == {}


def test_a_cache_variable_that_transformers_5_does_not_read() -> None:
    moved, both = (
        variables(TRANSFORMERS_CACHE="/data/hf"),
        variables(TRANSFORMERS_CACHE="/data/hf", HF_HOME="/data/hf"),
    )
    assert loud(packages=packages(transformers="5.2.0"), environment=moved) == {
        "cache-variable-not-read": "warn"
    }
    assert loud(packages=packages(transformers="4.57.6"), environment=moved) == {}
    assert loud(packages=packages(transformers="5.2.0"), environment=both) == {}


def test_silent_defaults_are_notes_for_a_run_that_leans_on_them() -> None:
    new = packages(transformers="5.2.0")
    assert "silent-defaults-of-transformers-5" in said(
        packages=new, workload=Workload(training_args={"fp16": True})
    )
    assert "silent-defaults-of-transformers-5" not in said(
        packages=new, workload=Workload(training_args={"report_to": "none"})
    )


def test_loading_scripts_matter_to_a_run_that_uses_datasets() -> None:
    uses = Workload(imports=("datasets",))
    refused = Incident(log_lines=("RuntimeError: Dataset scripts are no longer supported, but found x.py",))
    assert said(packages=packages(datasets="4.0.0"), workload=uses) == {
        "datasets-refuses-loading-scripts": "note"
    }
    assert said(packages=packages(datasets="4.0.0"), incident=refused) == {
        "datasets-refuses-loading-scripts": "fail"
    }
    assert said(packages=packages(datasets="3.6.0"), workload=uses) == {}
    assert said(packages=packages(datasets="4.0.0")) == {}
