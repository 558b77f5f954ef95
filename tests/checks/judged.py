"""What the doctor says of a machine written down in a few words: for tables of (facts, expected)."""

from __future__ import annotations

from typing import Any

from doctor.judge import judge
from doctor.model import Distribution, Environment, Facts, Finding, Packages, Reading, Snapshot, Torch, ok


def findings(**sections: Any) -> list[Finding]:
    """Judge a machine of these sections (a record, or a Reading of one); no check may break over it."""
    readings = {name: one if isinstance(one, Reading) else ok(one) for name, one in sections.items()}
    report = judge(Snapshot(facts=Facts(**readings)))
    assert report.crashed == ()
    return report.findings()


def said(**sections: Any) -> dict[str, str]:
    """Return id -> level (the worst) of everything that is said."""
    worst: dict[str, str] = {}
    for finding in reversed(findings(**sections)):
        worst[finding.id] = finding.level
    return worst


def loud(**sections: Any) -> dict[str, str]:
    """As :func:`said`, above note only: what an innocent machine has none of."""
    return {name: level for name, level in said(**sections).items() if level in ("fail", "warn")}


def the(finding_id: str, **sections: Any) -> Finding:
    """Return the one finding of that id."""
    (found,) = [item for item in findings(**sections) if item.id == finding_id]
    return found


def packages(complete: bool = False, /, **versions: str) -> Packages:
    """``packages(hf_xet="1.2.0")`` has hf-xet 1.2.0."""
    items = tuple(
        Distribution(name=name.replace("_", "-"), version=version) for name, version in versions.items()
    )
    return Packages(items=items, complete=complete)


def torch(version: str, **fields: Any) -> Torch:
    """A torch whose CUDA follows from its local version, as ``+cu124`` and ``+cpu`` say it."""
    local = version.partition("+")[2]
    cuda = f"{local[2:-1]}.{local[-1]}" if local.startswith("cu") else "" if local == "cpu" else None
    return Torch(version=version, cuda=cuda, **fields)


def variables(**values: str) -> Environment:
    return Environment(variables=values)
