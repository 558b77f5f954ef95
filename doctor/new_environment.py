"""A fresh environment with the torch for this machine and what goes with it, as a fix: shown, carried out, undone alike. Pure."""

from __future__ import annotations

from doctor.fixes.pip_line import parse_pip
from doctor.model import Fix, InstallPackages, Run, Snapshot, Step, Text, t
from doctor.recommend import Recommendation, recommend, target_of

BESIDE = ("accelerate", "datasets", "safetensors", "msgspec")
"""What a training run imports beside torch and transformers; msgspec is what our runner reads its plan with."""
_ROOM_BYTES = {"cuda": 9 << 30, "cpu": 2 << 30}


def recommended_environment(
    snapshot: Snapshot, folder: str, python: str, version: str | None = None
) -> Fix | Text:
    """Return the steps that make ``folder`` with ``python``, or why no torch fits this machine.

    ``version`` is that interpreter's, where it is not the one that the snapshot shows.
    """
    import msgspec

    target = target_of(snapshot)
    found = recommend(msgspec.structs.replace(target, python=version or target.python, installed_torch=None))
    command = found.commands.get("pip")
    if not command:
        return (
            found.ways_out[0]
            if found.ways_out
            else t("no torch build that is known runs on this driver with these cards")
        )
    return Fix(
        id="environment",
        subject=folder,
        title=t("make {folder}: {what}", folder=folder, what=" ".join(parse_pip(command).requirements)),
        steps=_steps(found, folder, python),
        risk=t("some GB are downloaded; nothing outside of the folder is touched"),
    )  # fmt: skip


def _steps(found: Recommendation, folder: str, python: str) -> tuple[Step, ...]:
    """The torch family first, from the index that has its builds; then the rest, with torch frozen."""
    asked, inside = parse_pip(found.commands["pip"]), f"{folder}/bin/python"
    names = tuple(one.partition("==")[0] for one in asked.requirements)
    cpu = (asked.index_url or "").endswith("/cpu")
    torch = InstallPackages(
        python=inside, requirements=asked.requirements, index_url=asked.index_url, imports=names,
        needs_bytes=_ROOM_BYTES["cpu" if cpu else "cuda"],
    )  # fmt: skip
    rest = InstallPackages(
        python=inside, requirements=((found.transformers or "transformers"), *BESIDE), frozen=asked.requirements,
        imports=("torch", "transformers", "accelerate", "datasets"),
    )  # fmt: skip
    return (Run(argv=(python, "-m", "venv", folder), undo=("rm", "-r", folder)), torch, rest)
