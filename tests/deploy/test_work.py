"""The child that works with a model, seen from its caller: an interpreter without what it takes, a name that is no UTF-8."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from doctor.launch import LaunchError
from doctor.model_work import work


def test_an_interpreter_without_a_module_is_named_with_the_way_out(tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')  # -S: without site-packages
    python.chmod(0o755)
    with pytest.raises(LaunchError) as refused:
        list(work("predict", {"texts": ["good"]}, str(python)))
    words = str(refused.value)
    assert f"{python} has no msgspec, which this needs" in words
    assert f"{python} -m pip install msgspec" in words and "--python" in words


def test_a_name_that_is_not_utf8_is_refused_in_a_sentence() -> None:
    with pytest.raises(LaunchError) as refused:
        list(work("predict", {"file": b"/d/\xc4\xe3.csv".decode("utf-8", "surrogateescape")}, sys.executable))
    assert "/d/\\xc4\\xe3.csv is not UTF-8" in str(refused.value)
