"""Checks on whether files can be written where a run and its libraries write. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath

from doctor.checks import check, evidence
from doctor.checks.storage import mount_evidence
from doctor.model import (
    Environment,
    Evidence,
    Finding,
    Level,
    Packages,
    Place,
    Reading,
    Storage,
    Text,
    Workload,
    t,
)

ENOSPC, EROFS, EACCES = 28, 30, 13
"""errno numbers of Linux."""
_HUB_FOLDERS = {
    "hf_home": "HF_HOME",
    "hf_hub_cache": "HF_HUB_CACHE",
    "hf_datasets_cache": "HF_DATASETS_CACHE",
}


@check("target-not-writable")
def targets_can_be_written(
    storage: Storage,
    workload: Reading[Workload],
    environment: Reading[Environment],
    packages: Reading[Packages],
) -> Iterator[Finding]:
    """Can the run, and the libraries it uses, write where they mean to?"""
    for index, probe in enumerate(storage.write_probes):
        if probe.errno in (ENOSPC, EROFS, EACCES):
            proof = (Evidence(fact=f"storage.write_probes[{index}].errno", value=str(probe.errno)),)
            yield _finding(probe.path, "fail", _refused(probe.path, probe.errno), proof)
    tried = bool(storage.write_probes)
    if workload.value and workload.value.output_dir and not tried:
        yield from _output(storage, workload.value.output_dir)
    offline = environment.value is not None and environment.value.get("HF_HUB_OFFLINE") in (
        "1",
        "true",
        "TRUE",
    )
    unused = packages.value is not None and packages.value.is_missing("huggingface-hub") is not False
    if not offline and not unused:
        yield from _caches(storage)


def _output(storage: Storage, output: str) -> Iterator[Finding]:
    """The output folder on a read-only disk certainly, below a working directory without rights probably refuses."""
    cwd = storage.place("cwd")
    path = output if output.startswith("/") else str(PurePosixPath(cwd.path, output)) if cwd else ""
    mount = storage.mount(path) if path else None
    if mount is not None and mount.read_only:
        yield _finding(path, "fail", _refused(path, EROFS), mount_evidence(storage, mount, "read_only"))
    elif cwd and cwd.writable is False and _is_directly_below(path, cwd.path):
        index = storage.places.index(cwd)
        title = t("{path} cannot be made: this user may not write to {folder}", path=path, folder=cwd.path)
        yield _finding(path, "warn", title, evidence(**{f"storage__places[{index}]__writable": False}))


def _is_directly_below(path: str, folder: str) -> bool:
    """Deeper folders may be there already, with rights of their own."""
    return str(PurePosixPath(path).parent) == folder.rstrip("/")


def _caches(storage: Storage) -> Iterator[Finding]:
    """The hub's folders, each only where the one above it is not named already."""
    named: list[str] = []
    for index, place in enumerate(storage.places):
        variable = _HUB_FOLDERS.get(place.name)
        if (
            variable
            and place.writable is False
            and not any(f"{place.path}/".startswith(f"{one}/") for one in named)
        ):
            named.append(place.path)
            yield _cache(storage, index, place, variable)


def _cache(storage: Storage, index: int, place: Place, variable: str) -> Finding:
    proof = evidence(
        **{f"storage__places[{index}]__writable": False, f"storage__places[{index}]__path": place.path}
    )
    title = t("{path} cannot be written, and {variable} leads there", path=place.path, variable=variable)
    roomy = _elsewhere(storage)
    advice = t("export {variable}={folder}/{name}", variable=variable, folder=roomy, name=PurePosixPath(place.path).name)  # fmt: skip
    return Finding(
        id="target-not-writable", level="warn", subject=place.path, title=title, evidence=proof, advice=advice
    )


def _elsewhere(storage: Storage) -> str:
    """Return the home, or the temporary folder where that cannot be written either."""
    home = storage.place("home")
    return home.path if home and home.writable else "/tmp"


def _finding(path: str, level: Level, title: Text, proof: tuple[Evidence, ...]) -> Finding:
    return Finding(
        id="target-not-writable",
        level=level,
        subject=path,
        title=title,
        evidence=proof,
        advice=t(
            "Let the run write to a folder that takes files (doctor run --run-dir FOLDER/NAME): try  touch FOLDER/x && rm FOLDER/x"
        ),
    )


def _refused(path: str, errno: int) -> Text:
    if errno == ENOSPC:
        return t("{path} cannot be written: no space left on device (errno 28)", path=path)
    if errno == EROFS:
        return t("{path} cannot be written: the file system is read-only (errno 30)", path=path)
    return t("{path} cannot be written: permission denied (errno 13)", path=path)
