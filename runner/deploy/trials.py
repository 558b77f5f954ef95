"""All files of an export tried on the same real texts in one pass: torch is asked once a batch, and so is each file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import torch

from runner.deploy.parity import AgreementCount
from runner.deploy.records import ShapeParity, Variant
from runner.deploy.session import Batch, ask, open_session
from runner.deploy.trained import Trained
from runner.deploy.variants import WRITERS, bytes_of
from runner.text import t

Texts = Iterable[tuple[Batch, torch.Tensor | None]]
"""(inputs, labels); None where the texts have none."""


class Trial:
    """One file, and what was counted of its answers."""

    def __init__(self, name: str, path: Path, trained: Trained, provider: str, metrics: Any) -> None:
        """``metrics``: counts the task's metrics, or None. Raises InputError, or what onnxruntime raises."""
        self.name, self.path = name, path
        self.session = open_session(path, provider)
        self.agreement, self._metrics = AgreementCount(trained), metrics

    def add(self, inputs: Batch, labels: torch.Tensor | None, want: torch.Tensor) -> None:
        """Ask the file, and count its answers beside torch's (``want``)."""
        got = ask(self.session, inputs)
        self.agreement.add(inputs, want.numpy(), got)
        if self._metrics is not None:
            self._metrics.update(torch.from_numpy(got), labels)

    def variant(self, shapes: tuple[ShapeParity, ...] = ()) -> Variant:
        """Return what was found out about the file."""
        return Variant(
            name=self.name,
            file=self.path.name,
            bytes=bytes_of(self.path),
            provider=self.session.get_providers()[0],
            shapes=shapes,
            agreement=self.agreement.result(),
            metrics=plain(self._metrics),
        )


def plain(metrics: Any) -> dict[str, float]:
    """Return what was counted, by name; empty: nothing was."""
    return {} if metrics is None else {name: float(value) for name, value in metrics.result().items()}


def converted(name: str, source: Path, trained: Trained, provider: str, metrics: Any) -> Trial | Variant:
    """Write a variant beside ``source`` and open it; where that fails, return it with why."""
    path = source.with_name(f"model.{name}.onnx")
    try:
        WRITERS[name](source, path)
        return Trial(name, path, trained, provider, metrics)
    except Exception as error:  # a converter raises whatever its passes raise; the fp32 file stands
        return given_up(name, path, error)


def given_up(name: str, path: Path, error: Exception) -> Variant:
    """Remove a variant's file and return why there is none."""
    for part in path.parent.glob(f"{path.name}*"):
        part.unlink()
    why = " ".join(f"{type(error).__name__}: {error}".split())[:400]
    return Variant(name=name, file="", bytes=0, provider="", trouble=t("{why}", why=why))


def try_all(trained: Trained, first: Trial, others: Sequence[Trial], texts: Texts, torch_metrics: Any) -> dict[str, Variant]:  # fmt: skip
    """Ask torch and every file for every batch; return the variants that could not answer, by name.

    What ``first``, the fp32 file, raises is raised; another one that fails is given up.
    """
    failed: dict[str, Variant] = {}
    for inputs, labels in texts:
        want = trained.answer(inputs)
        if torch_metrics is not None:
            torch_metrics.update(want, labels)
        first.add(inputs, labels, want)
        for trial in others:
            if trial.name in failed:
                continue
            try:
                trial.add(inputs, labels, want)
            except Exception as error:  # onnxruntime's errors have no common base but Exception
                failed[trial.name] = given_up(trial.name, trial.path, error)
    return failed
