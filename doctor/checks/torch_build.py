"""Checks on the torch build: has it CUDA at all, and code for these cards. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from doctor.checks import check, evidence
from doctor.checks.advice import is_arm
from doctor.checks.gpu import working
from doctor.checks.torch_choice import (
    build_with_code,
    build_with_cuda,
    builds_for,
    capability,
    for_a_coming_card,
)
from doctor.model import (
    Driver,
    Environment,
    Evidence,
    Finding,
    Gpu,
    Gpus,
    Host,
    Packages,
    Python,
    Reading,
    Torch,
    t,
)  # fmt: skip
from doctor.tables import load
from doctor.tables.drivers import number
from doctor.tables.torch_builds import (
    arch_of,
    is_newer_than_table,
    runs_by_ptx,
    runs_natively,
)


@check("torch-cpu-only-build", "torch-rocm-build")
def torch_has_cuda(
    torch: Torch,
    gpus: Gpus,
    driver: Reading[Driver],
    host: Reading[Host],
    python: Reading[Python],
    packages: Reading[Packages],
) -> Iterator[Finding]:
    """Was the installed torch built with CUDA, where there is a GPU to use?"""
    cards = [gpu for gpu in working(gpus) if gpu.name or gpu.compute_capability]
    if torch.cuda != "" or not cards:
        return
    known = driver.value or Driver()
    wanted = list(dict.fromkeys(filter(None, map(capability, cards))))
    coming = for_a_coming_card(wanted, driver, host, python, packages)
    builds = builds_for(torch, wanted, driver, host, python)
    proof = evidence(torch__version=torch.version, torch__cuda='""', driver__version=known.version)
    proof += (Evidence(fact="gpus.items[0].name", value=cards[0].name),)
    if torch.hip:
        yield Finding(
            id="torch-rocm-build",
            level="fail",
            subject="torch",
            title=t(
                "torch {torch} was built for AMD cards (ROCm {hip}), here is {gpu}",
                torch=torch.version,
                hip=torch.hip,
                gpu=cards[0].name or "an NVIDIA GPU",
            ),
            evidence=(*proof, *evidence(torch__hip=torch.hip)),
            advice=build_with_cuda(torch, builds, host, python, packages, coming),
            cause_of=("torch-sees-no-gpu",),
            fix="torch-for-driver",
        )
        return
    yield Finding(
        id="torch-cpu-only-build", level="fail", subject="torch",
        title=t("torch {torch} was built without CUDA: it will not use {gpu}", torch=torch.version, gpu=cards[0].name or "the GPU"),
        evidence=proof,
        advice=build_with_cuda(torch, builds, host, python, packages, coming),
        cause_of=("torch-sees-no-gpu",), fix="torch-for-driver",
    )  # fmt: skip


@check("gpu-arch-not-in-torch-build", "gpu-runs-by-ptx-jit")
def torch_has_code_for_the_cards(
    torch: Torch,
    gpus: Gpus,
    driver: Reading[Driver],
    host: Reading[Host],
    python: Reading[Python],
    packages: Reading[Packages],
    environment: Reading[Environment],
) -> Iterator[Finding]:
    """Has the installed torch code for every card that it may use?"""
    listed = torch.arch_list
    row = None if listed or is_arm(host) else arch_of(torch.version, torch.cuda)
    arches = listed or (row.names if row else ())
    if not torch.cuda or not arches:
        return
    certain = row is None or row.confidence != "memory"
    done: set[str] = set()
    for index, gpu in enumerate(gpus.items):
        mine = capability(gpu)
        if not mine or gpu.error or mine in done or runs_natively(arches, mine):
            continue
        done.add(mine)
        proof = (
            Evidence(fact=f"gpus.items[{index}].compute_capability", value=gpu.compute_capability or f"{mine} (by its name)"),
            *evidence(torch__version=torch.version, torch__cuda=torch.cuda),
            Evidence(fact="torch.arch_list", value=" ".join(arches) + ("" if listed else " (release table)")),
        )  # fmt: skip
        if runs_by_ptx(arches, mine) and _driver_compiles(torch, driver):
            yield _by_ptx(gpu, mine, torch, proof)
            continue
        hidden = _is_hidden(gpu, gpus, environment)
        wanted = list(dict.fromkeys(filter(None, map(capability, working(gpus)))))
        yield Finding(
            id="gpu-arch-not-in-torch-build",
            level="note" if hidden else "fail" if certain else "warn",
            subject=gpu.name or mine,
            title=t(
                "torch {torch} (CUDA {cuda}) has no code for {gpu} ({capability}); it was built for {arches}",
                torch=torch.version, cuda=torch.cuda, gpu=gpu.name or "this card", capability=mine, arches=" ".join(arches),
            ),
            evidence=proof,
            advice=build_with_code(
                builds_for(torch, wanted, driver, host, python), gpu, mine, arches, len(gpus.items), python, packages, host,
                for_a_coming_card(wanted, driver, host, python, packages),
            ),
            cause_of=("torch-sees-no-gpu", "gpu-matmul-fails", "nccl-round-trip-fails"),
            fix="torch-for-driver",
        )  # fmt: skip


def _driver_compiles(torch: Torch, driver: Reading[Driver]) -> bool:
    """A driver compiles the intermediate code of its own CUDA version and of older ones, not of newer ones."""
    serves = number(driver.value.cuda_version if driver.value else None)
    return not serves or serves >= number(torch.cuda)


def _by_ptx(gpu: Gpu, mine: str, torch: Torch, proof: tuple[Evidence, ...]) -> Finding:
    return Finding(
        id="gpu-runs-by-ptx-jit",
        level="note",
        subject=gpu.name or mine,
        title=t("torch {torch} has no binaries for {gpu} ({capability}): the driver compiles its code at the first start, which takes minutes and happens once", torch=torch.version, gpu=gpu.name or "this card", capability=mine),
        evidence=proof,
        advice=t("Keep the compiled code on a disk that lasts (CUDA_CACHE_PATH, default ~/.nv/ComputeCache)."),
    )  # fmt: skip


def _is_hidden(gpu: Gpu, gpus: Gpus, environment: Reading[Environment]) -> bool:
    """CUDA_VISIBLE_DEVICES names other cards of a mixed box, and not this one."""
    value = environment.value.get("CUDA_VISIBLE_DEVICES") if environment.value else None
    entries = [entry.strip() for entry in (value or "").split(",")]
    if len(gpus.items) < 2 or not all(entry.isdigit() for entry in entries):
        return False
    return str(gpu.index) not in entries


@check("torch-unknown-to-this-version")
def torch_is_in_the_table(torch: Torch) -> Iterator[Finding]:
    """Is torch newer than everything this version of the doctor knows?"""
    if number(torch.version) and is_newer_than_table(torch.version):
        yield Finding(
            id="torch-unknown-to-this-version", level="note", subject="torch",
            title=t("torch {torch} is newer than this version of the doctor (tables of {date}): it is judged by what its files say and by the rules of its family", torch=torch.version, date=load("torch_builds")["compiled"]),
            evidence=evidence(torch__version=torch.version),
        )  # fmt: skip
