"""Which values of the session's variables are taken, and which are not."""

from __future__ import annotations

from pathlib import Path

import pytest

from doctor.probes import environment
from doctor.redact import is_allowed
from tests.probes.roots import context_of


def test_only_allowed_values_are_taken_the_other_names_are_kept() -> None:
    environ = {
        "CUDA_VISIBLE_DEVICES": "0,1",
        "HF_TOKEN": "hf_abc",
        "MY_SECRET": "s",
        "LD_LIBRARY_PATH": "/usr/lib:",
    }
    reading = environment.probe(context_of(Path("/"), environ))
    assert reading.value is not None
    assert reading.value.variables == {"CUDA_VISIBLE_DEVICES": "0,1", "LD_LIBRARY_PATH": "/usr/lib:"}
    assert reading.value.names == ("HF_TOKEN", "MY_SECRET")


def test_a_proxys_password_stays_behind_even_here() -> None:
    found = environment.take_variables({"https_proxy": "http://me:pw@proxy.example:8080"})
    assert found.variables == {"https_proxy": "http://proxy.example:8080"}


def test_an_odd_name_and_value_can_be_stored() -> None:
    found = environment.take_variables({"LANG": "zh\udcff", "A\udcfeB": "x"})
    assert found.variables == {"LANG": "zh\\xff"} and found.names == ("A\\xfeB",)


@pytest.mark.parametrize(
    ("name", "allowed"),
    [
        ("NCCL_P2P_DISABLE", True), ("PYTORCH_ALLOC_CONF", True), ("TOKENIZERS_PARALLELISM", True), ("HF_HOME", True),
        ("OMP_NUM_THREADS", True), ("NCCL_IB_PKEY", True), ("LC_ALL", True), ("RUNPOD_GPU_COUNT", True),
        ("HF_TOKEN", False), ("HUGGING_FACE_HUB_TOKEN", False), ("WANDB_API_KEY", False), ("RUNPOD_API_KEY", False),
        ("AWS_SECRET_ACCESS_KEY", False), ("CUDA_LICENSE_KEY", False), ("TORCH_AUTH_TOKEN", False), ("USER", False),
        ("HOSTNAME", False), ("SSH_CONNECTION", False), ("DATABASE_URL", False), ("cuda_visible_devices", False),
    ],
)  # fmt: skip
def test_the_allow_list(name: str, allowed: bool) -> None:
    assert is_allowed(name) is allowed
