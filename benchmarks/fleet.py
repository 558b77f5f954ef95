"""How long a fleet of recorded snapshots takes to judge: ``python -m benchmarks.fleet FOLDER [COUNT]``.

FOLDER holds snapshots (tests/machines does); they are taken in turn until there are COUNT (default 64). Reading the files
and judging them are told apart; CPU seconds, since wall seconds on a shared machine say little.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from doctor.fleet import judge_fleet
from doctor.fleet_records import Member
from doctor.machine import load_snapshot


def main() -> None:
    paths = sorted(Path(sys.argv[1]).glob("*.json"))
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 64
    begun, begun_wall = time.process_time(), time.perf_counter()
    members = [
        Member(name=f"rank {rank}", snapshot=load_snapshot(paths[rank % len(paths)])) for rank in range(count)
    ]
    read = time.process_time()
    report = judge_fleet(members)
    judged, judged_wall = time.process_time(), time.perf_counter()
    print(
        f"{count} snapshots of {len(paths)} machines: read in {read - begun:.2f} s, judged in {judged - read:.2f} s of CPU "
        f"({judged_wall - begun_wall:.2f} s by the clock); {len(report.differences)} differences, {len(report.shared)} findings"
    )


if __name__ == "__main__":
    main()
