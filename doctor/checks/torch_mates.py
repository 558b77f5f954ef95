"""Checks on the packages that are built for one torch: torchvision, torchaudio, xformers. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from doctor.checks import check, evidence
from doctor.checks.versions import (
    below,
    index_url,
    install,
    installed,
    local_cuda,
    major,
    minor,
    parse,
    public,
    torch_version,
    within,
)
from doctor.model import Finding, Level, Packages, Python, Reading, Text, Torch, ok, t
from doctor.tables import load


def _pinned_torch(packages: Packages, name: str, version: str) -> str | None:
    """Return the torch range that ``name`` was built for: its own metadata, else the table; None: none or unknown."""
    item = packages.get(name)
    for line in (item.requires_dist if item else None) or ():
        head, _, bounds = line.partition(";")[0].strip().partition("torch")
        if not head and bounds.strip(" ()").startswith("=="):
            return bounds.strip(" ()")
    if item and item.requires_dist is not None:
        return None
    if name == "xformers":
        rows = load("extensions")["xformers"]
        return next((row["torch"] for row in rows if row["version"] == public(version)), None)
    return _table_mate(name, version)


def _table_mate(name: str, version: str) -> str | None:
    """Return the torch that a torchvision or torchaudio belongs to; releases that no longer pin one have none."""
    if not below(version, "0.29.1" if name == "torchvision" else "2.11"):
        return None
    rows = load("torch_wheels")["release"]
    mates = [row["version"] for row in rows if row[name] == public(version)]
    return f"=={mates[0]}" if len(mates) == 1 else None


@check("torchvision-torch-mismatch")
def torch_has_its_mates(
    packages: Packages, torch: Reading[Torch], python: Reading[Python]
) -> Iterator[Finding]:
    """Do torchvision and torchaudio belong to the torch that is imported?"""
    found = torch_version(torch, ok(packages))
    parsed = parse(found)
    if not found or parsed is None or parsed.is_prerelease:
        return
    for name in ("torchvision", "torchaudio"):
        have = packages.version(name)
        mate = _pinned_torch(packages, name, have) if have else None
        if have and mate and not within(found, mate):
            same_minor = minor(mate.lstrip("=")) == minor(found)
            yield _mate_finding(
                packages,
                torch,
                python,
                name,
                have,
                mate.lstrip("= "),
                found,
                "warn" if same_minor else "fail",
            )
        elif have and (mate or not below(have, "0.29.1" if name == "torchvision" else "2.11")):
            yield from _mate_of_other_cuda(packages, torch, python, name, have, found)


def _mate_command(torch: Reading[Torch], python: Reading[Python], name: str, found: str) -> Text:
    rows = load("torch_wheels")["release"]
    own = next((row[name] for row in rows if row["version"] == public(found)), None)
    if own is None:
        return t(
            "Install the {name} release that belongs to torch {torch}, with --no-deps so that torch stays as it is.",
            name=name,
            torch=found,
        )
    cuda = torch.value.cuda if torch.value else local_cuda(found)
    command = install(python, f"{name}=={own}") + " --no-deps --force-reinstall" + index_url(cuda)
    return t(
        "Install the one that belongs to this torch: {command}. Where only text is trained, uninstalling {name} is clean too.",
        command=command,
        name=name,
    )


def _mate_finding(
    packages: Packages, torch: Reading[Torch], python: Reading[Python], name: str, have: str, mate: str, found: str, level: Level
) -> Finding:  # fmt: skip
    raises = "operator torchvision::nms does not exist" if name == "torchvision" else "undefined symbol"
    return Finding(
        id="torchvision-torch-mismatch",
        level=level,
        subject=name,
        title=t(
            "{name} {have} belongs to torch {mate}, torch is {torch}: importing it fails ({raises}), and so does transformers, which imports it",
            name=name,
            have=have,
            mate=mate,
            torch=found,
            raises=raises,
        )
        if level == "fail"
        else t(
            "{name} {have} belongs to torch {mate}, torch is {torch}: the same minor, which mostly works, but not a tested pair",
            name=name,
            have=have,
            mate=mate,
            torch=found,
        ),
        evidence=installed(packages, name) + evidence(torch__version=found),
        advice=_mate_command(torch, python, name, found),
    )


def _mate_of_other_cuda(
    packages: Packages, torch: Reading[Torch], python: Reading[Python], name: str, have: str, found: str
) -> Iterator[Finding]:
    """Only another CUDA *major* is trouble; a CPU build beside a CUDA torch lacks the GPU operators."""
    built, cuda = local_cuda(have), torch.value.cuda if torch.value else local_cuda(found)
    if built is None or not cuda or major(built) == major(cuda):
        return
    yield Finding(
        id="torchvision-torch-mismatch",
        level="fail" if built else "warn",
        subject=name,
        title=t(
            "{name} {have} was built for CUDA {built}, torch {torch} for CUDA {cuda}",
            name=name,
            have=have,
            built=built,
            torch=found,
            cuda=cuda,
        )
        if built
        else t(
            "{name} {have} is a CPU build beside torch {torch} for CUDA {cuda}: its operators do not run on the GPU",
            name=name,
            have=have,
            torch=found,
            cuda=cuda,
        ),
        evidence=installed(packages, name) + evidence(torch__version=found, torch__cuda=cuda),
        advice=_mate_command(torch, python, name, found),
    )


@check("xformers-torch-mismatch")
def xformers_has_its_torch(
    packages: Packages, torch: Reading[Torch], python: Reading[Python]
) -> Iterator[Finding]:
    """Was the installed xformers built for the torch that is imported?"""
    have, found = packages.version("xformers"), torch_version(torch, ok(packages))
    wanted = _pinned_torch(packages, "xformers", have) if have else None
    parsed = parse(found)
    if (
        not (have and found and wanted and wanted.startswith("==") and parsed)
        or parsed.is_prerelease
        or within(found, wanted)
    ):
        return
    same_minor = minor(wanted.lstrip("= ")) == minor(found)
    yield Finding(
        id="xformers-torch-mismatch",
        level="warn" if same_minor else "fail",
        subject="xformers",
        title=t(
            "xformers {have} was built for torch {wanted}, torch is {torch}: its C++/CUDA extensions cannot be loaded",
            have=have,
            wanted=wanted.lstrip("= "),
            torch=found,
        )
        if not same_minor
        else t(
            "xformers {have} was built for torch {wanted}, torch is {torch}: its C++/CUDA extensions may not load",
            have=have,
            wanted=wanted.lstrip("= "),
            torch=found,
        ),
        evidence=installed(packages, "xformers") + evidence(torch__version=found),
        advice=_xformers_advice(python, found),
    )


def _xformers_advice(python: Reading[Python], found: str) -> Text:
    rows = load("extensions")["xformers"]
    fitting = [row["version"] for row in rows if within(found, row["torch"])]
    if fitting:
        command = install(python, f"xformers=={fitting[-1]}") + " --no-deps"
        return t(
            "Install the one built for this torch: {command} (or uninstall xformers: torch has its own attention, sdpa).",
            command=command,
        )
    return t(
        "No xformers release names torch {torch}: uninstall xformers, torch has its own attention (sdpa).",
        torch=found,
    )
