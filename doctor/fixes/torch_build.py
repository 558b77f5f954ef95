"""The torch build for this driver and these cards, with its mates, in place of the one that does not run. Pure."""

from __future__ import annotations

from doctor.checks.versions import local_cuda
from doctor.fixes import fix
from doctor.fixes.pip_line import Asked, install_step, name_of, parse_pip, risk_of, why_not_writable, word
from doctor.fixes.shell import config_folder
from doctor.model import Finding, Fix, RemovePath, Snapshot, Step, Text, WriteFile, t

_TOUCHES = ("python", "packages", "torch", "libraries")


@fix(
    "torch-cpu-only-build", "torch-rocm-build", "gpu-arch-not-in-torch-build", "driver-too-old-for-torch-cuda"
)
def torch_for_driver(finding: Finding, snapshot: Snapshot) -> Fix | Text:
    """The check has chosen the build (see checks/advice.py); without one its advice says what would help."""
    python = snapshot.facts.python.value
    command = word(finding, "command")
    if not command:
        return finding.advice or t("no torch build that is known runs on this driver with these cards")
    refused = why_not_writable(python)
    if refused:
        return refused
    asked = parse_pip(command)
    imports = tuple(name_of(one) for one in asked.requirements)
    return Fix(
        id=finding.id,
        subject=finding.subject,
        title=t("install {what} in place of torch {have}", what=" ".join(asked.requirements), have=_have(snapshot)),
        steps=(install_step(snapshot, asked, imports), *_guard(snapshot, asked)),
        touches=_TOUCHES,
        risk=risk_of(python) or t("some GB are downloaded; what is installed now is kept until `doctor journal --drop`, and put back when the new torch does not import"),
    )  # fmt: skip


def _have(snapshot: Snapshot) -> str:
    return snapshot.facts.torch.value.version if snapshot.facts.torch.value else "-"


def _guard(snapshot: Snapshot, asked: Asked) -> tuple[Step, ...]:
    """Where a guard keeps the old torch, it has to keep the new one from now on."""
    environment, folder = snapshot.facts.environment.value, config_folder(snapshot)
    file = f"{folder}/constraints.txt"
    if not environment or environment.get("PIP_CONSTRAINT") != file:
        return ()
    return (WriteFile(path=file, content="".join(f"{one}\n" for one in asked.requirements)),)


@fix("torch-install-broken")
def torch_again(finding: Finding, snapshot: Snapshot) -> Fix | Text:
    """The lost wheels alone where they can be named; else the same build once more, remains of an install put aside."""
    python, packages = snapshot.facts.python.value, snapshot.facts.packages.value
    refused = why_not_writable(python)
    if refused:
        return refused
    if command := word(finding, "command"):
        asked = parse_pip(command)
        return Fix(
            id=finding.id,
            subject=finding.subject,
            title=t("install {what} again, torch stays as it is", what=" ".join(asked.requirements)),
            steps=(install_step(snapshot, asked, ("torch",)),),
            touches=_TOUCHES,
            risk=risk_of(python),
        )
    torch = snapshot.facts.torch.value
    version = (torch.version if torch else "") or (packages.version("torch") if packages else "") or ""
    if not version:
        return t(
            "which torch was meant is not known any more: `doctor recommend` names the one for this machine"
        )
    cuda = local_cuda(version)
    index = (
        None
        if cuda is None
        else f"https://download.pytorch.org/whl/{'cu' + cuda.replace('.', '') if cuda else 'cpu'}"
    )
    leftovers = [path for path in (packages.leftovers if packages else ()) if "orch" in path.lower()]
    asked = Asked((f"torch=={version}",), index, no_deps=True, force=True)
    return Fix(
        id=finding.id,
        subject=finding.subject,
        title=t("install torch {version} again, without touching anything else", version=version),
        steps=(*(RemovePath(path=path) for path in leftovers), install_step(snapshot, asked, ("torch",))),
        touches=_TOUCHES,
        risk=risk_of(python),
    )  # fmt: skip
