"""Twenty damages to the newest checkpoint of a stopped run: is each found, named and survived?

Each of the four files is flipped at its first byte, in its middle and at its last, cut by one byte, and removed. A
resumed run must then begin at the checkpoint before and end with the weights of a run that nothing happened to.
"""

from __future__ import annotations

import argparse
import hashlib
import shutil
from collections.abc import Callable
from pathlib import Path

from runner.checkpoint import checkpoint_folders
from runner.rundir import RunDir
from runner.session import run_session
from runner.signals import StopRequest

FILES = ("model.safetensors", "optimizer.safetensors", "state.json", "manifest.json")


def flipped(share: float) -> Callable[[Path], None]:
    def damage(path: Path) -> None:
        data = bytearray(path.read_bytes())
        data[round((len(data) - 1) * share)] ^= 0x10
        path.write_bytes(data)

    return damage


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


DAMAGES: dict[str, Callable[[Path], None]] = {
    "first byte flipped": flipped(0.0), "middle byte flipped": flipped(0.5), "last byte flipped": flipped(1.0),
    "cut by one byte": cut, "removed": Path.unlink,
}  # fmt: skip


def weights(run: RunDir) -> str:
    return hashlib.sha256((run.final / "model.safetensors").read_bytes()).hexdigest()


def measure_damage(options: argparse.Namespace, work: Path) -> None:
    from tests.runner.test_trainer import StopAfter
    from tests.runner.tiny import events, make_run, train

    whole, stopped = make_run(work, [], "whole"), make_run(work, [], "stopped")
    assert train(whole) == 0
    assert train(stopped, stop=StopAfter(18)) == 143
    found = survived = 0
    for name in FILES:
        for damage in DAMAGES.values():
            run = RunDir(work / "damaged")
            shutil.rmtree(run.path, ignore_errors=True)
            shutil.copytree(stopped.path, run.path)
            (_, newest), (before, _) = checkpoint_folders(run)
            damage(newest / name)
            code = run_session(str(run.path), True, StopRequest())
            notes = [event.data["text"] for event in events(run, "note")]
            found += any(
                "damaged" in text["msgid"] and text["params"]["path"] == str(newest) for text in notes
            )
            resumed = events(run, "run-started")[-1].data.get("resumed_from_step")
            survived += code == 0 and resumed == before and weights(run) == weights(whole)
    print(
        f"{len(FILES) * len(DAMAGES)} damages: {found} found and named, {survived} survived with the same weights"
    )
