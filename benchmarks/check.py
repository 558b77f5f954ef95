"""``doctor check`` against ``python -m torch.utils.collect_env`` in the same environment: ``python -m
benchmarks.check``.

Also: eight cards against one on the stand-in NVML, 1,000 installed distributions against 80, and the proof
that no heavy library is imported. Ratios are of medians of one run on one machine; run it on an idle one. Both
sides find their bytecode compiled, as pip leaves it.
"""

from __future__ import annotations

import argparse
import compileall
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.measure import Command, measure, table, verdict

# What torch.utils.collect_env starts, one after another (torch 2.13.0); those that are missing cost it
# nothing.
HELPERS = (
    "pip",
    "conda",
    "uname",
    "nvcc",
    "nvidia-smi",
    "ldconfig",
    "lsb_release",
    "gcc",
    "clang",
    "cmake",
    "lscpu",
)
HEAVY = ("torch", "textual", "transformers", "accelerate", "datasets", "numpy")
ONE_CARD, EIGHT_CARDS = "healthy-4090", "8xh100"


def check(name: str, *options: str, environ: dict[str, str] | None = None) -> Command:
    return Command(name, [sys.executable, "-m", "doctor", "check", "--fail-on", "unknown", *options], environ)


def against_collect_env(runs: int, python: str) -> None:
    there = [name for name in HELPERS if shutil.which(name)]
    print(
        f"collect_env's helpers here: {', '.join(there)}; missing: {', '.join(sorted(set(HELPERS) - set(there)))}"
    )
    collect = Command("python -m torch.utils.collect_env", [python, "-m", "torch.utils.collect_env"])
    found = measure([check("doctor check", "--python", python), collect], runs)
    print(table(found))
    ours, theirs = found["doctor check"], found[collect.name]
    print(verdict("wall time, collect_env / doctor", theirs.wall / ours.wall, 10, at_least=True))
    print(verdict("wall time wanted", theirs.wall / ours.wall, 15, at_least=True))
    print(verdict("cpu time, collect_env / doctor", theirs.cpu / ours.cpu, 8, at_least=True))
    print(verdict("peak memory, doctor / collect_env", ours.peak / theirs.peak, 0.25, at_least=False))


def compile_ours() -> None:
    """Write our bytecode: a checkout that was edited would be compiled at every start where that is switched off."""
    root = Path(__file__).parent.parent
    for package in ("doctor", "runner"):
        compileall.compile_dir(root / package, quiet=1)


def heavy_imports() -> None:
    code = (
        "import sys; from doctor.commands import main; main(['check', '--python', sys.executable]);"
        f"print('HEAVY', [name for name in {HEAVY!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    line = next((line for line in done.stdout.splitlines() if line.startswith("HEAVY")), done.stderr)
    print(
        f"{'met   ' if line == 'HEAVY []' else 'MISSED'}  of {', '.join(HEAVY)} imported: {line.removeprefix('HEAVY ')}"
    )


def cards(runs: int, one: str, eight: str) -> None:
    try:
        from tests.nvml.build import environment

        commands = [check(f"{name} cards", environ=dict(environment(name))) for name in (one, eight)]
    except (ImportError, OSError) as error:
        print(f"not measured: the stand-in NVML cannot be used ({error})")
        return
    found = measure(commands, runs)
    print(table(found))
    print(
        verdict(
            "8 cards / 1 card",
            found[commands[1].name].wall / found[commands[0].name].wall,
            1.3,
            at_least=False,
        )
    )


def write_distributions(site: Path, count: int) -> None:
    """Install ``count`` made-up distributions that require one another, with metadata of the usual size."""
    readme = "Some words about the project. " * 300
    for index in range(count):
        folder = site / f"madeup_{index}-1.{index}.dist-info"
        folder.mkdir()
        needs = "".join(f"Requires-Dist: madeup-{(index + step) % count}>=1.0\n" for step in (1, 2, 3, 5))
        extras = "".join(f'Requires-Dist: other-{step} ; extra == "dev"\n' for step in range(8))
        head = f"Metadata-Version: 2.1\nName: madeup-{index}\nVersion: 1.{index}\nRequires-Python: >=3.8\n"
        (folder / "METADATA").write_text(f"{head}{needs}{extras}\n{readme}")
        (folder / "WHEEL").write_text("Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        (folder / "INSTALLER").write_text("pip\n")
        (folder / "RECORD").write_text(f"madeup_{index}.py,,\n" * 20)


@contextmanager
def environments(*counts: int) -> Iterator[list[Path]]:
    with tempfile.TemporaryDirectory() as folder:
        made = []
        for count in counts:
            path = Path(folder) / f"env-{count}"
            subprocess.run([sys.executable, "-m", "venv", "--without-pip", path], check=True)
            write_distributions(next(path.glob("lib/python3*/site-packages")), count)
            made.append(path)
        yield made


def distributions(runs: int) -> None:
    with environments(80, 1000) as (few, many):
        commands = [
            check(f"{path.name.removeprefix('env-')} distributions", "--python", str(path))
            for path in (few, many)
        ]
        found = measure(commands, runs)
    print(table(found))
    ratio = found[commands[1].name].wall / found[commands[0].name].wall
    print(verdict("1,000 distributions / 80", ratio, 2, at_least=False))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=9)
    parser.add_argument("--one-card", default=ONE_CARD, metavar="SCENARIO")
    parser.add_argument("--eight-cards", default=EIGHT_CARDS, metavar="SCENARIO")
    parser.add_argument("--python", default=sys.executable, help="the environment to examine; it needs torch")
    arguments = parser.parse_args()
    print(
        f"load average before: {os.getloadavg()[0]:.1f} on {os.cpu_count()} CPUs; Python {sys.version.split()[0]}\n"
    )
    compile_ours()
    against_collect_env(arguments.runs, arguments.python)
    heavy_imports()
    print()
    cards(arguments.runs, arguments.one_card, arguments.eight_cards)
    print()
    distributions(arguments.runs)


if __name__ == "__main__":
    main()
