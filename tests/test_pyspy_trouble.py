"""py-spy that is broken, old, or never ends: each has its words, and nobody waits for it or drowns in what it says."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from doctor import pyspy
from doctor.pyspy import Sample, Window
from doctor.pyspy_errors import Trouble


def fake(folder: Path, script: str) -> str:
    path = folder / "py-spy"
    path.write_text("#!/bin/sh\n" + script)
    path.chmod(0o755)
    return str(path)


def told(binary: str) -> Sample:
    return Window(os.getpid(), 1, 10, binary=binary).wait()


def trouble_of(binary: str) -> Trouble:
    trouble = told(binary).trouble
    assert trouble is not None
    return trouble


@pytest.mark.parametrize(
    ("script", "kind", "words"),
    [
        ("echo 'Error: Unsupported version of Python: 3.99.0' >&2; exit 1", "UNSUPPORTED", "3.99.0"),
        ("echo \"error: unexpected argument '--gil' found\" >&2; exit 2", "OTHER", "--gil"),
        ("exit 101", "OTHER", "py-spy failed"),
        ("kill -SEGV $$", "OTHER", "py-spy failed"),
        ("printf 'Error: Permission Denied: Try running again\\n' >&2; exit 1", "NO_PERMISSION", "same user"),
    ],
    ids=["a Python it does not know", "an older py-spy", "a panic without words", "a crash", "not permitted"],
)
def test_each_way_to_fail_has_its_words(tmp_path: Path, script: str, kind: str, words: str) -> None:
    trouble = trouble_of(fake(tmp_path, script))
    assert trouble.kind == kind
    assert words in str(trouble.why)


def test_what_is_no_program_is_said(tmp_path: Path) -> None:
    (tmp_path / "py-spy").write_text("not a program")
    (tmp_path / "py-spy").chmod(0o755)
    trouble = trouble_of(str(tmp_path / "py-spy"))
    assert (trouble.kind, trouble.lasting) == ("OTHER", True)


def test_one_that_never_ends_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pyspy, "GRACE_S", 1.0)
    begun = time.monotonic()
    assert trouble_of(fake(tmp_path, "exec sleep 600")).kind == "OTHER"
    assert time.monotonic() - begun < 60  # it would be 600


def test_of_a_flood_of_stacks_so_much_is_read_as_can_be_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pyspy, "MOST_BYTES", 10_000)
    line = 'process 7:"p";thread (7): MainThread;main (t.py:1) 1'
    script = f"""out=$(echo "$@" | sed 's/.*--output //; s/ .*//')
yes '{line}' | head -n 20000 > "$out"
"""
    sample = told(fake(tmp_path, script))
    assert sample.trouble is None
    assert 100 < sample.samples < 200
