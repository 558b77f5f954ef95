"""A constraints file that keeps the torch that is installed, whatever a requirements file asks for. Pure."""

from __future__ import annotations

from doctor.fixes import fix
from doctor.fixes.pip_line import frozen_torch
from doctor.fixes.shell import config_folder, set_variables
from doctor.model import Finding, Fix, Snapshot, Text, WriteFile, t


@fix("requirements-would-replace-torch")
def keep_this_torch(finding: Finding, snapshot: Snapshot) -> Fix | Text:
    folder, lines = config_folder(snapshot), frozen_torch(snapshot)
    if folder is None or not lines:
        return finding.advice or t("which torch is to be kept is not known")
    file = f"{folder}/constraints.txt"
    return Fix(
        id=finding.id,
        subject=finding.subject,
        title=t("keep {what}: pip and uv refuse whatever would replace it", what=", ".join(lines)),
        steps=(
            WriteFile(path=file, content="".join(f"{line}\n" for line in lines)),
            *set_variables(snapshot, {"PIP_CONSTRAINT": file, "UV_CONSTRAINT": file}),
        ),
        touches=("environment", "project"),
        risk=t("it holds for every environment of this user; an installation that needs another torch is refused, with the reason"),
        only_when_asked=True,  # it reaches beyond the environment that was judged
    )  # fmt: skip
