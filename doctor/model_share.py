"""A trained model on its way out: its files listed, copied to a folder whole or not at all, or sent to the hub."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

import msgspec
from msgspec.structs import replace

from doctor.launch import LaunchError
from doctor.model_source import Source
from doctor.model_work import Tell, interpreter_for, work
from runner.deploy.place import CARD, weights_sha256
from runner.deploy.records import REPORT, Exported
from runner.durable import MANIFEST, what_is_wrong
from runner.text import Text, t


@contextlib.contextmanager
def finished(source: Source, python: str | None, tell: Tell) -> Iterator[Source]:
    """Yield the model as a folder to share: its own, or for a checkpoint one that is made now and removed afterwards.

    Raises:
        LaunchError: it is damaged, or cannot be made.
        doctor.probes.target.BadPython: ``python`` is none.
    """
    if source.run is None or source.checkpoint in ("", "final"):
        folder = source.folder
        if (folder / MANIFEST).is_file() and (wrong := what_is_wrong(folder, may_differ=(CARD,))):
            raise LaunchError(t("{path} cannot be believed: {why}", path=str(folder), why=wrong))
        yield source
        return
    with _made_folder(source.run.path) as folder:
        request = {
            "run": str(source.run.path),
            "checkpoint": source.checkpoint,
            "target": str(folder / "model"),
        }
        for line in work("assemble", request, interpreter_for(source, python)):
            if "doing" in line:
                tell(msgspec.convert(line["doing"], Text))
        yield replace(source, folder=folder / "model", checkpoint="")


@contextlib.contextmanager
def _made_folder(run: Path) -> Iterator[Path]:
    """On the run's own disk, which has room for a model; the system's temporary folder often has none."""
    try:
        folder = Path(tempfile.mkdtemp(prefix=".share-", dir=run))
    except OSError as error:
        raise LaunchError(t("{path} cannot be written: {error}", path=str(run), error=error.strerror or str(error))) from None  # fmt: skip
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


# What Trainer and its kin leave beside a model: for going on with the training, or of the machine's own business.
_OF_TRAINING = (".*", "*/.*", "optimizer.*", "scheduler.*", "scaler.*", "rng_state*", "random_states*", "training_args.bin", "trainer_state.json",
                "global_step*/*", "checkpoint-*/*", "runs/*", "wandb/*", "latest", "zero_to_fp32.py")  # fmt: skip


def files_to_share(source: Source) -> dict[str, Path]:
    """Return the files of the finished folder by their names there, and the ONNX files of its run beside them.

    What of somebody else's folder is no part of the model (the optimizer, hidden files) is not among them.
    """
    there = {path.relative_to(source.folder).as_posix(): path for path in sorted(source.folder.rglob("*")) if path.is_file()}  # fmt: skip
    found = {name: path for name, path in there.items() if not any(fnmatch(name, one) for one in _OF_TRAINING)}  # fmt: skip
    onnx = source.run.path / "onnx" if source.run else None
    if onnx is not None and _is_of(onnx, source.folder):
        found |= {f"onnx/{path.name}": path for path in sorted(onnx.iterdir()) if path.is_file()}
    return found


def _is_of(onnx: Path, model: Path) -> bool:
    """Was the export made of these very weights? One of an earlier end of the run is not sent along."""
    try:
        exported = msgspec.json.decode((onnx / REPORT).read_bytes(), type=Exported)
        return bool(exported.source_sha256) and exported.source_sha256 == weights_sha256(model)
    except (OSError, msgspec.MsgspecError):
        return False


def copy_model(source: Source, target: Path) -> Path:
    """Copy the finished files to a new folder, whole or not at all.

    Raises:
        LaunchError: the folder holds something already, or cannot be written.
    """
    target = target.absolute()
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise LaunchError(t("{path} holds something already; name a new folder", path=str(target)))
    making = target.with_name(f".{target.name}.making-{os.getpid()}")
    try:
        for name, path in files_to_share(source).items():
            place = making / name
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, place)
        if target.is_dir():
            target.rmdir()
        making.rename(target)
    except OSError as error:
        why = error.strerror or str(error)
        raise LaunchError(t("{path} cannot be written: {error}", path=str(target), error=why)) from None
    finally:
        shutil.rmtree(making, ignore_errors=True)
    return target
