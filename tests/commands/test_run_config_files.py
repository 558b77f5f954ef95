"""``doctor run PROFILE --accelerate-config FILE``: held against the profile before anything starts, and as many processes as it says."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.commands_run import doctor
from tests.runner.tiny import PROFILE, write_rows

FILE = """\
compute_environment: LOCAL_MACHINE
distributed_type: MULTI_GPU
num_machines: {machines}
num_processes: {processes}
tpu_env: []
use_cpu: false
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_rows(tmp_path / "rows.csv", 40)
    (tmp_path / "tiny.toml").write_text(PROFILE)
    (tmp_path / "x.yaml").write_text(FILE.format(machines=1, processes=2))
    return tmp_path


@pytest.mark.parametrize("flag", ["--accelerate-config", "--config_file"])
def test_as_many_processes_are_planned_as_the_file_says(folder: Path, flag: str) -> None:
    done = doctor("run", "tiny.toml", flag, "x.yaml", "--dry-run", cwd=folder)
    words = " ".join(done.stdout.split())
    assert "2 processes train together: ddp" in words
    assert "x.yaml: read into the profile; without effect here: x.yaml: compute_environment" in words


REFUSED: dict[str, tuple[str, tuple[str, ...], str]] = {
    "another number asked for": (FILE.format(machines=1, processes=2), ("--nproc", "3"), "start with --nproc 2"),
    "several machines": (FILE.format(machines=2, processes=16), (), "--nnodes 2 --nproc 8"),
    "a key that is not honoured": (FILE.format(machines=1, processes=2) + "parallelism_config:\n  tp_size: 2\n", (), "x.yaml: parallelism_config"),
    "no such file": (FILE, ("--deepspeed-config", "gone.json"), "gone.json: cannot be read"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "more", "said"), REFUSED.values(), ids=REFUSED.keys())
def test_what_cannot_be_is_said_before_a_run_is_made(
    folder: Path, text: str, more: tuple[str, ...], said: str
) -> None:
    (folder / "x.yaml").write_text(text)
    done = doctor("run", "tiny.toml", "--accelerate-config", "x.yaml", *more, cwd=folder)
    assert done.returncode in (1, 2) and said in " ".join(done.stderr.split())
    assert not (folder / "runs").exists()


def test_a_run_that_goes_on_takes_no_file(folder: Path) -> None:
    done = doctor("run", "--resume", "last", "--accelerate-config", "x.yaml", cwd=folder)
    assert done.returncode == 2 and "as it was planned" in done.stderr


def test_the_flags_stand_in_the_help_in_both_languages() -> None:
    assert "--accelerate-config FILE" in doctor("run", "--help").stdout
    chinese = doctor("run", "--help", "--lang", "zh").stdout
    assert "DeepSpeed 配置文件（JSON）" in "".join(chinese.split("\n"))
