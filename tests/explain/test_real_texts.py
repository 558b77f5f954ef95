"""Texts that the installed libraries really raise are recognised."""

from __future__ import annotations

import io
import json
import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from doctor.explain.match import matches

pytestmark = pytest.mark.train


def _torch() -> Any:
    return pytest.importorskip("torch")


def target_out_of_bounds(folder: Path) -> None:
    torch = _torch()
    torch.nn.functional.cross_entropy(torch.zeros(1, 2), torch.tensor([2]))


def token_out_of_range(folder: Path) -> None:
    torch = _torch()
    torch.nn.Embedding(4, 2)(torch.tensor([9]))


def no_gradient(folder: Path) -> None:
    _torch().zeros(1).sum().backward()


def backward_twice(folder: Path) -> None:
    torch = _torch()
    loss = (torch.ones(2, requires_grad=True) ** 2).sum()
    loss.backward()
    loss.backward()


def without_cuda(folder: Path) -> None:
    torch = _torch()
    if torch.version.cuda:
        pytest.skip("this torch has CUDA")
    torch.zeros(1).cuda()


def changed_in_place(folder: Path) -> None:
    torch = _torch()
    x = torch.ones(2, requires_grad=True)
    y = x.exp()
    y += 1
    y.sum().backward()


def cut_checkpoint(folder: Path) -> None:
    torch = _torch()
    path = folder / "cut.pt"
    torch.save({"a": torch.zeros(1000)}, path)
    path.write_bytes(path.read_bytes()[:2000])
    torch.load(path)


def cut_safetensors(folder: Path) -> None:
    _torch()
    safetensors = pytest.importorskip("safetensors.torch")
    path = folder / "cut.safetensors"
    path.write_bytes(b"\x10\x00\x00\x00\x00\x00\x00\x00{}")
    safetensors.load_file(path)


class _Opaque:
    pass


def code_in_weights(folder: Path) -> None:
    torch = _torch()
    path = folder / "opaque.pt"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("archive/data.pkl", pickle.dumps(_Opaque(), protocol=2))
        archive.writestr("archive/version", "3")
    torch.load(path)


def two_types(folder: Path) -> None:
    torch = _torch()
    torch.zeros(2, 2, dtype=torch.bfloat16) @ torch.zeros(2, 2)


def wrong_state_dict(folder: Path) -> None:
    torch = _torch()
    torch.nn.Linear(2, 3).load_state_dict(torch.nn.Linear(2, 2).state_dict())


def gbk_as_utf8(folder: Path) -> None:
    "今天天气很好".encode("gbk").decode("utf-8")


def chinese_in_ascii(folder: Path) -> None:
    io.TextIOWrapper(io.BytesIO(), encoding="ascii").write("中文")


def bom_in_json(folder: Path) -> None:
    json.loads("\ufeff{}")


def cut_json(folder: Path) -> None:
    json.loads('{"a": "b')


def unknown_argument(folder: Path) -> None:
    transformers = pytest.importorskip("transformers")
    transformers.TrainingArguments(output_dir=str(folder), evaluation_strategy="steps")


def removed_name(folder: Path) -> None:
    pytest.importorskip("transformers")
    exec("from transformers import AdamW")


@pytest.mark.parametrize(
    ("raises", "expected"),
    [
        (target_out_of_bounds, "target-out-of-bounds"),
        (token_out_of_range, "index-out-of-range"),
        (no_gradient, "no-grad-fn"),
        (backward_twice, "backward-twice"),
        (without_cuda, "torch-without-cuda"),
        (changed_in_place, "inplace"),
        (cut_checkpoint, "checkpoint-cut"),
        (cut_safetensors, "checkpoint-cut"),
        (code_in_weights, "weights-only"),
        (two_types, "two-dtypes"),
        (wrong_state_dict, "state-dict"),
        (gbk_as_utf8, "not-utf8"),
        (chinese_in_ascii, "ascii-locale"),
        (bom_in_json, "bom"),
        (cut_json, "json-cut"),
        (unknown_argument, "unknown-training-argument"),
        (removed_name, "removed-import"),
    ],
)
def test_what_the_library_raises_is_recognised(
    raises: Callable[[Path], None], expected: str, tmp_path: Path
) -> None:
    with pytest.raises(Exception) as caught:
        raises(tmp_path)
    text = f"{type(caught.value).__name__}: {caught.value}"
    assert expected in [item.id for item in matches(text)], text
