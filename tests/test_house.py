"""The house rules that the static import graph cannot see, proved in clean interpreters."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
HEAVY = ("torch", "transformers", "textual", "numpy", "accelerate", "datasets", "rich")


def modules_after(code: str, *arguments: str) -> set[str]:
    """Run ``code`` in a clean interpreter and return the top-level names in its sys.modules afterwards."""
    program = (
        "import sys, io, contextlib, json\n"
        "sys.argv = ['doctor', *sys.argv[1:]]\n"
        "with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):\n"
        f"    {code}\n"
        "print(json.dumps(sorted({name.partition('.')[0] for name in sys.modules})))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=ROOT,
        check=True,
    )
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_check_loads_nothing_of_what_it_examines() -> None:
    loaded = modules_after("from doctor.commands import main; main()", "check")
    assert "doctor" in loaded
    assert not loaded.intersection(HEAVY)


def test_check_on_a_recorded_machine_does_not_touch_this_one() -> None:
    recorded = sorted((ROOT / "tests" / "machines").glob("*.json"))
    assert recorded
    loaded = modules_after("from doctor.commands import main; main()", "check", "--facts", str(recorded[0]))
    assert not loaded.intersection({*HEAVY, "psutil", "pynvml"})


def test_help_loads_neither_rich_nor_msgspec() -> None:
    loaded = modules_after("from doctor.commands import main; main()", "--help")
    assert not loaded.intersection({*HEAVY, "msgspec", "psutil", "packaging"})


@pytest.mark.parametrize(
    "module", ["runner.events", "runner.state", "runner.rundir", "runner.profile", "runner.plan"]
)
def test_records_of_a_run_are_read_without_torch_and_without_doctor(module: str) -> None:
    loaded = modules_after(f"import {module}")
    assert not loaded.intersection({*HEAVY, "doctor"})


def test_nothing_of_this_workplace_is_written_in_the_repository() -> None:
    words = ["/wo" + "rk/main", "p" + "ypi.org", "python" + "hosted.org"]
    listing = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listing.returncode != 0:
        pytest.skip("not a git checkout")
    for name in listing.stdout.splitlines():
        path = ROOT / name
        if (
            path.suffix in (".mo", ".gz", ".png", ".svg", ".lock") or not path.is_file()
        ):  # a lock is a list of addresses
            continue
        text = path.read_text("utf-8", "replace")
        assert not [word for word in words if word in text], name
