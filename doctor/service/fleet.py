"""Several machines judged together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from doctor.service.diagnosis import examine_for_run

if TYPE_CHECKING:
    from doctor.fleet_records import FleetReport, Member


def judge_fleet(members: Sequence[Member]) -> FleetReport:
    """Return where machines differ that should be alike, and what they share."""
    from doctor.fleet import judge_fleet

    return judge_fleet(members)


def gather_fleet(python: str | None, limit_s: float, environ: Mapping[str, str]) -> list[Member]:
    """Examine the machine of this rank, which ``environ`` names, and hand it to rank 0, which gets all of them. Raises LaunchError, BadPython."""
    from doctor.fleet_gather import gather
    from doctor.model_work import interpreter

    return gather(examine_for_run(python), interpreter(python), limit_s, environ)
