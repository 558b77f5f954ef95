"""Weights as other tools leave them: opened where that is safe and whole, else refused with what to do."""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any

import pytest

from doctor.launch import LaunchError
from doctor.model_source import find_source
from runner.deploy.foreign import onnx_in, pickle_note, refusal
from tests.commands_run import doctor


def files(folder: Path, *names: str) -> Path:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"{}")
    return folder


REFUSED: dict[str, tuple[tuple[str, ...], str, str]] = {
    "Lightning": (("epoch=3.ckpt",), "epoch=3.ckpt", "a pickle that runs code when it is opened, so it is not"),
    "a file of torch.save": (("weights.pt",), "weights.pt", "does not say of which model"),
    "weights beside their configuration": (("m/config.json", "m/model.safetensors"), "m/model.safetensors", "name its folder: {root}/m"),
    "llama.cpp": (("q4.gguf",), "q4.gguf", "llama.cpp"),
    "where Trainer puts its checkpoints": (("out/checkpoint-1000/config.json", "out/checkpoint-500/config.json", "out/checkpoint-best/x"), "out", "name one of them: checkpoint-500, checkpoint-1000"),
    "DeepSpeed": (("config.json", "zero_to_fp32.py", "global_step5/mp_rank_00_model_states.pt"), ".", "zero_to_fp32.py {root} OUT --safe_serialization"),
    "FSDP": (("config.json", "pytorch_model_fsdp_0/__0_0.distcp"), ".", "accelerate merge-weights {root}/pytorch_model_fsdp_0 OUT"),
    "TensorFlow": (("config.json", "tf_model.h5"), ".", "from_tf"),
    "no configuration": (("model.safetensors", "tokenizer.json"), ".", "no config.json, which says of which model"),
    "no weights": (("config.json", "tokenizer.json"), ".", "has a config.json and no weights"),
}  # fmt: skip


@pytest.mark.parametrize(("made", "named", "words"), REFUSED.values(), ids=REFUSED.keys())
def test_what_is_not_opened_is_refused_before_anything_is_loaded(
    tmp_path: Path, made: tuple[str, ...], named: str, words: str
) -> None:
    files(tmp_path, *made)
    name = str(tmp_path / named) if named != "." else str(tmp_path)
    with pytest.raises(LaunchError) as refused:
        find_source(name)
    assert words.format(root=tmp_path) in str(refused.value)


def test_a_name_of_the_hub_is_told_how_it_comes_here(tmp_path: Path) -> None:
    done = doctor("predict", "google-bert/bert-base-chinese", "很好", cwd=tmp_path)
    assert done.returncode == 2
    assert "hf download google-bert/bert-base-chinese --local-dir DIR" in done.stderr


WHOLE: dict[str, tuple[str, ...]] = {
    "save_pretrained": ("config.json", "model.safetensors"),
    "a checkpoint of Trainer": ("config.json", "model.safetensors", "optimizer.pt", "trainer_state.json"),
    "in parts": ("config.json", "model.safetensors.index.json", "model-00001-of-00002.safetensors"),
    "weights in a pickle": ("config.json", "pytorch_model.bin"),
    "an adapter": ("adapter_config.json", "adapter_model.safetensors"),
    "DeepSpeed, gathered": ("config.json", "model.safetensors", "zero_to_fp32.py"),
}


@pytest.mark.parametrize("made", WHOLE.values(), ids=WHOLE.keys())
def test_what_is_whole_is_not_refused(tmp_path: Path, made: tuple[str, ...]) -> None:
    folder = files(tmp_path / "model", *made)
    assert refusal(folder) is None
    assert find_source(str(folder)).folder == folder


def test_only_weights_in_a_pickle_alone_are_warned_of(tmp_path: Path) -> None:
    folder = files(tmp_path, "config.json", "pytorch_model.bin")
    assert "no code of it is run" in str(pickle_note(folder))
    assert pickle_note(files(folder, "model.safetensors")) is None


def test_the_folder_of_an_export_is_its_file(tmp_path: Path) -> None:
    folder = files(tmp_path, "config.json", "model.onnx", "model.int8.onnx")
    assert onnx_in(folder) == folder / "model.onnx"
    assert find_source(str(folder)).onnx == folder / "model.onnx"
    assert onnx_in(files(folder, "model.safetensors")) is None, "torch's weights are asked first"
    several = files(tmp_path / "other", "config.json", "a.onnx", "b.onnx")
    assert onnx_in(several) is None


@pytest.fixture
def model(tmp_path: Path) -> Path:
    from tests.deploy.tiny import save_model

    return save_model(tmp_path / "model", "AutoModelForSequenceClassification")


def answers(folder: Path) -> list[Any]:
    from runner.deploy.answers import answer_rows
    from runner.deploy.opening import open_trained
    from runner.rows import Row

    return answer_rows(open_trained(folder), [Row("good film", "", None)], 3)


def test_parts_and_a_pickle_hold_the_same_model(model: Path) -> None:
    import torch
    import transformers

    want = answers(model)
    opened = transformers.AutoModelForSequenceClassification.from_pretrained(str(model))
    (model / "model.safetensors").unlink()
    opened.save_pretrained(str(model), max_shard_size="4KB")
    assert len(list(model.glob("model-*.safetensors"))) > 1
    assert answers(model) == want
    for path in model.glob("model*.safetensors*"):
        path.unlink()
    torch.save(opened.state_dict(), model / "pytorch_model.bin")
    assert answers(model) == want


class Evil:
    """What leaves a file behind when its pickle is opened by whoever trusts it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.path),)


@pytest.mark.parametrize("how", ["pickle", "torch.save"])
def test_code_in_a_pickle_is_not_run(model: Path, tmp_path: Path, how: str) -> None:
    import torch

    from runner.inputs import InputError

    (model / "model.safetensors").unlink()
    path, proof = model / "pytorch_model.bin", tmp_path / "it-ran"
    content = {"bert.embeddings.word_embeddings.weight": Evil(proof)}
    path.write_bytes(pickle.dumps(content)) if how == "pickle" else torch.save(content, path)
    with pytest.raises(InputError) as refused:
        answers(model)
    assert not proof.exists()
    assert "holds more than numbers" in str(refused.value)


def test_without_its_tokenizer_a_model_is_not_given_another(model: Path) -> None:
    from runner.inputs import InputError

    for name in ("tokenizer.json", "vocab.txt", "tokenizer_config.json"):
        (model / name).unlink(missing_ok=True)
    with pytest.raises(InputError) as refused:
        answers(model)
    assert "has no tokenizer" in str(refused.value) and "AutoTokenizer" in str(refused.value)
