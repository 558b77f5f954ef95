"""The smallest change that makes packages fit each other, the installed torch frozen by a constraint. Pure."""

from __future__ import annotations

from doctor.fixes import fix
from doctor.fixes.pip_line import Asked, install_step, name_of, parse_pip, risk_of, why_not_writable, word
from doctor.model import Finding, Fix, InstallPackages, Snapshot, Text, t

_TOUCHES = ("python", "packages", "torch")


def _packages_fix(finding: Finding, snapshot: Snapshot, step: InstallPackages, only_when_asked: bool = False) -> Fix | Text:  # fmt: skip
    python = snapshot.facts.python.value
    refused = why_not_writable(python)
    if refused:
        return refused
    what, gone = " ".join(step.requirements), " ".join(step.remove)
    return Fix(
        id=finding.id,
        subject=finding.subject,
        title=t("take out {gone}, then install {what}", gone=gone, what=what)
        if what and gone
        else t("install {what}; torch stays as it is", what=what)
        if what
        else t("take out {gone}", gone=gone),
        steps=(step,),
        touches=_TOUCHES,
        risk=risk_of(python),
        only_when_asked=only_when_asked,
    )


@fix(
    "transformers-torch-too-old", "transformers-requirement-out-of-range", "accelerate-transformers-mismatch",
    "peft-transformers-mismatch", "peft-accelerate-mismatch", "dependent-library-too-old", "numpy2-torch-abi",
    "torchvision-torch-mismatch", "xformers-torch-mismatch",
)  # fmt: skip
def what_the_advice_says(finding: Finding, snapshot: Snapshot) -> Fix | Text:
    """Install what the advice installs; where nothing fits, take out what has no partner."""
    command = word(finding, "command")
    if command:
        asked = parse_pip(command)
        step = install_step(snapshot, asked, _imports(snapshot, asked))
        return _packages_fix(finding, snapshot, step) if step.requirements else finding.advice or _unknown()
    if finding.id == "torchvision-torch-mismatch":
        return finding.advice or _unknown()
    name = word(finding, "name") or finding.subject
    return _packages_fix(finding, snapshot, _removal(snapshot, (name,)), only_when_asked=True)


_IMPORTED = {"transformers": "transformers", "accelerate": "accelerate", "peft": "peft", "tokenizers": "tokenizers", "numpy": "numpy", "torchvision": "torchvision", "torchaudio": "torchaudio", "huggingface-hub": "huggingface_hub", "datasets": "datasets", "safetensors": "safetensors"}  # fmt: skip
"""Distribution -> module, for those whose import is worth a look afterwards."""


def _imports(snapshot: Snapshot, asked: Asked) -> tuple[str, ...]:
    """Return what must import afterwards: what is installed, and the torch it stands on."""
    names = [_IMPORTED[name_of(one)] for one in asked.requirements if name_of(one) in _IMPORTED]
    return (*(("torch",) if snapshot.facts.torch.value else ()), *names)


def _removal(snapshot: Snapshot, names: tuple[str, ...]) -> InstallPackages:
    imports = ("torch",) if snapshot.facts.torch.value else ()
    return install_step(snapshot, Asked((), None, False, False), imports, remove=names)


def _unknown() -> Text:
    return t("which version would fit is not known")


@fix("declared-requirement-not-met", "needed-package-missing")
def install_one(finding: Finding, snapshot: Snapshot) -> Fix | Text:
    wanted = word(finding, "wanted") or word(finding, "name")
    if not wanted:
        return finding.advice or _unknown()
    asked = Asked((wanted,), None, False, False)
    return _packages_fix(finding, snapshot, install_step(snapshot, asked, _imports(snapshot, asked)))


@fix("datasets-refuses-loading-scripts")
def older_datasets(finding: Finding, snapshot: Snapshot) -> Fix | Text:
    asked = parse_pip(word(finding, "command"))
    return _packages_fix(finding, snapshot, install_step(snapshot, asked, _imports(snapshot, asked)), only_when_asked=True)  # fmt: skip


@fix("nvidia-wheel-version-drift")
def pinned_nvidia_wheels(finding: Finding, snapshot: Snapshot) -> Fix | Text:
    asked = Asked(tuple(word(finding, "wanted").split()), None, no_deps=True, force=False)
    return _packages_fix(finding, snapshot, install_step(snapshot, asked, ("torch",)))


@fix("mixed-cuda-wheel-majors")
def one_major_of_nvidia_wheels(finding: Finding, snapshot: Snapshot) -> Fix | Text:
    """The removal takes files that both majors share, so torch's own are installed again."""
    asked = Asked(tuple(word(finding, "keep").split()), None, no_deps=True, force=True)
    step = install_step(snapshot, asked, ("torch",), remove=tuple(word(finding, "old").split()))
    return _packages_fix(finding, snapshot, step)


@fix("leftover-nvidia-wheels")
def no_leftover_wheels(finding: Finding, snapshot: Snapshot) -> Fix | Text:
    return _packages_fix(finding, snapshot, _removal(snapshot, tuple(word(finding, "names").split())))


@fix("onnxruntime-cpu-shadows-gpu")
def one_onnxruntime(finding: Finding, snapshot: Snapshot) -> Fix | Text:
    asked = Asked((f"onnxruntime-gpu=={word(finding, 'gpu')}",), None, False, False)
    step = install_step(snapshot, asked, ("onnxruntime",), remove=("onnxruntime", "onnxruntime-gpu"))
    return _packages_fix(finding, snapshot, step)


@fix("onnxruntime-cuda-major-mismatch")
def onnxruntime_for_this_cuda(finding: Finding, snapshot: Snapshot) -> Fix | Text:
    bounds = word(finding, "bounds")
    if not bounds:
        return finding.advice or _unknown()
    asked = Asked((f"onnxruntime-gpu{bounds}",), None, False, False)
    return _packages_fix(finding, snapshot, install_step(snapshot, asked, ("onnxruntime",)))


@fix("distribution-files-missing")
def install_again(finding: Finding, snapshot: Snapshot) -> Fix | Text:
    name, version = word(finding, "name"), word(finding, "version")
    asked = Asked((f"{name}=={version}",), None, no_deps=True, force=True)
    return _packages_fix(finding, snapshot, install_step(snapshot, asked, _imports(snapshot, asked)))
