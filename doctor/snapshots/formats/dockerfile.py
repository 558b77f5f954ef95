"""``Dockerfile``: base image by C library and CUDA, exact requirements, the run's own variables, no driver. Pure."""

from __future__ import annotations

from shlex import quote

from doctor.model import Snapshot
from doctor.snapshots.formats.images import install_lines, recipe
from doctor.snapshots.formats.rendered import Rendered
from doctor.snapshots.formats.words import comment, head_lines

_FILE = "/opt/requirements.txt"


def render(snapshot: Snapshot) -> Rendered:
    made = recipe(snapshot)
    lines = [*head_lines(snapshot), comment(str(made.base.why))]
    lines += [f"ARG BASE={made.base.name}", "FROM ${BASE}"]
    words = [
        f"    {quote(line)} \\" for line in made.requirements
    ]  # no here-document: not every builder and linter knows it
    lines += ["RUN printf '%s\\n' \\", *words, f"    > {_FILE}"]
    lines += [f"RUN {line}" for line in install_lines(made, _FILE)]
    lines += [f'ENV {name}="{value}"' for name, value in made.variables]
    lines += [] if made.base.has_python else ['ENV PATH="/opt/venv/bin:${PATH}"']
    return Rendered(text="\n".join(lines) + "\n", lost=made.lost, file_name="Dockerfile")
