"""Snapshots in a few words, for tables about comparing, converting and restoring them."""

from __future__ import annotations

from typing import Any

from doctor.model import (
    Content,
    Distribution,
    Driver,
    Environment,
    Facts,
    Gpu,
    Gpus,
    Host,
    Packages,
    Provenance,
    Python,
    Reading,
    Snapshot,
    Torch,
    ok,
)


def dist(name: str, version: str, tags: str = "py3-none-any", **fields: Any) -> Distribution:
    return Distribution(name=name, version=version, wheel_tags=tuple(tags.split()), **fields)


def content(name: str, version: str, record: str = "", **fields: Any) -> Content:
    """``record`` is one hex digit, standing for a digest."""
    return Content(
        name=name, version=version, record_sha256=f"sha256:{record * 64}" if record else "", **fields
    )


def box(
    *items: Distribution,
    contents: tuple[Content, ...] = (),
    python: str = "3.11.7",
    torch: Torch | None = None,
    host: Host | None = None,
    cards: tuple[str, ...] = (),
    driver: str | None = None,
    variables: dict[str, str] | None = None,
    **provenance: Any,
) -> Snapshot:
    facts: dict[str, Reading[Any]] = {
        "host": ok(host or Host(arch="x86_64", glibc="2.35")),
        "python": ok(Python(version=python, executable="/opt/venv/bin/python")),
        "packages": ok(Packages(items=items)),
        "provenance": ok(Provenance(contents=contents, **provenance)),
        "environment": ok(Environment(variables=variables or {})),
        "torch": ok(torch) if torch else Reading(status="absent"),
        "driver": ok(Driver(version=driver)) if driver else Reading(status="absent"),
        "gpus": ok(Gpus(items=tuple(Gpu(index=n, name=name) for n, name in enumerate(cards)))) if cards else Reading(status="absent"),
    }  # fmt: skip
    return Snapshot(taken_at="2026-11-30T00:00:00+00:00", tool="rundoctor 0.1.0", facts=Facts(**facts))
