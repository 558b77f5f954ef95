"""Torch really used: real interpreters with a torch that raises, dies, hangs, or is well."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

import runner.child
from doctor.model import Deep
from doctor.probes import PROBES, Context
from doctor.probes.deep import probe, steps_of
from doctor.probes.deep_child import Ended, where_it_was

PROGRAMS = Path(next(iter(runner.child.__path__)))
OLD_PYTHONS = sorted((Path.home() / ".pyenv" / "versions").glob("3.[678].*/bin/python"))


def environment(folder: Path, **packages: str) -> Path:
    """Make an environment whose site-packages hold these one-file packages; return its interpreter."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True, timeout=60)
    (site,) = folder.glob("lib/python3.*/site-packages")
    for name, source in packages.items():
        (site / name).mkdir()
        (site / name / "__init__.py").write_text(textwrap.dedent(source), "utf-8")
    return folder / "bin" / "python"


def tried(python: Path, cwd: Path, data: str | None = None, limit_s: float = 30.0) -> Deep:
    context = Context(python=str(python), cwd=cwd)
    reading = probe(context, data, limit_s)
    assert reading.status == "ok" and reading.value is not None, reading.why
    return reading.value


def rows(deep: Deep) -> list[tuple[str, str, str]]:
    return [(step.name, step.subject, step.status) for step in deep.steps]


WELL = """
    __version__ = "9.9"
    class version: cuda = None
    class cuda:
        is_available = staticmethod(lambda: False)
        device_count = staticmethod(lambda: 0)
"""


def test_an_ordinary_check_does_not_use_torch() -> None:
    assert "deep" not in PROBES


def test_without_torch_nothing_is_tried(tmp_path: Path) -> None:
    deep = tried(environment(tmp_path / "env"), tmp_path)
    assert (deep.steps, deep.finished) == ((), True)
    assert deep.not_installed == ("torch", "accelerate", "transformers")


def test_an_import_that_raises_is_told_in_its_own_words(tmp_path: Path) -> None:
    broken = "raise OSError('libcudnn.so.9: cannot open shared object file')"
    deep = tried(environment(tmp_path / "env", torch=broken, accelerate="__version__ = '1.0'"), tmp_path)
    assert rows(deep) == [("import", "torch", "failed"), ("import", "accelerate", "ok")]
    assert deep.steps[0].detail == "OSError: libcudnn.so.9: cannot open shared object file"
    assert deep.steps[1].detail == "1.0"
    assert deep.finished


def test_a_crash_is_told_with_its_place_and_the_steps_behind_it_are_tried(tmp_path: Path) -> None:
    dies = "import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)"
    deep = tried(environment(tmp_path / "env", torch=dies, transformers="__version__ = '5.0'"), tmp_path)
    assert rows(deep) == [("import", "torch", "crashed"), ("import", "transformers", "ok")]
    assert deep.steps[0].detail.startswith("SIGSEGV: File ")
    assert "torch/__init__.py" in deep.steps[0].detail
    assert deep.finished


def test_a_crash_in_a_product_keeps_the_import_before_it(tmp_path: Path) -> None:
    dies = (
        textwrap.dedent(WELL)
        + "import os, signal\nfloat32 = None\ndef Generator(): os.kill(os.getpid(), signal.SIGILL)\n"
    )
    deep = tried(environment(tmp_path / "env", torch=dies, accelerate=""), tmp_path)
    assert rows(deep)[:2] == [("import", "torch", "ok"), ("matmul", "cpu", "crashed")]
    assert ("see-gpus", "torch.cuda", "ok") in rows(deep)
    assert ("import", "accelerate", "ok") in rows(deep)
    assert not [row for row in rows(deep) if row[0] == "backward"]
    assert (deep.torch_version, deep.cuda_available) == ("9.9", False)


def test_a_process_that_leaves_without_a_word_is_a_crash(tmp_path: Path) -> None:
    leaves = "import os, sys\nprint('on stdout')\nprint('goodbye', file=sys.stderr)\nsys.stderr.flush()\nos._exit(7)"
    deep = tried(environment(tmp_path / "env", torch=leaves), tmp_path)
    assert rows(deep) == [("import", "torch", "crashed")]
    assert deep.steps[0].detail == "exit status 7: goodbye"


def test_a_hang_ends_at_the_limit_and_says_where(tmp_path: Path) -> None:
    hangs = "import time\ntime.sleep(600)"
    deep = tried(environment(tmp_path / "env", torch=hangs), tmp_path, limit_s=1.5)
    assert rows(deep) == [("import", "torch", "timed-out")]
    assert "torch/__init__.py" in deep.steps[0].detail and "line 2" in deep.steps[0].detail
    assert not deep.finished


def test_a_hang_leaves_no_process_behind(tmp_path: Path) -> None:
    hangs = "import subprocess, sys, time\nsubprocess.Popen([sys.executable, '-c', 'import time; time.sleep(601)'])\ntime.sleep(601)"
    tried(environment(tmp_path / "env", torch=hangs), tmp_path, limit_s=1.5)
    lines = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    assert str(tmp_path) not in lines


def test_what_libraries_print_is_not_taken_for_an_answer(tmp_path: Path) -> None:
    prints = (
        textwrap.dedent(WELL) + 'print(\'{"finished": true}\')\nprint(\'{"end": ["import", "torch"]}\')\n'
    )
    deep = tried(environment(tmp_path / "env", torch=prints), tmp_path)
    assert rows(deep)[0] == ("import", "torch", "ok")
    assert len(rows(deep)) > 1


def test_a_file_beside_the_working_directory_is_not_imported(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("raise SystemExit('mine')", "utf-8")
    deep = tried(environment(tmp_path / "env", torch=WELL), tmp_path)
    assert rows(deep)[0] == ("import", "torch", "ok")


def test_an_interpreter_that_does_not_start_is_said(tmp_path: Path) -> None:
    python = environment(tmp_path / "env")
    (site,) = (tmp_path / "env").glob("lib/python3.*/site-packages")
    (site / "boom.pth").write_text("import os; os._exit(4)\n", "utf-8")
    deep = tried(python, tmp_path)
    assert rows(deep) == [("begin", "python", "crashed")]
    assert deep.steps[0].detail.startswith("exit status 4")


def test_a_dead_interpreter_could_not_be_looked_at(tmp_path: Path) -> None:
    python = environment(tmp_path / "env")
    python.unlink()
    python.symlink_to(tmp_path / "gone")
    reading = probe(Context(python=str(python), cwd=tmp_path))
    assert (reading.status, reading.value) == ("failed", None)
    assert reading.why is not None


@pytest.mark.parametrize("python", OLD_PYTHONS, ids=lambda path: path.parent.parent.name)
def test_the_programs_run_on_old_pythons(python: Path, tmp_path: Path) -> None:
    (tmp_path / "data.bin").write_bytes(os.urandom(1 << 20))
    deep = tried(python, tmp_path, str(tmp_path))
    assert (deep.finished, deep.not_installed) == (True, ("torch", "accelerate", "transformers"))
    assert (rows(deep), deep.read_bytes) == ([("read", str(tmp_path), "ok")], 1 << 20)


# ------------------------------------------------------------------------------------------------ reading
def read(path: Path, cwd: Path) -> Deep:
    return tried(Path(sys.executable), cwd, str(path))


def test_a_folder_is_read_through_and_links_in_a_loop_are_not_followed(tmp_path: Path) -> None:
    python = environment(tmp_path / "env")
    data = tmp_path / "data"
    (data / "sub").mkdir(parents=True)
    (data / "sub" / "loop").symlink_to(data)
    for name, size in (("a.bin", 3 << 20), ("sub/b.bin", 5)):
        (data / name).write_bytes(os.urandom(size))
    deep = tried(python, tmp_path, str(data))
    assert (deep.read_bytes, deep.read_files) == ((3 << 20) + 5, 2)
    assert deep.read_bytes_per_s and deep.read_path == str(data)


@pytest.mark.parametrize("kind", ["missing", "fifo", "empty folder"])
def test_what_cannot_be_read_is_said(kind: str, tmp_path: Path) -> None:
    python = environment(tmp_path / "env")
    path = tmp_path / "data"
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "empty folder":
        path.mkdir()
    deep = tried(python, tmp_path, str(path))
    assert rows(deep) == [("read", str(path), "ok" if kind == "empty folder" else "failed")]
    assert not deep.read_bytes


# ------------------------------------------------------------------------------------------------ lines and ends
def test_a_line_that_was_torn_by_death_is_no_answer() -> None:
    told = ({"begin": ["import", "torch"]}, {"end": ["import", "torch"], "status": "ok", "seconds": 1.0, "detail": ""}, {"begin": ["start", "cuda:0"]})  # fmt: skip
    steps = steps_of(Ended(told=told, code=-6, stderr="terminate called\nwhat(): CUDA error\n"), 9.0)
    assert [(step.name, step.status) for step in steps] == [("import", "ok"), ("start", "crashed")]
    assert steps[1].detail == "SIGABRT: what(): CUDA error"


def test_the_main_thread_is_the_one_that_is_asked_where_it_was() -> None:
    text = (
        "Timeout (0:00:01)!\n"
        'Thread 0x00007f01 (most recent call first):\n  File "/lib/threading.py", line 324 in wait\n'
        'Thread 0x00007f02 (most recent call first):\n  File "/env/torch/__init__.py", line 8 in load\n  File "/x.py", line 1 in <module>\n'
    )
    assert where_it_was(text) == 'File "/env/torch/__init__.py", line 8 in load'
    assert where_it_was("no traceback") == ""


# ------------------------------------------------------------------------------------------------ the real torch
@pytest.mark.train
@pytest.mark.slow
def test_a_healthy_environment_passes_every_step(tmp_path: Path) -> None:
    if importlib.util.find_spec("torch") is None:
        pytest.skip("no torch in this environment")
    deep = tried(Path(sys.executable), tmp_path, limit_s=120.0)
    assert [row for row in rows(deep) if row[2] != "ok" and row[0] != "see-gpus"] == []
    assert {"import", "matmul", "backward", "see-gpus", "round-trip"} <= {row[0] for row in rows(deep)}
    assert deep.finished and deep.ranks and deep.ranks >= 2


# torch whose two cards are the CPU: what is asked of a card is asked in the words that torch has.
STAND_IN = """
import importlib.util, json, os, sys, types
import torch
real_to, real_zeros = torch.Tensor.to, torch.zeros
broken = sys.argv[2:] == ["lost"]
def to(self, where, *rest, **more):
    if broken and where == "cuda:0":
        raise RuntimeError("CUDA error: uncorrectable ECC error encountered")
    return self if isinstance(where, str) and where.startswith("cuda") else real_to(self, where, *rest, **more)
torch.Tensor.to = to
torch.zeros = lambda *size, device=None, **more: real_zeros(*size, **more)
torch.cuda.is_available = lambda: True
torch.cuda.device_count = lambda: 2
torch.cuda.get_device_properties = lambda index: types.SimpleNamespace(name="Stand-in", major=8, minor=index, total_memory=1 << 30)
torch.cuda.mem_get_info = lambda index: (1 << 29, 1 << 30)
spec = importlib.util.spec_from_file_location("deep", sys.argv[1])
deep = importlib.util.module_from_spec(spec)
spec.loader.exec_module(deep)
if sys.argv[2:] == ["wrong"]:
    torch.Tensor.cpu = lambda self: self + 1000.0 if self.dtype == torch.float16 else self
deep.Deep({"limit_s": 60, "done": [["import", "transformers", "ok"], ["round-trip", "gloo", "ok"], *json.loads(sys.argv[3] if len(sys.argv) > 3 else "[]")]}, os.fdopen(1, "wb", 0)).run()
"""


def with_stand_in(*arguments: str) -> list[dict[str, Any]]:
    if importlib.util.find_spec("torch") is None:
        pytest.skip("no torch in this environment")
    argv = [sys.executable, "-c", STAND_IN, str(PROGRAMS / "deep.py"), *arguments]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.train
def test_every_card_is_tried_in_every_way() -> None:
    told = with_stand_in()
    ended = [(*line["end"], line["status"]) for line in told if "end" in line]
    for device in ("cuda:0", "cuda:1"):
        ways = [row[0] for row in ended if row[1] == device and row[2] == "ok"]
        assert ways == ["start", "matmul", "backward", "fp16", "bf16"]
    cards = [line["device"] for line in told if "device" in line]
    assert cards[1] == {"index": 1, "name": "Stand-in", "compute_capability": "8.1", "memory_total_bytes": 1 << 30, "memory_free_bytes": 1 << 29}  # fmt: skip


@pytest.mark.train
def test_a_card_that_computes_wrongly_is_found() -> None:
    told = with_stand_in("wrong")
    wrong = [line for line in told if line.get("end") == ["fp16", "cuda:0"]]
    assert [line["status"] for line in wrong] == ["failed"]
    assert "the result is wrong" in str(wrong[0]["detail"])


@pytest.mark.train
def test_a_card_that_spoils_its_process_is_left_and_the_next_one_is_tried_in_another() -> None:
    told = with_stand_in("lost")
    assert told[-1] == {"again": True}
    ended = [[*line["end"], line["status"]] for line in told if "end" in line]
    assert ended[-1] == ["matmul", "cuda:0", "failed"]
    assert not [row for row in ended if row[1] == "cuda:1"]
    rest = [
        (*line["end"], line["status"]) for line in with_stand_in("lost", json.dumps(ended)) if "end" in line
    ]
    assert [row[:2] for row in rest if row[2] == "ok" and row[0] != "import"] == [
        (way, "cuda:1") for way in ("start", "matmul", "backward", "fp16", "bf16")
    ]
