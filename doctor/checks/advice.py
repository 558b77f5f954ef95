"""Which torch builds run on a driver and its cards, and the command that installs one. Pure; asked by checks and recommend."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from doctor.checks.versions import index_url, pip, public
from doctor.model import Container, Gpus, Host, Packages, Platform, Python, Reading, Record
from doctor.tables import load
from doctor.tables.drivers import Number, minimum_driver, newest_known_capability, number, runs_cuda
from doctor.tables.torch_builds import Release, arch_of, minor, releases, runs_by_ptx, runs_natively

__all__ = ["TorchBuild", "best_torch_builds", "minimum_driver"]


class TorchBuild(Record, frozen=True):
    """One published torch wheel: the release and the CUDA it was built for."""

    torch: str
    cuda: str
    on_pypi: bool
    """A plain ``pip install torch==VERSION`` brings this one."""
    confidence: str
    native: bool = True
    """False: a card runs it only through code that the driver compiles at the first start."""

    @property
    def tag(self) -> str:
        """``cu126``, as the index and the version's local part name it."""
        return f"cu{self.cuda.replace('.', '')}"


def best_torch_builds(
    driver: str | None,
    capabilities: Sequence[str],
    torch: str | None = None,
    *,
    driver_cuda: str | None = None,
    python: str | None = None,
    windows: bool = False,
) -> tuple[TorchBuild, ...]:
    """Return the builds that run here on every card, best first; empty when none does.

    Best is: the release that is installed, then the nearest minor, the newer of two; with none installed, the newest. In
    a release the newest CUDA that the driver knows itself, then the oldest beyond it (which runs by minor version
    compatibility). ``driver`` None asks for no driver in particular, ``python`` limits to releases with wheels for it.
    """
    found = []
    for release in releases():
        if _has_wheel(release.version, python):
            found += [
                build
                for cuda in release.cuda
                if (driver is None or runs_cuda(driver, driver_cuda, cuda, windows) is True)
                and (build := _build(release, cuda, capabilities)) is not None
            ]
    return tuple(sorted(found, key=lambda build: _rank(build, torch, driver_cuda)))


def newer_than_the_tables(capabilities: Sequence[str]) -> str:
    """Return the first capability that no table of ours knows yet; empty: all are known."""
    return next((one for one in capabilities if number(one) > newest_known_capability()), "")


def likeliest_build(
    driver: str | None, driver_cuda: str | None, python: str | None, windows: bool = False
) -> TorchBuild | None:
    """Return the newest build that this driver runs: what a card of a coming architecture most likely needs."""
    return next(iter(best_torch_builds(driver, (), driver_cuda=driver_cuda, python=python, windows=windows)), None)  # fmt: skip


def _build(release: Release, cuda: str, capabilities: Sequence[str]) -> TorchBuild | None:
    """Return the build if every card runs it; None when one does not, or the table does not know."""
    arch = arch_of(release.version, cuda)
    if arch is None or arch.confidence == "memory":
        return None
    known = [one for one in capabilities if len(number(one)) >= 2]
    native = [runs_natively(arch.names, capability) for capability in known]
    # Intermediate code would start on a card that nobody knows yet; that an old release is right for it, nobody can say.
    compiled = arch.names if arch.confidence == "verified" and not newer_than_the_tables(known) else ()
    if not all(ok or runs_by_ptx(compiled, one) for ok, one in zip(native, known, strict=True)):
        return None
    return TorchBuild(
        torch=release.version,
        cuda=cuda,
        on_pypi=cuda == release.pypi_cuda,
        confidence="mixed" if "mixed" in (arch.confidence, release.confidence) else arch.confidence,
        native=all(native),
    )


def _rank(
    build: TorchBuild, torch: str | None, driver_cuda: str | None
) -> tuple[bool, int, bool, Number, Number]:
    mine = public(torch) if torch else ""
    newest_first = tuple(-part for part in number(build.torch))
    beyond = bool(driver_cuda) and number(build.cuda) > number(driver_cuda)
    cuda = number(build.cuda) if beyond else tuple(-part for part in number(build.cuda))
    return (
        build.torch != mine,
        _steps(build.torch, mine),
        not build.native,
        newest_first,
        (int(beyond), *cuda),
    )


def _steps(version: str, mine: str) -> int:
    """Return how many minors lie between two releases; 0 when there is nothing to stay close to."""
    minors = list(dict.fromkeys(minor(release.version) for release in releases()))
    if minor(mine) not in minors:
        return 0
    return abs(minors.index(minor(version)) - minors.index(minor(mine)))


def _has_wheel(version: str, python: str | None) -> bool:
    """Return whether ``version`` has wheels for ``python``; a release that the table does not list has."""
    mine = number(python)[:2]
    rows = (row for row in load("torch_wheels")["release"] if row["version"] == version)
    row: dict[str, Any] | None = next(rows, None)
    if not mine or row is None:
        return True
    return number(row["python_min"]) <= mine <= number(row["python_max"])


def capabilities_of(gpus: Reading[Gpus]) -> tuple[str, ...]:
    """Return the distinct capabilities of the cards that answer."""
    found = [gpu.compute_capability for gpu in (gpus.value.items if gpus.value else ()) if not gpu.error]
    return tuple(dict.fromkeys(one for one in found if one))


_MATES = ("torchvision", "torchaudio")


def install_torch(build: TorchBuild, python: Reading[Python], packages: Reading[Packages]) -> str:
    """Return the pip command that puts this build, and its mates where they are installed, in place of another one.

    The local part (``+cu118``) makes pip replace a build of the same release, which ``==2.1.0`` would count as met.
    """
    rows = (row for row in load("torch_wheels")["release"] if row["version"] == build.torch)
    mates: dict[str, Any] = next(rows, {})
    wanted = [f"torch=={build.torch}+{build.tag}"]
    for name in _MATES:
        if packages.value and packages.value.get(name) and mates.get(name):
            own_release = name != "torchaudio" or minor(mates[name]) == minor(build.torch)
            wanted.append(f"{name}=={mates[name]}" + (f"+{build.tag}" if own_release else ""))
    return f"{pip(python)} install {' '.join(wanted)}{index_url(build.cuda)}"


def is_windows_driver(host: Reading[Host]) -> bool:
    """Whether the driver's number is a Windows one: on Windows itself, and under WSL."""
    known = host.value
    return bool(known and (known.wsl or (known.wheel_platform or "").startswith("win")))


def is_arm(host: Reading[Host]) -> bool:
    """Whether it is a 64-bit ARM machine: its wheels are other files, with other architectures, than the table's."""
    known = host.value
    return bool(known and (known.arch == "aarch64" or (known.wheel_platform or "").endswith("aarch64")))


def is_tenant(container: Reading[Container], platform: Reading[Platform]) -> bool:
    """Whether the driver belongs to someone else: in a container, or on a rental platform."""
    return bool((container.value and container.value.inside) or (platform.value and platform.value.name))
