"""Checks on compiled packages: built for which torch, which CUDA, which C library, which card. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from doctor.checks import check, evidence
from doctor.checks.versions import below, installed, major, minor, pip
from doctor.model import (
    Environment,
    Evidence,
    Extension,
    Finding,
    Gpus,
    Host,
    Incident,
    Libraries,
    Packages,
    Python,
    Reading,
    Text,
    Torch,
    Workload,
    t,
)
from doctor.tables import load


def _row(packages: Packages, extension: Extension, field: str) -> tuple[Evidence, ...]:
    index = packages.extensions.index(extension)
    return (Evidence(fact=f"packages.extensions[{index}].{field}", value=str(getattr(extension, field))),)


@check("flash-attn-torch-abi-mismatch", "extension-torch-abi-mismatch")
def extensions_fit_torch(
    packages: Packages, torch: Torch, python: Reading[Python], incident: Reading[Incident]
) -> Iterator[Finding]:
    """Were the compiled extensions built for the torch, the CUDA and the C++ ABI that are here?"""
    yield from _refused_by_the_loader(packages, torch, python, incident.value)
    for extension in (*packages.extensions, *_named_by_version(packages)):
        reason = _misfit(extension, torch)
        if reason is None or extension.distribution in ("xformers", "torchvision", "torchaudio"):
            continue
        field, why = reason
        flash = extension.distribution == "flash-attn"
        yield Finding(
            id="flash-attn-torch-abi-mismatch" if flash else "extension-torch-abi-mismatch",
            level="fail" if flash else "warn",
            subject=extension.distribution,
            title=why,
            evidence=(
                *(
                    _row(packages, extension, field)
                    if extension in packages.extensions
                    else installed(packages, extension.distribution)
                ),
                *evidence(torch__version=torch.version, torch__cxx11_abi=torch.cxx11_abi),
            ),
            advice=_flash_advice(extension, torch, python)
            if flash
            else t(
                "Build it again for this torch: {pip} install --no-build-isolation --no-deps --force-reinstall --no-binary {name} {name}",
                pip=pip(python),
                name=extension.distribution,
            ),
        )


# ImportError: .../flash_attn_2_cuda.cpython-311-x86_64-linux-gnu.so: undefined symbol: _ZN3c105ErrorC2E...
_UNDEFINED = re.compile(r"flash_attn\S*\.so: undefined symbol: (_ZN\w*(?:c10|at|torch)\w*)")


def _refused_by_the_loader(
    packages: Packages, torch: Torch, python: Reading[Python], incident: Incident | None
) -> Iterator[Finding]:
    """What a log says where nobody looked into flash-attn's files: a symbol of torch's is not there."""
    lines = incident.log_lines if incident else ()
    found = next(((place, match[1]) for place, line in enumerate(lines) if (match := _UNDEFINED.search(line))), None)  # fmt: skip
    if found is None or not packages.get("flash-attn") or packages.extension("flash-attn"):
        return
    yield Finding(
        id="flash-attn-torch-abi-mismatch",
        level="fail",
        subject="flash-attn",
        title=t(
            "flash-attn {have} asks torch {torch} for a symbol that it does not have ({symbol}): it was built for another torch or C++ ABI",
            have=packages.version("flash-attn") or "",
            torch=torch.version,
            symbol=found[1][:60],
        ),
        evidence=(
            *installed(packages, "flash-attn"),
            Evidence(fact=f"incident.log_lines[{found[0]}]", value=lines[found[0]][:160]),
        ),
        advice=_flash_advice(Extension(distribution="flash-attn"), torch, python),
    )


# 2.5.7+cu122torch2.2cxx11abiFALSE
_BUILT_FOR = re.compile(
    r"\+cu(?P<cuda>\d+)torch(?P<torch>\d+\.\d+)cxx11abi(?P<abi>TRUE|FALSE)", re.IGNORECASE
)


def _named_by_version(packages: Packages) -> Iterator[Extension]:
    """Yield a flash-attn whose version says what it was built for, where nobody looked into its files."""
    item = packages.get("flash-attn")
    match = _BUILT_FOR.search(f"{item.version} {item.direct_url or ''}") if item else None
    if match and packages.extension("flash-attn") is None:
        yield Extension(
            distribution="flash-attn",
            torch=match["torch"],
            cuda=match["cuda"][:2],
            cxx11_abi=match["abi"].upper() == "TRUE",
        )


def _misfit(extension: Extension, torch: Torch) -> tuple[str, Text] | None:
    """Return the field that does not fit and the sentence that says so. Unknown on either side fits."""
    name, have = extension.distribution, torch.version
    if extension.torch and minor(have) and extension.torch != minor(have):
        return "torch", t(
            "{name} was built for torch {built}, torch is {torch}: undefined symbol on import",
            name=name,
            built=extension.torch,
            torch=have,
        )
    if (
        extension.cxx11_abi is not None
        and torch.cxx11_abi is not None
        and extension.cxx11_abi != torch.cxx11_abi
    ):
        return "cxx11_abi", t(
            "{name} was built with the {built} C++ ABI, torch {torch} with the {own} one: undefined symbol on import",
            name=name,
            built=_abi(extension.cxx11_abi),
            own=_abi(torch.cxx11_abi),
            torch=have,
        )
    if extension.cuda and torch.cuda and major(extension.cuda) != major(torch.cuda):
        return "cuda", t(
            "{name} was built for CUDA {built}, torch {torch} for CUDA {cuda}",
            name=name,
            built=extension.cuda,
            torch=have,
            cuda=torch.cuda,
        )
    return None


def _abi(new: bool) -> str:
    return "new (cxx11abiTRUE)" if new else "old (cxx11abiFALSE)"


def _flash_advice(extension: Extension, torch: Torch, python: Reading[Python]) -> Text:
    abi = {True: "cxx11abiTRUE", False: "cxx11abiFALSE", None: ""}[torch.cxx11_abi]
    return t(
        'From flash-attention\'s release page take the file whose name holds cu{cuda}torch{torch}{abi}, or build it here ({pip} install --no-build-isolation --no-binary flash-attn flash-attn); or train with attn_implementation="sdpa", which needs neither.',
        cuda=major(torch.cuda) or "",
        torch=minor(torch.version) or torch.version,
        abi=abi,
        pip=pip(python),
    )


@check("flash-attn-unsupported-gpu")
def flash_attention_runs_on_the_cards(
    packages: Packages, gpus: Gpus, workload: Reading[Workload]
) -> Iterator[Finding]:
    """Have the cards the compute capability that flash-attn 2 needs?"""
    floor = load("extensions")["flash_attn"]["capability_min"]
    too_old = [
        card for card in gpus.items if card.compute_capability and below(card.compute_capability, floor)
    ]
    asked = bool(workload.value and "flash-attention-2" in workload.value.features)
    if not too_old or not (packages.get("flash-attn") or asked):
        return
    card = too_old[0]
    yield Finding(
        id="flash-attn-unsupported-gpu",
        level="fail" if asked else "note",
        subject=card.name,
        title=t(
            "flash_attention_2 is asked for, and needs compute capability {floor} or higher: {card} has {capability}",
            floor=floor,
            card=card.name,
            capability=card.compute_capability,
        )
        if asked
        else t(
            "flash-attn is installed but cannot run on {card}: it needs compute capability {floor} or higher, the card has {capability}",
            floor=floor,
            card=card.name,
            capability=card.compute_capability,
        ),
        evidence=(
            *installed(packages, "flash-attn"),
            Evidence(
                fact=f"gpus.items[{gpus.items.index(card)}].compute_capability", value=card.compute_capability
            ),
        ),
        advice=t('Train with attn_implementation="sdpa".'),
    )


@check("glibc-too-old-for-wheel")
def c_library_is_new_enough(packages: Packages, host: Host, python: Reading[Python]) -> Iterator[Finding]:
    """Do compiled packages ask for a newer C library than this system has?"""
    for extension in packages.extensions:
        needed = extension.needs_glibc
        if needed and host.glibc and below(host.glibc, needed):
            yield Finding(
                id="glibc-too-old-for-wheel",
                level="fail",
                subject=extension.distribution,
                title=t(
                    "{name} needs GLIBC_{needed}, this system has {have}: version `GLIBC_{needed}' not found on import",
                    name=extension.distribution,
                    needed=needed,
                    have=host.glibc,
                ),
                evidence=(*_row(packages, extension, "needs_glibc"), *evidence(host__glibc=host.glibc)),
                advice=t(
                    'Build it on this system ({pip} install --no-build-isolation --no-binary {name} {name}) or choose an image with Ubuntu 22.04 or newer. Without flash-attn, attn_implementation="sdpa" does the same work. Leave the system\'s own C library alone.',
                    pip=pip(python),
                    name=extension.distribution,
                ),
                cause_of=("flash-attn-torch-abi-mismatch",) if extension.distribution == "flash-attn" else (),
            )


# ImportError: /usr/lib/x86_64-linux-gnu/libstdc++.so.6: version `GLIBCXX_3.4.29' not found (required by /env/x.so)
_GLIBCXX_MISSING = re.compile(r"(\S*libstdc\+\+\.so\.6): version [`']GLIBCXX_[\d.]+' not found")


@check("libstdcxx-too-old")
def cxx_library_is_new_enough(
    packages: Packages, libraries: Libraries, environment: Reading[Environment], incident: Reading[Incident]
) -> Iterator[Finding]:
    """Is the libstdc++ that the loader finds first new enough for the compiled packages?"""
    copies = [item for item in libraries.items if item.soname == "libstdc++.so.6" and item.newest_symbol]
    first = next(
        (item for item in copies if item.found_by == "LD_LIBRARY_PATH"),
        copies[0] if len(copies) == 1 else None,
    )
    lines = incident.value.log_lines if incident.value else ()
    named = next((match[1] for line in lines if (match := _GLIBCXX_MISSING.search(line))), None)
    first = next((item for item in copies if item.path == named), first)
    if first is None:
        return
    has = (first.newest_symbol or "").rpartition("_")[2]
    for extension in packages.extensions:
        needed = extension.needs_glibcxx
        if not needed or not below(has, needed):
            continue
        better = next(
            (item for item in copies if not below((item.newest_symbol or "").rpartition("_")[2], needed)),
            None,
        )
        index = libraries.items.index(first)
        yield Finding(
            id="libstdcxx-too-old",
            level="fail",
            subject=first.path,
            title=t(
                "{name} needs GLIBCXX_{needed}, the libstdc++ that is loaded first ({path}) ends at {has}",
                name=extension.distribution,
                needed=needed,
                path=first.path,
                has=has,
            ),
            evidence=(
                *_row(packages, extension, "needs_glibcxx"),
                Evidence(
                    fact=f"libraries.items[{index}].newest_symbol",
                    value=f"{first.path} {first.newest_symbol}",
                ),
                *evidence(
                    environment__variables__LD_LIBRARY_PATH=environment.value.get("LD_LIBRARY_PATH")
                    if environment.value
                    else None
                ),
            ),
            advice=_cxx_advice(first.path, better.path if better else None, environment),
        )


def _cxx_advice(path: str, better: str | None, environment: Reading[Environment]) -> Text:
    folder = path.rpartition("/")[0]
    value = environment.value.get("LD_LIBRARY_PATH") if environment.value else None
    if value is None or folder not in value.split(":"):
        return t(
            "Use an environment with a newer libstdc++ (conda install -c conda-forge libstdcxx-ng), and leave the system's libraries as they are."
        )
    rest = ":".join(part for part in value.split(":") if part and part != folder)
    command = f"export LD_LIBRARY_PATH={rest}" if rest else "unset LD_LIBRARY_PATH"
    if better:
        return t(
            "Take {folder} off the loader's path: {command}. {better} is new enough and is found then.",
            folder=folder,
            command=command,
            better=better,
        )
    return t("Take {folder} off the loader's path: {command}.", folder=folder, command=command)
