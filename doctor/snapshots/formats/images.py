"""Which image to build on, and the words a Dockerfile and an Apptainer definition share. Pure."""

from __future__ import annotations

import re

from doctor.model import Record, Snapshot, Text, t
from doctor.snapshots.formats.rendered import FormatError
from doctor.snapshots.formats.requirements import lost_by, option_lines, requirement_lines
from doctor.snapshots.formats.sources import Source, sources
from doctor.snapshots.formats.words import python_minor
from doctor.snapshots.wheel_tags import newest_glibc
from doctor.tables import load
from doctor.tables.drivers import at_least


class Image(Record, frozen=True):
    """A base image; ``has_python`` False: it comes without the Python that is wanted."""

    name: str
    has_python: bool
    why: Text


class Recipe(Record, frozen=True):
    """What an image is made of."""

    base: Image
    python: str
    requirements: tuple[str, ...]
    variables: tuple[tuple[str, str], ...]
    lost: tuple[Text, ...]


def recipe(snapshot: Snapshot) -> Recipe:
    """Return what to build. Raises FormatError: no packages, no Python, or no image fits."""
    python, found = python_minor(snapshot), sources(snapshot)
    if not python or not found:
        raise FormatError(t("the snapshot does not say which Python and which packages it is for"))
    usable = [one for one in found if one.kind != "none"]
    return Recipe(
        base=base_image(snapshot, python, usable),
        python=python,
        requirements=(*option_lines(usable), *requirement_lines(usable)),
        variables=tuple(_variables(snapshot)),
        lost=(
            *lost_by(found),
            t("the image is named by its tag: pin its digest once you have built on it"),
            t("no driver is in it: the host's must run this CUDA (`doctor snapshot check`)"),
        ),
    )


def base_image(snapshot: Snapshot, python: str, found: list[Source]) -> Image:
    """Return the oldest image whose C library is as new as that machine's, or new enough; one that compiles CUDA where something is compiled."""
    host, torch = snapshot.facts.host.value, snapshot.facts.torch.value
    packages = snapshot.facts.packages.value
    newest = newest_glibc(packages)[0] if packages else None
    wanted = f"{newest[0]}.{newest[1]}" if newest else "2.28"
    floor = host.glibc if host and host.glibc and at_least(host.glibc, wanted) else wanted
    table = load("base_images")
    compiles = any(one.kind in ("vcs", "editable") for one in found)
    if compiles and torch and torch.cuda:
        row = next((row for row in table["cuda"] if row["cuda"] == torch.cuda and at_least(row["glibc"], floor)), None)  # fmt: skip
        if row is not None:
            return Image(name=row["image"], has_python=False, why=t("packages are built from source, with CUDA {cuda}", cuda=torch.cuda))  # fmt: skip
    rows = [row for row in table["python"] if at_least(row["glibc"], wanted)]
    if not rows:
        raise FormatError(t("no image in the table has glibc {glibc}", glibc=wanted))
    row = next((row for row in rows if at_least(row["glibc"], floor)), rows[-1])
    return Image(
        name=f"python:{python}-slim-{row['debian']}",
        has_python=True,
        why=t("its wheels want glibc {floor}, this image has {glibc}", floor=wanted, glibc=row["glibc"]),
    )


# Of the allow-listed variables, those that belong to the run and hold no path of that machine.
_KEPT = re.compile(
    r"PYTHONHASHSEED|CUBLAS_WORKSPACE_CONFIG|TOKENIZERS_PARALLELISM|PYTORCH_(CUDA_)?ALLOC_CONF|NCCL_\w+|OMP_NUM_THREADS|MKL_\w+"
)
_PLAIN_VALUE = re.compile(r"[A-Za-z0-9_:,.=+-]{1,200}")


def _variables(snapshot: Snapshot) -> list[tuple[str, str]]:
    environment = snapshot.facts.environment.value
    rows = sorted(environment.variables.items()) if environment else []
    return [(name, value) for name, value in rows if _KEPT.fullmatch(name) and _PLAIN_VALUE.fullmatch(value)]


def install_lines(made: Recipe, file: str) -> list[str]:
    """Return the shell lines that make the environment in the image; uv brings the Python where the image has none."""
    git = ["apt-get update && apt-get install -y --no-install-recommends git ca-certificates && rm -rf /var/lib/apt/lists/*"]  # fmt: skip
    from_git = any("git+" in line for line in made.requirements)
    if made.base.has_python:
        return [*(git if from_git else []), f"python -m pip install --no-cache-dir --no-deps -r {file}"]
    return [
        "apt-get update && apt-get install -y --no-install-recommends git ca-certificates curl && rm -rf /var/lib/apt/lists/*",
        "curl -LsSf https://astral.sh/uv/install.sh | env UV_INSTALL_DIR=/usr/local/bin sh",
        f"uv venv --python {made.python} /opt/venv",
        f"uv pip install --python /opt/venv/bin/python --no-deps --index-strategy unsafe-best-match --no-build-isolation -r {file}",
    ]
