"""A module of the user's own under a name that is taken (random.py, runner) does not break the doctor that was called beside it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BROKEN = "raise SystemExit('this is the random.py of somebody else')"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "random.py").write_text(BROKEN)
    (tmp_path / "runner").mkdir()
    (tmp_path / "runner" / "__init__.py").write_text(BROKEN)
    return tmp_path


@pytest.mark.parametrize("way", ["in the working directory", "on PYTHONPATH"])
def test_it_is_not_imported(folder: Path, tmp_path_factory: pytest.TempPathFactory, way: str) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    inside = way == "in the working directory"
    done = subprocess.run(
        [sys.executable, "-m", "doctor", "run", "quickstart", "--dry-run"],
        cwd=folder if inside else elsewhere,
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT) if inside else os.pathsep.join([str(folder), str(ROOT)]),
            "DOCTOR_LANG": "en",
        },
        capture_output=True,
        text=True,
    )
    assert "Plan: quickstart" in done.stdout, done.stderr
