"""Variables that slow a run down, are not read, or lead nowhere."""

from __future__ import annotations

import pytest

from doctor.model import Distribution, Environment, Packages, Python
from tests.checks.judged import packages, said, the, torch, variables


@pytest.mark.parametrize(
    ("environment", "level"),
    [
        pytest.param({"CUDA_LAUNCH_BLOCKING": "1"}, "warn", id="launch blocking"),
        pytest.param({"CUDA_LAUNCH_BLOCKING": "0"}, None, id="switched off"),
        pytest.param({"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}, "warn", id="no caching"),
        pytest.param({"TORCH_DISTRIBUTED_DEBUG": "DETAIL"}, "note", id="every collective checked"),
        pytest.param({"TORCH_DISTRIBUTED_DEBUG": "INFO"}, None, id="a little talk"),
        pytest.param({"NVIDIA_TF32_OVERRIDE": "0"}, "note", id="TF32 forced off"),
        pytest.param({"NCCL_DEBUG": "WARN"}, None, id="warnings of NCCL"),
        pytest.param({"PATH": "/usr/bin"}, None, id="nothing of note"),
    ],
)
def test_debugging_left_on(environment: dict[str, str], level: str | None) -> None:
    assert said(environment=variables(**environment)).get("debug-variable-left-on") == level


@pytest.mark.parametrize(
    ("torch_version", "environment", "found"),
    [
        pytest.param(
            "2.8.0",
            {"PYTORCH_ALLOC_CONF": "expandable_segments:True"},
            True,
            id="2.8 does not know the new name",
        ),
        pytest.param(
            "2.9.1", {"PYTORCH_ALLOC_CONF": "expandable_segments:True"}, True, id="2.9 ignores it on CUDA"
        ),
        pytest.param(
            "2.9.1", {"PYTORCH_ALLOC_CONF": "max_split_size_mb:128"}, False, id="2.9 reads the rest of it"
        ),
        pytest.param("2.10.0", {"PYTORCH_ALLOC_CONF": "expandable_segments:True"}, False, id="2.10 reads it"),
        pytest.param(
            "2.8.0",
            {
                "PYTORCH_ALLOC_CONF": "expandable_segments:True",
                "PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True",
            },
            False,
            id="both names",
        ),
        pytest.param(
            "2.8.0", {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments=True"}, True, id="an equals sign"
        ),
        pytest.param(
            "2.8.0",
            {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True,max_split_size_mb:64"},
            False,
            id="as it should be",
        ),
        pytest.param(
            "", {"PYTORCH_ALLOC_CONF": "expandable_segments:True"}, False, id="a torch nobody could read"
        ),
    ],
)
def test_allocator_settings(torch_version: str, environment: dict[str, str], found: bool) -> None:
    given = said(torch=torch(torch_version), environment=variables(**environment))
    assert ("allocator-setting-without-effect" in given) is found


def test_an_allocator_setting_is_repaired_in_the_advice() -> None:
    wrong = variables(PYTORCH_CUDA_ALLOC_CONF="expandable_segments=True, max_split_size_mb:64")
    advice = str(the("allocator-setting-without-effect", environment=wrong, torch=torch("2.8.0")).advice)
    assert "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True,max_split_size_mb:64" in advice


HUB = packages(huggingface_hub="0.34.4", hf_xet="1.1.5")


@pytest.mark.parametrize(
    ("environment", "installed", "expected"),
    [
        pytest.param(
            {"HF_ENDPOINT": "hf-mirror.com"}, HUB, {"hub-endpoint-invalid": "warn"}, id="no https://"
        ),
        pytest.param(
            {"HF_ENDPOINT": "https://hf-mirror.com"},
            HUB,
            {"mirror-with-xet": "note"},
            id="a mirror beside Xet",
        ),
        pytest.param(
            {"HF_ENDPOINT": "https://hf-mirror.com", "HF_HUB_DISABLE_XET": "1"},
            HUB,
            {},
            id="Xet switched off",
        ),
        pytest.param(
            {"HF_ENDPOINT": "https://hf-mirror.com"},
            packages(huggingface_hub="0.26.0"),
            {},
            id="no Xet installed",
        ),
        pytest.param({"HF_ENDPOINT": "https://huggingface.co"}, HUB, {}, id="the hub itself"),
        pytest.param(
            {"HF_HUB_ENABLE_HF_TRANSFER": "1"},
            packages(True, huggingface_hub="0.34.4"),
            {"hf-transfer-missing": "fail"},
            id="hf_transfer asked for and missing",
        ),
        pytest.param(
            {"HF_HUB_ENABLE_HF_TRANSFER": "1"},
            packages(True, huggingface_hub="1.2.0"),
            {"hf-transfer-missing": "note"},
            id="hub 1.x does not read it",
        ),
        pytest.param(
            {"HF_HUB_ENABLE_HF_TRANSFER": "1"},
            packages(huggingface_hub="0.34.4"),
            {},
            id="an excerpt does not tell",
        ),
        pytest.param({"HF_HUB_OFFLINE": "1"}, HUB, {"hub-offline": "note"}, id="offline"),
        pytest.param({}, HUB, {}, id="nothing set"),
    ],
)
def test_hub_variables(environment: dict[str, str], installed: Packages, expected: dict[str, str]) -> None:
    assert said(environment=variables(**environment), packages=installed) == expected


def test_pythonpath_with_another_environments_packages() -> None:
    folder = "/opt/conda/lib/python3.10/site-packages"
    path: Environment = variables(PYTHONPATH=folder)
    mixed = Packages(items=(Distribution(name="numpy", version="2.1", location=folder),))
    venv = Python(prefix="/root/venv")
    assert said(environment=path, python=venv, packages=mixed) == {"pythonpath-with-other-packages": "warn"}
    assert said(environment=path, python=venv) == {"pythonpath-with-other-packages": "note"}
    assert said(environment=path, python=Python(prefix="/opt/conda")) == {}
    assert said(environment=variables(PYTHONPATH="/root/project"), python=venv) == {}


def test_wandb_disabled_is_not_read_by_transformers_5() -> None:
    off = variables(WANDB_DISABLED="true")
    assert said(environment=off, packages=packages(transformers="5.2.0")) == {
        "tracker-variable-not-read": "note"
    }
    assert said(environment=off, packages=packages(transformers="4.57.6")) == {}
