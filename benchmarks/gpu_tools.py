"""gpustat, nvitop and our screen on the same stand-in NVML: which facts of a machine each of them shows.

``python -m benchmarks.gpu_tools --tools VENV`` where VENV has both tools. Each row is one fact of a scenario and the pattern
that a screen with it matches; what a tool prints is searched for it. Prints the table of benchmarks/README.md.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.nvml.build import environment

LIMIT_S = 40.0
TOOLS = ("gpustat -cpuFP", "nvitop -1", "doctor (full screen)")


@dataclass(frozen=True)
class Fact:
    """``patterns``: what gpustat, nvitop and we would print; one pattern for all where it is the same."""

    scenario: str
    says: str
    patterns: tuple[str, ...]

    def pattern(self, tool: int) -> str:
        return self.patterns[tool] if len(self.patterns) > 1 else self.patterns[0]


FACTS = (
    Fact("8xh100", "all eight cards at once", (r"(?s)\[0\].*\[7\]", r"(?s)\n\|   0 .*\n\|   7 ", r"(?s)\n *0 +97 %.*\n *7 +0 %")),
    Fact("8xh100", "utilisation of card 0: 97 %", (r"\b97 ?%",)),
    Fact("8xh100", "its memory: 61234 MiB of 81559 MiB (59.8 GiB)", (r"61234 / 81559", r"59\.80GiB / 79\.65GiB", r"59\.8 GB / 79\.6 GB")),
    Fact("8xh100", "its power against the limit: 668 of 700 W", (r"668 ?W? / +700 ?W",)),
    Fact("8xh100", "its SM clock: 1980 MHz", (r"1980 ?MHz",)),
    Fact("8xh100", "a process of another container (pid 481516) on card 0", (r"481516",)),
    Fact("8xh100", "said to be outside this container, not merely gone", (r"outside this container|other container",)),
    Fact("8xh100", "its address on the bus, its performance state", (r"00000000:04:00\.0(?s:.)*\bP0\b",)),
    Fact("mig", "the card is cut into MIG instances", (r"MIG", r"MIG M\.(?s:.)*Enabled", r"MIG +on")),
    Fact("mig", "utilisation cannot be read, with NVML's reason", (r"Not Supported",)),
    Fact("lost-card", "card 2 is lost", (r"(?i)\[2\].*lost", r"(?i)   2 .*lost", r"(?i)lost")),
    Fact("lost-card", "card 3 was lost while it was asked (not a missing feature)", (r"(?i)\[3\].*lost", r"(?i)   3 .*lost", r"(?is)\n *3 .*lost")),
    Fact("lost-card", "two uncorrected ECC errors on card 1", (r"(?i)ecc.*2|\| +2 \|", r"\| +2 \|", r"(?i)ecc.*\b2\b")),
    Fact("throttled", "the card lowers its clock for heat", (r"(?i)thermal|hot|slowdown",)),
    Fact("throttled", "why card 1 lowers its clock: its power limit, and the machine asks for less power", (r"(?i)power.?cap|at its power limit|power-brake",)),
    Fact("mismatch", "library and driver do not match", (r"(?i)mismatch",)),
    Fact("hung", "an answer, though the driver hangs", (r"(?i)no answer|not answered|hang",)),
)  # fmt: skip


def screen_of(tool: int, venv: Path, scenario: str) -> str:
    """Return what a tool prints on a scenario; "" where it never ends."""
    argv = {
        0: [str(venv / "bin" / "gpustat"), "--no-color", "-cpuFP"],
        1: [str(venv / "bin" / "nvitop"), "-1", "--no-unicode"],
        2: [sys.executable, "-m", "benchmarks.gpu_tools", "--ours"],
    }[tool]
    variables = {**environment(scenario), "DOCTOR_LANG": "en", "COLUMNS": "160", "LINES": "48"}
    try:
        done = subprocess.run(argv, env=variables, capture_output=True, timeout=LIMIT_S, check=False)
    except subprocess.TimeoutExpired:
        return ""
    shown = done.stdout + (done.stderr if done.returncode and tool < 2 else b"")
    return shown.decode("utf-8", "replace")


async def our_screen() -> str:
    """Return the GPU pane of a process's screen, as a person has it, on whatever NVML is there."""
    from doctor.process_watch import ProcessWatcher
    from doctor.tui.app import DoctorApp
    from doctor.tui.live import LiveSource

    target = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(120)"])
    watcher = ProcessWatcher(target.pid)
    try:
        app = DoctorApp(LiveSource(None, watcher), run=watcher.name)
        async with app.run_test(size=(100, 80)) as pilot:
            await pilot.press("f6")
            for _ in range(300):
                await pilot.pause(0.1)
                strips = app.screen._compositor.render_strips()
                text = "\n".join(strip.text.rstrip() for strip in strips)
                if "resident" in text and "no sample yet" not in text:
                    break
            return text
    finally:
        target.kill()
        target.wait()
        watcher.close()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu_tools", description=__doc__)
    parser.add_argument("--tools", type=Path, help="an environment with gpustat and nvitop")
    parser.add_argument("--ours", action="store_true", help="print our own screen")
    parser.add_argument("--screens", type=Path, help="keep what was printed in this folder")
    options = parser.parse_args()
    if options.ours:
        print(asyncio.run(our_screen()))
        return 0
    if options.tools is None:
        parser.error("name an environment with gpustat and nvitop: --tools VENV")
    screens = {
        (tool, scenario): screen_of(tool, options.tools, scenario)
        for scenario in dict.fromkeys(fact.scenario for fact in FACTS)
        for tool in range(len(TOOLS))
    }
    for (tool, scenario), text in screens.items() if options.screens else ():
        (options.screens / f"{scenario}-{TOOLS[tool].split()[0]}.txt").write_text(text, "utf-8")
    print(f"| stand-in | the fact | {' | '.join(TOOLS)} |\n| --- | --- |{' --- |' * len(TOOLS)}")
    for fact in FACTS:
        cells = [_cell(fact, tool, screens[tool, fact.scenario]) for tool in range(len(TOOLS))]
        print(f"| {fact.scenario} | {fact.says} | {' | '.join(cells)} |")
    return 0


def _cell(fact: Fact, tool: int, text: str) -> str:
    if not text.strip():
        return "never ends"
    return "shown" if re.search(fact.pattern(tool), text) else "**missing**"


if __name__ == "__main__":
    sys.exit(main())
