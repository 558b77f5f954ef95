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


def test_the_same_machine_twice_differs_in_nothing(tmp_path: Path) -> None:
    one, other = MACHINES / "healthy-4090-runpod.json", tmp_path / "other.json"
    other.write_bytes(one.read_bytes())
    done = doctor("check", "--fleet", str(one), str(other))
    assert done.returncode == 0
    assert "no difference found" in done.stdout


def test_a_file_that_is_named_again_is_counted_once() -> None:
    done = doctor("merge", *TWO, TWO[0])
    assert done.stdout.startswith("2 machines:")
    assert "is named 2 times and counted once" in done.stderr
    assert doctor("merge", TWO[0], TWO[0]).returncode == 2


def test_json_names_the_members() -> None:
    done = doctor("merge", "--json", *TWO)
    assert json.loads(done.stdout)["members"] == ["two-4090-driver-535", "mixed-3090-p40"]


def test_markdown_names_who_differs_and_is_redacted() -> None:
    for words in (("merge", "--markdown", *TWO), ("check", "--markdown", "--fleet", *TWO)):
        done = doctor(*words)
        assert done.returncode == 1
        assert done.stdout.startswith("**rundoctor ")
        assert (
            "- **FAIL** torch is not the same everywhere" in done.stdout
            and "`fleet-torch-differs`" in done.stdout
        )
        assert "two-4090-driver-535" in done.stdout and "mixed-3090-p40" in done.stdout


def test_json_has_its_sentences_in_words() -> None:
    found = json.loads(doctor("check", "--json", "--fleet", *TWO).stdout)
    texts = [one["title"]["text"] for one in found["differences"]]
    assert any(text.startswith("torch is not the same everywhere: ") for text in texts)


OF_ONE_MACHINE = (
    "--sarif",
    "--junit",
    "--brief",
    "--deep",
    "--why=x",
    "--profile=x",
    "--script=x.py",
    "--data=x",
)


@pytest.mark.parametrize("option", OF_ONE_MACHINE)
def test_what_is_of_one_machine_is_refused_with_fleet(option: str) -> None:
    done = doctor("check", option, "--fleet", *TWO)
    assert done.returncode == 2
    assert f"{option.partition('=')[0]}: of one machine, not with --fleet" in done.stderr


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
    assert out == "" and "rank 1 did not come within 5 s" in err


SBATCH = {
    "SLURM_JOB_ID": "4711",
    "SLURM_NTASKS": "8",
    "SLURM_PROCID": "0",
    "SLURM_JOB_NODELIST": "gpu[01-02]",
}


def test_a_batch_script_of_slurm_is_told_to_use_srun() -> None:
    """Its variables look like a rank's; the others would never come."""
    done = doctor("check", "--fleet", environment=SBATCH)
    assert done.returncode == 2 and "srun doctor check --fleet" in done.stderr


@pytest.mark.train
def test_tasks_of_srun_find_each_other_by_slurms_variables() -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    import os

    code = "import sys; from doctor.commands import main; sys.exit(main())"
    step = {**os.environ, **SBATCH, "SLURM_STEP_ID": "0", "SLURM_STEP_NUM_TASKS": "2", "SLURM_STEP_NODELIST": "127.0.0.1",
            "SLURM_STEP_TASKS_PER_NODE": "2", "SLURM_NODEID": "0", "MASTER_PORT": str(free_port()), "DOCTOR_LANG": "en"}  # fmt: skip
    argv = [
        sys.executable,
        "-c",
        code,
        "check",
        "--fleet",
        "--python",
        sys.executable,
        "--deep-timeout",
        "120",
        "--json",
    ]
    tasks = [
        subprocess.Popen(argv, env={**step, "SLURM_PROCID": rank, "SLURM_LOCALID": rank}, stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE, text=True)
        for rank in ("0", "1")
    ]  # fmt: skip
    outputs = [one.communicate(timeout=240) for one in tasks]
    assert [one.returncode for one in tasks] == [0, 0], outputs
    assert json.loads(outputs[0][0])["members"] == ["rank 0", "rank 1"]
