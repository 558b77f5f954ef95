"""An Apptainer definition: the same image and requirements as the Dockerfile, for clusters. Pure."""

from __future__ import annotations

from doctor.model import Snapshot, t
from doctor.snapshots.formats.images import install_lines, recipe
from doctor.snapshots.formats.rendered import Rendered
from doctor.snapshots.formats.words import comment, head_lines

_END = "END_OF_REQUIREMENTS"
_FILE = "/opt/requirements.txt"


def render(snapshot: Snapshot) -> Rendered:
    made = recipe(snapshot)
    lines = [
        "Bootstrap: docker",
        f"From: {made.base.name}",
        "",
        *head_lines(snapshot),
        comment(str(made.base.why)),
    ]
    lines += [comment("run with --nv: the host's driver is mounted in, and wants a C library as new as its own"), "", "%post"]  # fmt: skip
    lines += [f"cat > {_FILE} <<'{_END}'", *made.requirements, _END, *install_lines(made, _FILE), ""]
    variables = [f'    export {name}="{value}"' for name, value in made.variables]
    variables += [] if made.base.has_python else ['    export PATH="/opt/venv/bin:$PATH"']
    lines += ["%environment", *variables, ""] if variables else []
    lost = (*made.lost, t("under --nv the host's driver libraries may want a newer glibc than the image has"))
    return Rendered(text="\n".join(lines).rstrip() + "\n", lost=lost, file_name="environment.def")
