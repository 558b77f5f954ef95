"""Saved state: files cut off, pickles that torch.load refuses, weights that were not found, resuming."""

from __future__ import annotations

import pytest

from doctor.model import Data, Environment, Incident, InspectedFile, Workload
from tests.checks.judged import findings, loud, packages, said, the, torch, variables


def test_the_newest_whole_checkpoint_is_named() -> None:
    files = (
        InspectedFile(path="c/7.pt", kind="checkpoint"),
        InspectedFile(path="c/8.pt", kind="checkpoint"),
        InspectedFile(path="c/9.pt", kind="checkpoint", problem="zip end-of-central-directory missing"),
    )
    found = the("corrupt-checkpoint", data=Data(files=files))
    assert found.subject == "c/9.pt"
    assert "c/8.pt" in str(found.advice)
    assert findings(data=Data(files=files[:2])) == []


WEIGHTS_ONLY = "torch-load-weights-only-default"
PLAIN = ("torch._utils._rebuild_tensor_v2", "torch.FloatStorage", "collections.OrderedDict")
NUMPY_1, NUMPY_2 = "numpy.core.multiarray._reconstruct", "numpy._core.multiarray._reconstruct"


def pickle(path: str, *names: str) -> Data:
    return Data(files=(InspectedFile(path=path, kind="checkpoint", pickle_globals=names),))


@pytest.mark.parametrize(
    ("data", "torch_version", "numpy", "environment", "expected"),
    [
        pytest.param(pickle("m.pt", *PLAIN), "2.6.0", "2.1.0", {}, {}, id="tensors alone"),
        pytest.param(pickle("m.pt", *PLAIN, "argparse.Namespace"), "2.6.0", "2.1.0", {}, {WEIGHTS_ONLY: "warn"}, id="arguments beside them"),
        pytest.param(pickle("m.pt", *PLAIN, "argparse.Namespace"), "2.5.1", "2.1.0", {}, {}, id="2.5 reads everything"),
        pytest.param(pickle("m.pt", *PLAIN, "argparse Namespace"), "2.6.0", "2.1.0", {"TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD": "1"}, {}, id="told to read everything"),
        pytest.param(pickle("c-5/rng_state.pth", *PLAIN, NUMPY_1), "2.6.0", "2.1.0", {}, {WEIGHTS_ONLY: "fail"}, id="a random state of NumPy 1 under 2"),
        pytest.param(pickle("c-5/rng_state_0.pth", *PLAIN, NUMPY_2), "2.6.0", "1.26.4", {}, {WEIGHTS_ONLY: "fail"}, id="and the reverse"),
        pytest.param(pickle("c-5/rng_state.pth", *PLAIN, NUMPY_2), "2.6.0", "2.1.0", {}, {}, id="the same NumPy major"),
        pytest.param(pickle("c-5/training_args.bin", "transformers.training_args.TrainingArguments"), "2.6.0", "2.1.0", {}, {}, id="what the Trainer itself never loads this way"),
    ],
)  # fmt: skip
def test_pickles_under_weights_only(
    data: Data, torch_version: str, numpy: str, environment: dict[str, str], expected: dict[str, str]
) -> None:
    session: Environment = variables(**environment)
    found = said(data=data, torch=torch(torch_version), packages=packages(numpy=numpy), environment=session)
    assert {name: level for name, level in found.items() if name == WEIGHTS_ONLY} == expected


@pytest.mark.parametrize(
    ("fresh", "unused", "level"),
    [
        pytest.param(("classifier.weight", "classifier.bias"), ("cls.predictions.bias",), None, id="a new head"),
        pytest.param(("bert.pooler.dense.weight",), (), None, id="a pooler"),
        pytest.param(("score.weight",), ("lm_head.weight",), None, id="a head for a decoder"),
        pytest.param(("bert.encoder.layer.0.output.dense.weight",), ("module.bert.encoder.layer.0.output.dense.weight",), "fail", id="a prefix in the way"),
        pytest.param(None, None, None, id="nobody looked"),
    ],
)  # fmt: skip
def test_weights_of_the_body(
    fresh: tuple[str, ...] | None, unused: tuple[str, ...] | None, level: str | None
) -> None:
    loaded = Incident(newly_initialized=fresh, unused_weights=unused, log_lines=("x",))
    assert said(incident=loaded).get("checkpoint-keys-not-loaded") == level


def test_a_prefix_in_the_way_is_named() -> None:
    loaded = Incident(
        newly_initialized=("encoder.layer.0.weight",), unused_weights=("module.encoder.layer.0.weight",)
    )
    assert 'k.removeprefix("module.")' in str(the("checkpoint-keys-not-loaded", incident=loaded).advice)


@pytest.mark.parametrize(
    ("transformers", "arguments", "level"),
    [
        pytest.param(
            "4.18.0",
            {"save_strategy": "epoch", "resume_from_checkpoint": "c-5"},
            "warn",
            id="4.18 at an epoch's end",
        ),
        pytest.param("4.18.0", {"save_strategy": "epoch"}, "note", id="should it ever resume"),
        pytest.param(
            "4.18.0", {"save_strategy": "steps", "resume_from_checkpoint": "c-5"}, None, id="in mid-epoch"
        ),
        pytest.param(
            "4.19.4", {"save_strategy": "epoch", "resume_from_checkpoint": "c-5"}, None, id="4.19 restores it"
        ),
        pytest.param(
            "4.49.0",
            {"ignore_data_skip": True, "resume_from_checkpoint": "c-5"},
            "warn",
            id="told not to skip",
        ),
    ],
)
def test_resuming(transformers: str, arguments: dict[str, str | bool], level: str | None) -> None:
    run = Workload(training_args=dict(arguments))
    assert said(workload=run, packages=packages(transformers=transformers)).get("resume-not-bitwise") == level


def test_a_head_alone_warns_of_nothing() -> None:
    assert loud(incident=Incident(newly_initialized=("classifier.weight",))) == {}
