"""onnxruntime as it is found: missing, broken, without CUDA, or falling back to the CPU without a word."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from runner.deploy.session import check_provider, open_session, require_onnx
from runner.inputs import InputError

CPU, CUDA = "CPUExecutionProvider", "CUDAExecutionProvider"


class Session:
    """Takes what is asked for and uses what it has, as onnxruntime does."""

    def __init__(self, path: str, options: Any, providers: list[str]) -> None:
        self.used = [CPU]

    def get_providers(self) -> list[str]:
        return self.used


def pretend(monkeypatch: pytest.MonkeyPatch, *providers: str) -> None:
    """Put an onnxruntime there that was built with ``providers`` and can load none but the CPU's."""
    module = ModuleType("onnxruntime")
    module.__dict__.update(
        __version__="1.32.0", SessionOptions=lambda: ModuleType("options"), InferenceSession=Session,
        get_available_providers=lambda: list(providers),
    )  # fmt: skip
    monkeypatch.setitem(sys.modules, "onnxruntime", module)


def test_a_wheel_without_cuda_is_said_before_anything_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, CPU)
    with pytest.raises(InputError) as refused:
        check_provider(CUDA)
    assert f"has no {CUDA} (it has {CPU})" in str(refused.value)
    assert "pip install onnxruntime-gpu" in str(refused.value)


def test_cuda_that_does_not_load_is_not_silently_the_cpu(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pretend(monkeypatch, CUDA, CPU)
    check_provider(CUDA)
    with pytest.raises(InputError) as refused:
        open_session(tmp_path / "model.onnx", CUDA)
    assert f"fell back to {CPU}" in str(refused.value)
    assert open_session(tmp_path / "model.onnx").get_providers() == [CPU]


@pytest.mark.parametrize(
    ("content", "why"),
    [
        pytest.param(None, "No module named 'onnxruntime_that_is'", id="missing"),
        pytest.param("raise ImportError('libcudart.so.13: cannot open shared object file')", "libcudart.so.13", id="broken"),
    ],
)  # fmt: skip
def test_what_cannot_be_imported_is_one_sentence_with_the_command(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, content: str | None, why: str
) -> None:
    if content is not None:
        (tmp_path / "onnxruntime_that_is.py").write_text(content)
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(InputError) as refused:
        require_onnx("json", "onnxruntime_that_is")
    assert f"needs onnxruntime_that_is in the environment that trained ({why}" in str(refused.value)
    assert "-m pip install onnx onnxscript onnxruntime" in str(refused.value)
