"""DeepSpeed's own JSON under ``doctor lint``: what it refuses, what it passes over, and files with nothing wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from doctor.lint import lint_source
from doctor.tables import load
from runner.deepspeed_keys import OTHER_NUMBERS, READ, READ_OF_ZERO, TUNING, UNUSED, UNUSED_OF_ZERO
from tests.commands_run import doctor
from tests.runner.test_config_files_of_others import DEEPSPEED

WRONG: dict[str, tuple[dict[str, Any], str, str]] = {
    "a batch that no number of processes makes": (
        {"train_batch_size": 10, "train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 1}, "fail", "train_batch_size"),
    "two precisions": ({"fp16": {"enabled": True}, "bf16": {"enabled": True}}, "fail", "fp16"),
    "a misspelled key of ZeRO's": ({"zero_optimization": {"stage": 2, "overlap_com": True}}, "fail", "overlap_com"),
    "a misspelled key that nobody looks at": ({"gradient_cliping": 1.0}, "warn", "gradient_cliping"),
    "weights away at stage 2": ({"zero_optimization": {"stage": 2, "offload_param": {"device": "cpu"}}}, "warn", "offload_param"),
    "a disk without a path": ({"zero_optimization": {"stage": 3, "offload_optimizer": {"device": "nvme"}}}, "fail", "offload_optimizer"),
    "stage 4": ({"zero_optimization": {"stage": 4}}, "fail", "stage"),
}  # fmt: skip


@pytest.mark.parametrize(("content", "level", "key"), WRONG.values(), ids=WRONG.keys())
def test_what_is_wrong_stands_at_its_line(content: dict[str, Any], level: str, key: str) -> None:
    source = json.dumps({"zero_optimization": {"stage": 2}, **content}, indent=1)
    (found,) = lint_source(source, path="ds.json")
    line = next(number for number, text in enumerate(source.splitlines(), 1) if f'"{key}"' in text)
    assert (found.id, found.level, found.subject) == (
        "deepspeed-config-wrong",
        level,
        f"ds.json:{line} {key}",
    )


RIGHT: dict[str, dict[str, Any]] = {
    "the Trainer's": {
        "bf16": {"enabled": "auto"}, "train_batch_size": "auto", "train_micro_batch_size_per_gpu": "auto",
        "gradient_accumulation_steps": "auto", "gradient_clipping": "auto",
        "zero_optimization": {"stage": 3, "offload_param": {"device": "cpu"}, "stage3_prefetch_bucket_size": "auto"},
    },
    "names without stage3_": {"zero_optimization": {"stage": 3, "prefetch_bucket_size": 1e7, "max_live_parameters": 1e9}},
    "two of three batch sizes": {"train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 2},
    "a disk with a path": {"zero_optimization": {"stage": 3, "offload_param": {"device": "nvme", "nvme_path": "/local"}}},
    "a key of another day": {"zero_optimization": {"stage": 1}, "something_new": {"enabled": True}},
    "another program's file": {"train_batch_size": 10, "compilerOptions": {}},
}  # fmt: skip


@pytest.mark.parametrize("content", RIGHT.values(), ids=RIGHT.keys())
def test_nothing_is_said_of_what_is_right(content: dict[str, Any]) -> None:
    assert lint_source(json.dumps(content, indent=1), path="ds.json") == []


HANDED_OUT = [(name, content) for name, (content, _, _) in DEEPSPEED.items()]


@pytest.mark.parametrize(("name", "content"), HANDED_OUT, ids=[name for name, _ in HANDED_OUT])
def test_files_as_projects_hand_them_out_raise_no_alarm(name: str, content: dict[str, Any]) -> None:
    found = lint_source(json.dumps(content, indent=1), path="ds.json")
    wanted = ["warn"] if name == "weights on the host at stage 2" else []
    assert [one.level for one in found] == wanted, found


def test_a_key_that_stands_there_twice_is_refused_by_deepspeed() -> None:
    source = '{\n"zero_optimization": {\n"stage": 2,\n"stage": 3}}'
    (found,) = lint_source(source, path="ds.json")
    assert found.level == "fail" and found.subject == "ds.json:3 stage"


def test_a_torn_file_is_unknown_and_never_fine() -> None:
    (found,) = lint_source('{"zero_optimization": ', path="ds.json")
    assert found.level == "unknown"


def test_every_key_that_the_runner_reads_is_one_of_deepspeeds() -> None:
    keys = load("deepspeed_keys")
    assert {*TUNING, *UNUSED_OF_ZERO, *READ_OF_ZERO} <= set(keys["zero"])
    assert {*READ, *UNUSED, *OTHER_NUMBERS} - {"zenflow"} == set(keys["beside"]), (
        "none is passed over as unknown"
    )


def test_on_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "ds.json").write_text('{"gradient_cliping": 1.0, "zero_optimization": {"stage": 4}}')
    done = doctor("lint", "ds.json", cwd=tmp_path)
    assert done.returncode == 1 and "ds.json:1 stage" in done.stdout and "gradient_clipping" in done.stdout
