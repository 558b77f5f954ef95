"""The model as an ONNX file with dynamic batch and length, by the exporter that this torch is best at."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import logging
import re
import traceback
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from runner.choices import parse_release
from runner.deploy.trained import Trained
from runner.text import Text, t

OPSETS = {"dynamo": 18, "torchscript": 17}
"""Written unless another is asked for: read by onnxruntime 1.14 and newer."""
DYNAMO_SINCE = (2, 6)
"""From here on the exporter of torch.export takes a transformer with dynamic shapes; from 2.9 on it is torch's default."""
EXAMPLE_SHAPE = (2, 16)
"""Neither is 1, which an exporter would take for a constant."""


class ExportFailed(Exception):  # noqa: N818 - it is what it says
    """No ONNX file could be written. ``text`` says why, with the place and the way round where they are known."""

    def __init__(self, text: Text) -> None:
        super().__init__(str(text))
        self.text = text


@dataclass(frozen=True)
class Written:
    """How the file came about."""

    path: Path
    exporter: str
    opset: int
    why: Text


class Graph(torch.nn.Module):  # type: ignore[misc,unused-ignore]
    """The model with its inputs by place and one tensor out: what an exporter takes."""

    def __init__(self, trained: Trained) -> None:
        super().__init__()
        self.model = trained.model
        self.names, self.extra, self.output = trained.input_names, trained.extra, trained.output_name
        self.eval()  # an exporter gives every part the mode back that the whole had

    def forward(self, *tensors: torch.Tensor) -> torch.Tensor:
        given = dict(zip(self.names, tensors, strict=True))
        return getattr(self.model(**given, **self.extra), self.output)


def choose_exporter(asked: str) -> tuple[tuple[str, ...], Text]:
    """Return the exporters to try, in order, and why the first is first."""
    if asked != "auto":
        return (asked,), t("asked for")
    version = torch.__version__.partition("+")[0]
    if parse_release(torch.__version__)[:2] < DYNAMO_SINCE:
        return ("torchscript",), t("torch {version}'s other exporter does not take dynamic shapes well", version=version)  # fmt: skip
    if importlib.util.find_spec("onnxscript") is None:
        return ("torchscript",), t("torch's newer exporter needs onnxscript, which is not installed here")
    return ("dynamo", "torchscript"), t("the exporter that torch {version} is built around", version=version)


def example_inputs(trained: Trained) -> tuple[torch.Tensor, ...]:
    """Return int64 tensors of :data:`EXAMPLE_SHAPE`, one an input, all of it text."""
    rows, length = EXAMPLE_SHAPE
    ids = torch.arange(rows * length).view(rows, length) % max(1, trained.vocabulary - 1)
    values = {"input_ids": ids, "attention_mask": torch.ones_like(ids), "token_type_ids": torch.zeros_like(ids)}  # fmt: skip
    return tuple(values[name] for name in trained.input_names)


def write_onnx(trained: Trained, path: Path, exporter: str, opset: int | None, why: Text) -> Written:
    """Write ``path`` by one exporter; ``why`` it was chosen is kept.

    Raises:
        ExportFailed: it could not; the operator, the model's line and its words.
        OSError: no space.
    """
    version = opset or OPSETS[exporter]
    try:
        with _quiet():
            _EXPORTERS[exporter](trained, path, version)
    except OSError:
        raise  # a full disk is no exporter's fault
    except Exception as error:  # an exporter raises whatever its passes raise
        raise ExportFailed(describe(exporter, error, Graph(trained), example_inputs(trained))) from error
    return Written(path, exporter, version, why)


def _dynamo(trained: Trained, path: Path, opset: int) -> None:
    batch, length = torch.export.Dim("batch"), torch.export.Dim("length", max=trained.max_length)
    shapes = tuple({0: batch, 1: length} for _ in trained.input_names)
    torch.onnx.export(
        Graph(trained), example_inputs(trained), str(path), dynamo=True, opset_version=opset,
        input_names=list(trained.input_names), output_names=[trained.output_name],
        dynamic_shapes={"tensors": shapes}, verbose=False,
    )  # fmt: skip


def _torchscript(trained: Trained, path: Path, opset: int) -> None:
    per_token = trained.kind != "classification"
    axes: dict[str, dict[int, str]] = {name: {0: "batch", 1: "length"} for name in trained.input_names}
    axes[trained.output_name] = {0: "batch", 1: "length"} if per_token else {0: "batch"}
    old: dict[str, Any] = {"dynamo": False} if parse_release(torch.__version__)[:2] >= (2, 5) else {}
    torch.onnx.export(
        Graph(trained), example_inputs(trained), str(path), opset_version=opset,
        input_names=list(trained.input_names), output_names=[trained.output_name],
        dynamic_axes=axes, do_constant_folding=True, **old,
    )  # fmt: skip


_EXPORTERS = {"dynamo": _dynamo, "torchscript": _torchscript}


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep the exporters' progress and warnings away: what matters is measured afterwards."""
    level = logging.getLogger("torch.onnx").level
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.getLogger("torch.onnx").setLevel(level)


def describe(
    exporter: str, error: BaseException, graph: torch.nn.Module, inputs: tuple[torch.Tensor, ...]
) -> Text:
    """Return what an exporter could not do: the operator where it names one, the model's line, the way round."""
    # \x1b[96mThis is step 3/3\x1b[0m of exporting the model to ONNX. Next steps: ... ## Exception summary ...
    words = (
        re.sub(r"\x1b\[[\d;]*m", "", " ".join(str(error).split()))
        .rpartition("## Exception summary")[2]
        .strip()
    )
    other = "torchscript" if exporter == "dynamo" else "dynamo"
    operator = operator_in(words)
    if operator:
        return t(
            "the {exporter} exporter has no translation of {operator}, asked for at {place}; try --exporter {other}, or a higher --opset",
            exporter=exporter, operator=operator, place=operator_line(graph, inputs, operator), other=other,
        )  # fmt: skip
    return t("the {exporter} exporter failed at {place}: {why}; try --exporter {other}",
             exporter=exporter, place=model_line(error), why=f"{type(error).__name__}: {words[:600]}", other=other)  # fmt: skip


def operator_in(words: str) -> str:
    """Return the operator that an exporter's message says it cannot translate; empty when it names none."""
    # Exporting the operator 'aten::fft_fft' to ONNX opset version 17 is not supported.
    # No ONNX function found for <OpOverload(op='aten._fft_r2c', overload='default')>. Failure message: No decompositions
    for pattern in (r"operator '([\w:.]+)'", r"No ONNX function found for <OpOverload\(op='([\w:.]+)'"):
        if match := re.search(pattern, words):
            return match[1]
    return ""


def operator_line(graph: torch.nn.Module, inputs: tuple[torch.Tensor, ...], operator: str) -> str:
    """Return ``file:line`` of the model's code that asks for ``operator``, found by running it once; ``?``: not found."""
    name = operator.replace("aten.", "aten::", 1)
    try:
        with _quiet(), torch.no_grad():
            traced = torch.jit.trace(graph, inputs, check_trace=False, strict=False).inlined_graph
    except Exception:  # the search is an extra: what cannot be traced has no line to tell
        return "?"
    for node in traced.nodes():
        if node.kind().startswith(name):
            # /home/me/model.py(5): forward
            frames = re.findall(r"^(.+)\((\d+)\): ", node.sourceRange(), re.MULTILINE)
            found = [f"{file}:{line}" for file, line in frames if _is_models(file)]
            if found:
                return found[0]
    return "?"


def _is_models(file: str) -> bool:
    libraries = ("/torch/", "/onnxscript/", "/onnx_ir/", "/runner/deploy/")
    return not file.startswith("<") and not any(part in file for part in libraries)


def model_line(error: BaseException) -> str:
    """Return ``file:line`` of the innermost frame that is neither torch's nor ours; ``?`` where there is none."""
    seen: list[BaseException] = []
    places: list[str] = []
    one: BaseException | None = error
    while one is not None and one not in seen:
        seen.append(one)
        frames = traceback.extract_tb(one.__traceback__)
        places += [f"{frame.filename}:{frame.lineno}" for frame in frames if _is_models(frame.filename)]
        one = one.__cause__ or one.__context__
    return places[-1] if places else "?"
