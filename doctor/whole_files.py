"""Whether a file of a checkpoint is whole, without loading it: by its header, its end, its size."""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Iterator
from pathlib import Path

from runner.text import Text, t

_TORCH = (".pt", ".pth", ".bin", ".ckpt")
_JSON_BYTES = 64 << 20
_TRAINERS = frozenset({"optimizer.pt", "scheduler.pt", "training_args.bin"})
"""Whoever writes one of these writes trainer_state.json last."""


def folder_trouble(folder: Path) -> Text | None:
    """Return what is wrong with a checkpoint that is a folder; None: nothing that can be seen."""
    try:
        names = set(os.listdir(folder))  # noqa: PTH208 - names alone are wanted
        if "trainer_state.json" not in names and (names & _TRAINERS or _is_among_trainers(folder)):
            return t("{file} is missing: it was being written", file="trainer_state.json")
        return next((trouble for path in _files(folder) if (trouble := trouble_in(path)) is not None), None)
    except OSError as error:
        return t("{file} cannot be read: {error}", file=folder.name, error=error.strerror or str(error))


def _is_among_trainers(folder: Path) -> bool:
    """Return whether Trainer's checkpoints lie beside it: a folder that it had only begun looks like a saved model."""
    return folder.name.startswith("checkpoint-") and any(folder.parent.glob("checkpoint-*/trainer_state.json"))  # fmt: skip


def _files(folder: Path) -> Iterator[Path]:
    return (path for path in sorted(folder.rglob("*")) if path.is_file())


def trouble_in(path: Path) -> Text | None:
    """Return what is wrong with one file; None: nothing that can be seen, or a kind of file that is not known."""
    try:
        size = path.stat().st_size
        if size == 0:
            return t("{file} is empty", file=path.name) if path.suffix in (*_TORCH, ".safetensors", ".json") else None  # fmt: skip
        if path.suffix == ".safetensors":
            return _safetensors(path, size)
        if path.suffix == ".json":
            return _json(path, size)
        if path.suffix in _TORCH:
            return _torch(path)
    except OSError as error:
        return t("{file} cannot be read: {error}", file=path.name, error=error.strerror or str(error))
    return None


def _safetensors(path: Path, size: int) -> Text | None:
    """The first 8 bytes: the header's length; in the header the end of each tensor after it."""
    with open(path, "rb") as file:
        length = int.from_bytes(file.read(8), "little")
        header = file.read(length) if 8 + length <= size else b""
    try:
        entries = json.loads(header)
        end = max((entry["data_offsets"][1] for name, entry in entries.items() if name != "__metadata__"), default=0)  # fmt: skip
    except (ValueError, KeyError, TypeError, IndexError, AttributeError):
        return t("{file} is cut short or damaged", file=path.name)
    return None if size == 8 + length + end else t("{file} is cut short or damaged", file=path.name)


def _json(path: Path, size: int) -> Text | None:
    if size > _JSON_BYTES:
        return None
    try:
        tree = json.loads(path.read_bytes())
    except ValueError:
        return t("{file} is cut short or damaged", file=path.name)
    return _missing_shard(path, tree) if path.name.endswith(".index.json") else None


def _missing_shard(path: Path, tree: object) -> Text | None:
    """Return the first file that an index names and that is not there."""
    shards = tree.get("weight_map") if isinstance(tree, dict) else None
    names = sorted(set(map(str, shards.values()))) if isinstance(shards, dict) else []
    missing = next((name for name in names if not (path.parent / name).is_file()), None)
    return t("{file} is missing: it was being written", file=missing) if missing else None


def _torch(path: Path) -> Text | None:
    """torch.save writes a zip file, whose directory stands at its end; the older form tells nothing of its length."""
    with open(path, "rb") as file:
        is_zip = file.read(4) == b"PK\x03\x04"
    return t("{file} is cut short or damaged", file=path.name) if is_zip and not zipfile.is_zipfile(path) else None  # fmt: skip
