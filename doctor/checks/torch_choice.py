"""Which torch to take instead: the advice of the checks on the build, told from the tables. Pure."""

from __future__ import annotations

from doctor.checks.advice import (
    TorchBuild,
    best_torch_builds,
    install_torch,
    is_arm,
    is_windows_driver,
    likeliest_build,
    newer_than_the_tables,
)
from doctor.checks.versions import pip
from doctor.model import Driver, Gpu, Host, Packages, Python, Reading, Text, Torch, t
from doctor.tables.drivers import number
from doctor.tables.gpus import capability_of
from doctor.tables.torch_builds import lowest, public


def capability(gpu: Gpu) -> str:
    """Return the card's capability (``8.9``), from the driver or else by its name; empty when neither tells."""
    told = gpu.compute_capability
    return told if len(number(told)) >= 2 else capability_of(gpu.name)


def builds_for(
    torch: Torch, wanted: list[str], driver: Reading[Driver], host: Reading[Host], python: Reading[Python]
) -> tuple[TorchBuild, ...]:
    """Return the builds that run the cards of capability ``wanted`` here, the nearest to the installed torch first."""
    if is_arm(host):
        return ()
    known = driver.value or Driver()
    return best_torch_builds(
        known.version or known.kernel_module_version,
        wanted,
        torch.version,
        driver_cuda=known.cuda_version,
        python=python.value.version if python.value else None,
        windows=is_windows_driver(host),
    )  # fmt: skip


def for_a_coming_card(
    wanted: list[str],
    driver: Reading[Driver],
    host: Reading[Host],
    python: Reading[Python],
    packages: Reading[Packages],
) -> Text | None:
    """Say that nobody here knows which build holds a card newer than the tables; None: all cards are known."""
    card, known = newer_than_the_tables(wanted), driver.value or Driver()
    if not card or is_arm(host):
        return None
    build = likeliest_build(
        known.version or known.kernel_module_version,
        known.cuda_version,
        python.value.version if python.value else None,
        is_windows_driver(host),
    )
    return t(
        "Compute capability {card} is newer than this version of the doctor, which knows no build with code for it. The newest torch is the likeliest: {what}; `python -c 'import torch; print(torch.cuda.get_arch_list())'` then shows what it holds.",
        card=card,
        what=install_torch(build, python, packages) if build else f"{pip(python)} install -U torch",
    )


def build_with_cuda(
    torch: Torch,
    builds: tuple[TorchBuild, ...],
    host: Reading[Host],
    python: Reading[Python],
    packages: Reading[Packages],
    coming: Text | None = None,
) -> Text:
    """Say how a torch without CUDA for these cards is replaced."""
    if is_arm(host):
        return t(
            "On ARM a plain pip install torch brings a CPU build for many releases. Take the CUDA wheel from the index of a CUDA that the driver serves ({pip} install --force-reinstall torch --index-url https://download.pytorch.org/whl/cu128), or NVIDIA's PyTorch container.",
            pip=pip(python),
        )
    if coming is not None:
        return coming
    if not builds:
        return t(
            "Install a torch build with CUDA; none of those this version of the doctor knows runs on this driver with these cards."
        )
    return t(
        "Put the CUDA build of it in its place: {command} (a plain pip install torch counts the CPU build as met and changes nothing).",
        command=install_torch(builds[0], python, packages),
    ) if builds[0].torch == public(torch.version) else t(
        "Put a build with CUDA in its place: {command} (a plain pip install torch counts the CPU build as met and changes nothing).",
        command=install_torch(builds[0], python, packages),
    )  # fmt: skip


def build_with_code(
    builds: tuple[TorchBuild, ...],
    gpu: Gpu,
    mine: str,
    arches: tuple[str, ...],
    cards: int,
    python: Reading[Python],
    packages: Reading[Packages],
    host: Reading[Host],
    coming: Text | None = None,
) -> Text:
    """Say which build has code for the card that the installed one leaves out."""
    if is_arm(host):
        return t(
            "Take a build whose architectures ({arches} here) reach this card ({capability}): a newer torch or another CUDA from download.pytorch.org/whl, or NVIDIA's PyTorch container.",
            arches=" ".join(arches),
            capability=mine,
        )
    if coming is not None:
        return coming
    dropped = number(mine) < lowest(arches)
    if not builds and cards > 1:
        return t(
            "No published build runs on all cards of this machine with this driver: leave this one out with CUDA_VISIBLE_DEVICES (nvidia-smi -L lists the numbers)."
        )
    if not builds:
        return t(
            "No published torch build runs {gpu} under this driver and this Python: use another card or another machine.",
            gpu=gpu.name or mine,
        )
    command = install_torch(builds[0], python, packages)
    if dropped:
        return t(
            "This build no longer has code for older cards, one for CUDA {cuda} still does: {command} (or use a card from compute capability 7.5 on).",
            cuda=builds[0].cuda,
            command=command,
        )
    return t("Only a build for another CUDA has it, the same wheel again changes nothing: {command}", command=command)  # fmt: skip
