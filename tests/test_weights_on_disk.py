"""Parameters counted from the headers of weight files, and what training them takes at least."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from doctor.weights_on_disk import floor_text, weights_in


def written(path: Path, tensors: dict[str, tuple[str, list[int]]]) -> None:
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    header |= {name: {"dtype": dtype, "shape": shape, "data_offsets": [0, 0]} for name, (dtype, shape) in tensors.items()}  # fmt: skip
    raw = json.dumps(header).encode()
    path.write_bytes(len(raw).to_bytes(8, "little") + raw)


def test_parameters_of_all_shards_are_counted(tmp_path: Path) -> None:
    written(tmp_path / "model-00001-of-00002.safetensors", {"a": ("F32", [1000, 500])})
    written(tmp_path / "model-00002-of-00002.safetensors", {"b": ("BF16", [500_000]), "c": ("F32", [])})
    found = weights_in(tmp_path)
    assert found is not None and found.parameters == 1_000_001
    floor = floor_text(tmp_path)
    assert floor is not None and floor.params == {"millions": 1.0, "whole": 15, "frozen": 1}


def test_packed_weights_are_no_count_of_parameters_and_stand_still_as_they_are(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    written(path, {"q": ("U8", [1000, 500])})
    with path.open("ab") as file:
        file.truncate(3 << 20)
    floor = floor_text(tmp_path)
    assert floor is not None and floor.params == {"size": 3}


def test_small_whole_numbers_are_buffers_and_do_not_say_quantised(tmp_path: Path) -> None:
    written(tmp_path / "model.safetensors", {"w": ("F32", [1_000_000]), "ids": ("I32", [1])})
    floor = floor_text(tmp_path)
    assert floor is not None and "millions" in floor.params


@pytest.mark.parametrize(
    "content", [b"", b"12345678", (1 << 40).to_bytes(8, "little") + b"{}", (2).to_bytes(8, "little") + b"[]"],
    ids=["empty", "no header", "a header that is longer than the file", "no names"],
)  # fmt: skip
def test_a_damaged_file_tells_nothing(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "model.safetensors").write_bytes(content)
    assert floor_text(tmp_path) is None
    assert floor_text(tmp_path / "nowhere") is None
