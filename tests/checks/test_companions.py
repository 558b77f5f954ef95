"""Pairs of packages: found with the right level, their neighbours silent."""

from __future__ import annotations

import pytest

from doctor.model import Workload
from tests.checks.judged import findings, loud, packages, said, the, torch

MISMATCH = "accelerate-transformers-mismatch"


@pytest.mark.parametrize(
    ("versions", "expected"),
    [
        pytest.param(
            {"transformers": "4.37.2", "accelerate": "1.1.1"},
            {MISMATCH: "fail"},
            id="dispatch_batches is gone",
        ),
        pytest.param(
            {"transformers": "4.39.3", "accelerate": "1.0.1"},
            {MISMATCH: "fail"},
            id="4.39 passes it in a dict",
        ),
        pytest.param({"transformers": "4.40.2", "accelerate": "1.0.1"}, {}, id="4.40 no longer passes it"),
        pytest.param({"transformers": "4.31.0", "accelerate": "1.0.1"}, {}, id="4.31 did not pass it yet"),
        pytest.param(
            {"transformers": "4.38.2", "accelerate": "0.25.0"},
            {MISMATCH: "fail"},
            id="use_seedable_sampler is missing",
        ),
        pytest.param(
            {"transformers": "4.44.2", "accelerate": "0.25.0"}, {MISMATCH: "fail"}, id="and up to 4.44"
        ),
        pytest.param(
            {"transformers": "4.44.2", "accelerate": "0.34.2"}, {}, id="4.44 with a later accelerate"
        ),
        pytest.param(
            {"transformers": "4.55.4", "accelerate": "1.2.1"},
            {MISMATCH: "fail"},
            id="keep_torch_compile is missing",
        ),
        pytest.param({"transformers": "4.55.4", "accelerate": "1.3.0"}, {}, id="1.3 has it"),
        pytest.param(
            {"transformers": "5.2.0", "accelerate": "1.0.1"},
            {MISMATCH: "fail"},
            id="below the Trainer's own floor",
        ),
        pytest.param({"transformers": "5.2.0", "accelerate": "1.12.0"}, {}, id="above it"),
        pytest.param({"transformers": "6.3.0", "accelerate": "3.0.0"}, {}, id="a future that no table knows"),
        pytest.param({"transformers": "4.37.2"}, {}, id="no accelerate is unknown, not missing"),
        pytest.param(
            {"peft": "0.14.0", "transformers": "4.42.4"},
            {"peft-transformers-mismatch": "fail"},
            id="peft wants EncoderDecoderCache",
        ),
        pytest.param({"peft": "0.13.2", "transformers": "4.42.4"}, {}, id="peft 0.13 does not"),
        pytest.param(
            {"peft": "0.17.1", "transformers": "5.0.0"},
            {"peft-transformers-mismatch": "fail"},
            id="peft wants HybridCache",
        ),
        pytest.param({"peft": "0.18.0", "transformers": "5.0.0"}, {}, id="peft 0.18 does not"),
        pytest.param(
            {"peft": "0.15.2", "accelerate": "0.31.0"},
            {"peft-accelerate-mismatch": "fail"},
            id="peft wants clear_device_cache",
        ),
        pytest.param(
            {"setfit": "1.0.3", "transformers": "4.41.2"},
            {"dependent-library-too-old": "fail"},
            id="setfit without eval_strategy",
        ),
        pytest.param(
            {"setfit": "1.0.3", "transformers": "4.40.2"}, {}, id="setfit with the transformers of its time"
        ),
        pytest.param(
            {"deepspeed": "0.14.2", "numpy": "2.0.1"},
            {"dependent-library-too-old": "fail"},
            id="deepspeed before NumPy 2",
        ),
        pytest.param({"deepspeed": "0.14.2", "numpy": "1.26.4"}, {}, id="deepspeed with NumPy 1"),
        pytest.param(
            {"deepspeed": "0.12.6", "torch": "2.4.0"},
            {"dependent-library-too-old": "warn"},
            id="deepspeed before torch 2.3, by report only",
        ),
        pytest.param(
            {"sentence_transformers": "2.2.2", "huggingface_hub": "0.26.0"},
            {"dependent-library-too-old": "fail"},
            id="cached_download is gone",
        ),
        pytest.param(
            {"sentence_transformers": "2.3.0", "huggingface_hub": "0.26.0"},
            {},
            id="sentence-transformers 2.3 does not ask for it",
        ),
        pytest.param(
            {"datasets": "2.14.5", "fsspec": "2023.10.0"},
            {"dependent-library-too-old": "fail"},
            id="fsspec names two protocols",
        ),
        pytest.param({"datasets": "2.14.6", "fsspec": "2023.10.0"}, {}, id="datasets 2.14.6 copes"),
        pytest.param(
            {"pandas": "2.2.1", "numpy": "2.2.6"},
            {"dependent-library-too-old": "fail"},
            id="pandas built for NumPy 1",
        ),
        pytest.param({"pandas": "2.2.2", "numpy": "2.2.6"}, {}, id="the first pandas built for both"),
        pytest.param({"pandas": "1.5.3", "numpy": "1.26.4"}, {}, id="an old pandas with NumPy 1"),
        pytest.param(
            {"pyarrow": "15.0.2", "numpy": "2.0.0"},
            {"dependent-library-too-old": "fail"},
            id="pyarrow, and datasets with it",
        ),
        pytest.param(
            {"torchtext": "0.18.0", "torch": "2.4.0"},
            {"dependent-library-too-old": "warn"},
            id="torchtext ended with torch 2.3",
        ),
        pytest.param({"torchtext": "0.18.0", "torch": "2.3.0"}, {}, id="torchtext with its torch"),
        pytest.param(
            {"deepspeed": "0.16.9", "torch": "2.12.0"},
            {"dependent-library-too-old": "warn"},
            id="ops that do not compile",
        ),
    ],
)
def test_pairs_that_fail_together_are_named_and_their_neighbours_are_not(
    versions: dict[str, str], expected: dict[str, str]
) -> None:
    assert loud(packages=packages(**versions)) == expected


@pytest.mark.parametrize(
    ("steps", "level"),
    [
        pytest.param(4, "warn", id="with accumulation"),
        pytest.param(None, "note", id="unknown"),
        pytest.param(1, "note", id="without"),
    ],
)
def test_the_defect_at_an_epoch_boundary_needs_accumulation(steps: int | None, level: str) -> None:
    run = Workload(training_args={"gradient_accumulation_steps": steps, "fp16": True})
    given = said(packages=packages(transformers="4.30.2", accelerate="0.20.3"), workload=run)
    assert given[MISMATCH] == level


@pytest.mark.parametrize(
    ("torch_version", "numpy", "expected"),
    [
        pytest.param("2.2.2+cu121", "2.0.0", {"numpy2-torch-abi": "fail"}, id="built for NumPy 1"),
        pytest.param("1.13.1", "2.1.3", {"numpy2-torch-abi": "fail"}, id="much older"),
        pytest.param("2.3.0+cu121", "2.0.0", {}, id="2.3 takes both"),
        pytest.param(
            "2.3.0a0+40ec155e58.nv24.03", "2.0.0", {}, id="an image builder's own 2.3 is not called older"
        ),
        pytest.param("2.2.2", "1.26.4", {}, id="NumPy 1"),
        pytest.param("unknown", "2.0.0", {}, id="a version that cannot be read says nothing"),
    ],
)
def test_numpy_2_needs_torch_2_3(torch_version: str, numpy: str, expected: dict[str, str]) -> None:
    assert loud(torch=torch(torch_version), packages=packages(numpy=numpy)) == expected


def test_one_pair_is_said_once_however_many_reasons_it_has() -> None:
    both = packages(deepspeed="0.7.0", torch="2.3.0")
    assert len([item for item in findings(packages=both) if item.id == "dependent-library-too-old"]) == 1


def test_advice_names_the_judged_interpreter_and_keeps_its_torch() -> None:
    from doctor.model import Python

    found = the(
        MISMATCH,
        packages=packages(transformers="4.37.2", accelerate="1.1.1"),
        torch=torch("2.1.2+cu121"),
        python=Python(executable="/opt/my env/bin/python"),
    )
    assert "'/opt/my env/bin/python' -m pip install 'accelerate<1.0' torch==2.1.2" in str(found.advice)
