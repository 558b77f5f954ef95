"""A machine with cards in a few words, for tables about drivers, cards and torch builds."""

from __future__ import annotations

from typing import Any

from doctor.model import Container, Driver, Gpu, Gpus, Platform


def cards(
    name: str = "NVIDIA GeForce RTX 4090", capability: str = "8.9", count: int = 1, **fields: Any
) -> Gpus:
    return Gpus(items=tuple(gpu(name, capability, index, **fields) for index in range(count)))


def gpu(name: str = "NVIDIA GeForce RTX 4090", capability: str = "8.9", index: int = 0, **fields: Any) -> Gpu:
    return Gpu(index=index, name=name, compute_capability=capability, **fields)


def driver(version: str | None = "550.90.07", cuda: str | None = None, **fields: Any) -> Driver:
    return Driver(version=version, cuda_version=cuda, **fields)


INSIDE = Container(inside=True, host_pid_namespace=False)
OUTSIDE = Container(inside=False)


def rented(name: str, **fields: Any) -> Platform:
    return Platform(name=name, **fields)
