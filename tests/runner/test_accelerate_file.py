"""A file of ``accelerate config`` that a profile names: laid under it with the DeepSpeed file it leads to, or refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from runner.accelerate_file import accelerate_file
from runner.deepspeed_file import deepspeed_file
from runner.profile import Profile, ProfileError, load_profile
from tests.runner.test_config_files import write

ACCELERATE = """\
compute_environment: LOCAL_MACHINE
debug: false
deepspeed_config:
  deepspeed_config_file: ds.json
  zero3_init_flag: false
distributed_type: DEEPSPEED
downcast_bf16: 'no'
machine_rank: 0
main_training_function: main
num_machines: 1
num_processes: 2
rdzv_backend: static
same_network: true
use_cpu: false
"""


def accelerate(folder: Path, text: str, *overrides: str) -> Profile:
    (folder / "accelerate.yaml").write_text(text)
    return load_profile(
        folder / "tiny.toml", [f"parallel.accelerate_config={folder / 'accelerate.yaml'}", *overrides]
    )


def test_an_accelerate_file_leads_to_the_deepspeed_file_it_names(tmp_path: Path) -> None:
    write(tmp_path, {"zero_optimization": {"stage": 3}})
    profile = accelerate(tmp_path, ACCELERATE)
    assert (profile.parallel.strategy, profile.parallel.zero_stage, profile.parallel.processes) == (
        "deepspeed",
        3,
        2,
    )


def test_an_accelerate_file_for_fsdp(tmp_path: Path) -> None:
    write(tmp_path, {})
    text = (
        "distributed_type: FSDP\nnum_processes: 4\nmixed_precision: 'no'\nfsdp_config:\n  fsdp_sharding_strategy: FULL_SHARD\n"
        "  fsdp_offload_params: true\n  fsdp_version: 2\n  fsdp_state_dict_type: SHARDED_STATE_DICT\n"
    )
    profile = accelerate(tmp_path, text)
    assert (profile.parallel.strategy, profile.train.offload, profile.parallel.processes) == (
        "fsdp",
        "parameters",
        4,
    )
    assert "accelerate.yaml: fsdp_config.fsdp_state_dict_type" in profile.parallel.unused


NOT_HERE = {
    "another way to share": ("distributed_type: MEGATRON_LM\n", "distributed_type"),
    "fp8": ("distributed_type: MULTI_GPU\nmixed_precision: fp8\n", "mixed_precision"),
    "a precision that the profile contradicts": (
        "distributed_type: MULTI_GPU\nmixed_precision: bf16\n",
        "contradicts accelerate.yaml",
    ),
    "not YAML": ("a: [", "cannot be understood"),
}


@pytest.mark.parametrize(("text", "named"), NOT_HERE.values(), ids=NOT_HERE.keys())
def test_what_accelerate_does_and_this_does_not(tmp_path: Path, text: str, named: str) -> None:
    write(tmp_path, {})
    with pytest.raises(ProfileError, match=named):
        accelerate(tmp_path, text)


def test_the_readers_take_nothing_from_this_machine() -> None:
    assert not deepspeed_file({"zero_optimization": {"stage": 1}}).problems
    found, other = accelerate_file({"distributed_type": "NO", "num_processes": 1})
    assert not found.problems and not found.said and not other
