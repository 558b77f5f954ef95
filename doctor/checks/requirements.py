"""Checks on requirements: those of what is installed, and those that lie in the working directory. Pure.

Markers are evaluated for the *examined* interpreter and machine. What cannot be known of it leaves a requirement unjudged.
"""

from __future__ import annotations

from collections.abc import Iterator

from packaging.markers import Marker
from packaging.requirements import InvalidRequirement, Requirement

from doctor.checks import check, evidence
from doctor.checks.versions import installed, parse, pip, public, ranges, torch_version, within
from doctor.model import (
    Distribution,
    Evidence,
    Finding,
    Host,
    Incident,
    Packages,
    Project,
    Python,
    Reading,
    Text,
    Torch,
    Workload,
    ok,
    t,
)
from doctor.tables import load

CORE = ("torch", "transformers", "tokenizers", "accelerate", "datasets", "peft", "safetensors", "huggingface-hub")
"""What a training run imports: a broken requirement of these is said, of others only counted."""


def normal(name: str) -> str:
    return name.lower().replace("_", "-").replace(".", "-")


def marker_environment(python: Python | None, host: Host | None) -> dict[str, str]:
    """Return what is known of the examined interpreter under the names of PEP 508; what is unknown is left out."""
    known: dict[str, str] = {"extra": ""}
    version = parse(python.version if python else None)
    if version and python and python.version:
        known |= {"python_version": f"{version.major}.{version.minor}", "implementation_name": "cpython"}
        known |= {"platform_python_implementation": "CPython"}
        if python.version.count(".") >= 2:
            known |= {"python_full_version": python.version, "implementation_version": python.version}
    if host and not host.wheel_platform:
        known |= {"sys_platform": "linux", "platform_system": "Linux", "os_name": "posix"}
    if host and host.arch:
        known["platform_machine"] = host.arch
    return known


def applies(marker: Marker | None, known: dict[str, str]) -> bool | None:
    """Return whether ``marker`` holds on the examined machine; None when it asks for something unknown."""
    if marker is None:
        return True
    text = str(marker)
    asked = {
        name
        for name in (
            "python_version", "python_full_version", "os_name", "sys_platform", "platform_release", "platform_system",
            "platform_version", "platform_machine", "platform_python_implementation", "implementation_name",
            "implementation_version",
        )
        if name in text
    }  # fmt: skip
    if not asked <= set(known):
        return None
    return marker.evaluate(dict(known))  # every name it asks for is given, so nothing comes from our own machine


def read(line: str) -> Requirement | None:
    try:
        return Requirement(line.partition(" #")[0].strip())
    except InvalidRequirement:
        return None


def declared(item: Distribution, known: dict[str, str]) -> Iterator[Requirement]:
    """Yield the requirements of ``item`` that certainly apply here; those of extras do not."""
    for line in item.requires_dist or ():
        requirement = read(line)
        if requirement and "extra" not in str(requirement.marker) and applies(requirement.marker, known):
            yield requirement


# Judged by a check of their own.
_ELSEWHERE = ("torch", "triton", "cuda-toolkit", "cuda-bindings", "cuda-pathfinder", "setuptools", "pip", "wheel")
_CHECKED_BY_TRANSFORMERS = ("tokenizers", "huggingface-hub", "numpy", "safetensors", "regex", "requests", "tqdm", "filelock", "packaging")  # fmt: skip


@check("declared-requirement-not-met")
def requirements_of_the_installed_are_met(
    packages: Packages, python: Reading[Python], host: Reading[Host]
) -> Iterator[Finding]:
    """Are the requirements that installed packages declare met (what ``pip check`` asks)?"""
    known = marker_environment(python.value, host.value)
    of_others = []
    for item in packages.items:
        if packages.get(item.name) is not item:
            continue
        for requirement in declared(item, known):
            name = normal(requirement.name)
            if name in _ELSEWHERE or name.startswith("nvidia-"):
                continue
            if item.name == "transformers" and name in _CHECKED_BY_TRANSFORMERS and packages.get(name):
                continue
            trouble = _trouble(packages, name, requirement)
            if trouble and item.name in CORE:
                yield _unmet(packages, python, item, requirement, trouble)
            elif trouble:
                of_others.append(f"{item.name} {item.version}: {requirement.name}{requirement.specifier} ({trouble})")
    if of_others:
        yield Finding(
            id="declared-requirement-not-met",
            level="note",
            subject=f"{len(of_others)}",
            title=t("{count} requirements of other packages are not met, as pip check would list; often harmless: {first}", count=len(of_others), first="; ".join(of_others[:3])),
            evidence=evidence(packages__complete=packages.complete),
            advice=t("See the list with {pip} check; change something only if one of these packages fails.", pip=pip(python)),
        )  # fmt: skip


def _trouble(packages: Packages, name: str, requirement: Requirement) -> str:
    have = packages.version(name)
    if have:
        return have if within(have, str(requirement.specifier)) is False else ""
    return "-" if packages.is_missing(name) and packages.complete else ""


def _unmet(
    packages: Packages, python: Reading[Python], item: Distribution, requirement: Requirement, trouble: str
) -> Finding:
    wanted = f"{requirement.name}{requirement.specifier}"
    return Finding(
        id="declared-requirement-not-met",
        level="warn",
        subject=normal(requirement.name),
        title=t("{name} {version} needs {wanted}, which is not installed", name=item.name, version=item.version, wanted=wanted)
        if trouble == "-"
        else t("{name} {version} needs {wanted}, {have} is installed", name=item.name, version=item.version, wanted=wanted, have=trouble),
        evidence=installed(packages, item.name, normal(requirement.name)),
        advice=t("{pip} install \"{wanted}\"", pip=pip(python), wanted=wanted),
    )  # fmt: skip


@check("requirements-would-replace-torch")
def project_keeps_the_torch(
    project: Project, torch: Torch, packages: Reading[Packages], python: Reading[Python], host: Reading[Host]
) -> Iterator[Finding]:
    """Would installing the requirements in the working directory replace the torch that is installed?"""
    known = marker_environment(python.value, host.value)
    have = torch.version or (packages.value.version("torch") if packages.value else None)
    parsed = parse(have)
    if not have or parsed is None:
        return
    for index, row in enumerate(project.requirements):
        requirement = read(row.line)
        if requirement is None or not applies(requirement.marker, known):
            continue
        wanted = _torch_it_brings(requirement)
        if wanted and within(have, wanted) is False:
            yield Finding(
                id="requirements-would-replace-torch",
                level="warn",
                subject=row.file or row.line,
                title=t(
                    "{line} in {file} would replace the installed torch {have} by {wanted}",
                    line=row.line.strip(), file=row.file, have=have, wanted=f"torch{wanted}",
                ),
                evidence=(Evidence(fact=f"project.requirements[{index}].line", value=row.line), *evidence(torch__version=have)),
                advice=t(
                    "Install the rest and keep this torch: take that line out, then echo \"torch=={version}\" > keep.txt and {pip} install -r {file} -c keep.txt",
                    version=public(have), pip=pip(python), file=row.file or "requirements.txt",
                ),
            )  # fmt: skip


def _torch_it_brings(requirement: Requirement) -> str | None:
    """Return the torch range that a requirement line asks for, itself or through an exact pin of a companion."""
    name, bounds = normal(requirement.name), str(requirement.specifier)
    if name == "torch":
        return bounds or None
    pins = [one.version for one in requirement.specifier if one.operator == "=="]
    if not pins:
        return None
    if name == "xformers":
        return next((row["torch"] for row in load("extensions")["xformers"] if row["version"] == public(pins[0])), None)
    if name == "torchvision":
        rows = load("torch_wheels")["release"]
        mates = [row["version"] for row in rows if row["torchvision"] == public(pins[0])]
        return f"=={mates[0]}" if len(mates) == 1 and within(pins[0], "<0.29.1") else None
    return None


@check("python-version-no-wheel")
def python_has_wheels(
    project: Project, python: Python, host: Reading[Host], torch: Reading[Torch], packages: Reading[Packages]
) -> Iterator[Finding]:
    """Do the pinned torch and transformers have wheels for this Python on this platform?"""
    version = parse(python.version)
    if version is None:
        return
    ours = f"{version.major}.{version.minor}"
    platform = (host.value.wheel_platform if host.value else None) or ""
    for index, row in enumerate(project.requirements):
        requirement = read(row.line)
        if requirement is None or not requirement.specifier:
            continue
        name = normal(requirement.name)
        have = torch_version(torch, packages) if name == "torch" else packages.value.version(name) if packages.value else None
        if have and within(have, str(requirement.specifier)):
            continue
        pythons = _pythons_of(name, str(requirement.specifier), platform, ours)
        if pythons:
            yield Finding(
                id="python-version-no-wheel",
                level="fail",
                subject=name,
                title=t(
                    "{line} has no wheel for Python {python} on {platform}; it has them for Python {pythons}",
                    line=row.line.strip(), python=ours, platform=platform or "Linux", pythons=pythons,
                ),
                evidence=(Evidence(fact=f"project.requirements[{index}].line", value=row.line), *evidence(python__version=python.version, host__wheel_platform=platform or None)),
                advice=_python_advice(name, ours, pythons, platform),
            )  # fmt: skip


def _pythons_of(name: str, bounds: str, platform: str, ours: str) -> str:
    """Return the Pythons that the releases within ``bounds`` have wheels for, when ours is none of them; else empty.

    Bounds that a release newer than the table could meet say nothing of a Python that is too new.
    """
    if name == "transformers":
        return _pythons_of_transformers(bounds, ours)
    if name != "torch":
        return ""
    rows = [row for row in load("torch_wheels")["release"] if within(row["version"], bounds)]
    spans = [(row["python_min"], _newest_python(row, platform)) for row in rows]
    if not spans or any(_key(low) <= _key(ours) <= _key(high) for low, high in spans):
        return ""
    too_old = all(_key(ours) < _key(low) for low, _ in spans)
    if _open_above(bounds) and not too_old:
        return ""
    low, high = min((low for low, _ in spans), key=_key), max((high for _, high in spans), key=_key)
    return f"{low}+" if _open_above(bounds) else f"{low} - {high}"


def _newest_python(row: dict[str, str], platform: str) -> str:
    return row.get("python_max_other", row["python_max"]) if platform.startswith(("win", "macos")) else row["python_max"]


def _pythons_of_transformers(bounds: str, ours: str) -> str:
    rows = [row for row in load("transformers")["minor"] if within(row["version"], bounds)]
    floors = {row["requires_python"] for row in rows if row["requires_python"]}
    if len(floors) != 1 or len(rows) == 0 or any(not row["requires_python"] for row in rows):
        return ""
    floor = floors.pop()
    return floor if within(f"{ours}.99", floor) is False else ""


def _open_above(bounds: str) -> bool:
    wanted = ranges(bounds)
    return wanted is not None and "9999.0" in wanted


def _key(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def _python_advice(name: str, ours: str, pythons: str, platform: str) -> Text:
    rows = load("torch_wheels")["release"]
    fitting = [row["version"] for row in rows if _key(row["python_min"]) <= _key(ours) <= _key(_newest_python(row, platform))]
    if name == "torch" and fitting:
        return t(
            "Make an environment with Python {pythons}, or take a torch that has wheels for Python {python}: {first} to {last}. It is not the network or the index.",
            pythons=pythons, python=ours, first=fitting[0], last=fitting[-1],
        )  # fmt: skip
    return t("Make an environment with Python {pythons}. It is not the network or the index.", pythons=pythons)


@check("needed-package-missing")
def the_run_finds_its_packages(
    packages: Packages, workload: Reading[Workload], incident: Reading[Incident], python: Reading[Python], torch: Reading[Torch]
) -> Iterator[Finding]:
    """Is a package missing that the run imports or that its calls need?"""
    wanted = dict(_wanted(packages, workload.value, torch_version(torch, ok(packages))))
    for name, why in wanted.items():
        if packages.is_missing(name):
            yield Finding(
                id="needed-package-missing",
                level="fail",
                subject=name,
                title=why,
                evidence=evidence(packages__not_installed=name if name in packages.not_installed else None, packages__complete=packages.complete, workload__source=workload.value.source or None if workload.value else None),
                advice=t("{pip} install {name}", pip=pip(python), name=name),
            )  # fmt: skip


_MODULES = {
    "sklearn": "scikit-learn", "PIL": "pillow", "cv2": "opencv-python", "yaml": "pyyaml", "bs4": "beautifulsoup4",
    "skimage": "scikit-image", "sentence_transformers": "sentence-transformers", "flash_attn": "flash-attn",
    "huggingface_hub": "huggingface-hub", "google.protobuf": "protobuf", "tensorboard": "tensorboard",
} | {
    name: name
    for name in (
        "accelerate", "bitsandbytes", "datasets", "deepspeed", "evaluate", "jieba", "matplotlib", "nltk", "numpy", "onnx",
        "onnxruntime", "onnxscript", "pandas", "peft", "safetensors", "scipy", "seaborn", "sentencepiece", "seqeval",
        "tensorboardX", "tiktoken", "timm", "tokenizers", "torchaudio", "torchmetrics", "torchvision", "tqdm",
        "transformers", "trl", "wandb", "xformers",
    )
}  # fmt: skip
"""Module -> distribution, for modules that are certainly not files of the project."""


def _wanted(packages: Packages, workload: Workload | None, torch: str | None) -> Iterator[tuple[str, Text]]:
    for module in workload.imports if workload else ():
        if module in _MODULES and not (module == "onnxruntime" and packages.get("onnxruntime-gpu")):
            name = normal(_MODULES[module])
            if not (name == "opencv-python" and packages.get("opencv-python-headless")):
                yield name, t("the run imports {module}, and {name} is not installed", module=module, name=name)
    features = workload.features if workload else ()
    if "onnx-export-default-exporter" in features and within(torch, ">=2.9"):
        yield "onnxscript", t("torch.onnx.export of torch {torch} imports onnxscript by default, which is not installed", torch=torch or "")
    if "trainer" in features and packages.get("transformers"):
        yield "accelerate", t("the Trainer of transformers needs accelerate, which is not installed")
