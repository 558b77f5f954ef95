"""``doctor merge`` on files, and ``doctor check --fleet`` between processes that find each other."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.commands_run import doctor

MACHINES = Path(__file__).parent.parent / "machines"
TWO = (str(MACHINES / "two-4090-driver-535.json"), str(MACHINES / "mixed-3090-p40.json"))


def test_two_files_that_differ_are_told_apart() -> None:
    done = doctor("merge", *TWO)
    assert done.returncode == 1
    assert "torch is not the same everywhere" in done.stdout
    assert "(two-4090-driver-535)" in done.stdout


def test_the_same_machine_twice_differs_in_nothing() -> None:
    one = str(MACHINES / "healthy-4090-runpod.json")
    done = doctor("check", "--fleet", one, one)
    assert done.returncode == 0
    assert "no difference found" in done.stdout


def test_json_names_the_members() -> None:
    done = doctor("merge", "--json", *TWO)
    assert json.loads(done.stdout)["members"] == ["two-4090-driver-535", "mixed-3090-p40"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        pytest.param(("merge", TWO[0]), "name two files or more", id="one file"),
        pytest.param(("merge", TWO[0], "gone.json"), "gone.json", id="a file that is not there"),
        pytest.param(("check", "--fleet"), "torchrun", id="no launcher"),
    ],
)
def test_a_wrong_line_is_one_sentence(arguments: tuple[str, ...], words: str) -> None:
    done = doctor(*arguments)
    assert done.returncode == 2
    assert words in done.stderr and len(done.stderr.splitlines()) == 1


def launch(ranks: int, world: int, port: int, limit_s: int) -> list[subprocess.Popen[str]]:
    """Start ``ranks`` of ``world`` processes of ``doctor check --fleet``, as srun would."""
    import os

    code = "import sys; from doctor.commands import main; sys.exit(main())"
    common = {**os.environ, "WORLD_SIZE": str(world), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "DOCTOR_LANG": "en"}  # fmt: skip
    argv = [sys.executable, "-c", code, "check", "--fleet", "--python", sys.executable, "--deep-timeout", str(limit_s), "--json"]  # fmt: skip
    return [
        subprocess.Popen(argv, env={**common, "RANK": str(rank)}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for rank in range(ranks)
    ]  # fmt: skip


def free_port() -> int:
    import socket

    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@pytest.mark.train
def test_ranks_find_each_other_and_only_the_first_speaks() -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    ranks = launch(3, 3, free_port(), 120)
    outputs = [one.communicate(timeout=240) for one in ranks]
    assert [one.returncode for one in ranks] == [0, 0, 0], outputs
    report = json.loads(outputs[0][0])
    assert report["members"] == ["rank 0", "rank 1", "rank 2"]
    assert [out for out, _ in outputs[1:]] == ["", ""]


@pytest.mark.train
def test_a_rank_that_does_not_come_is_said_in_time() -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    ranks = launch(1, 2, free_port(), 5)
    out, err = ranks[0].communicate(timeout=200)
    assert ranks[0].returncode == 3
    assert out == "" and "did not come together within 5 s" in err
