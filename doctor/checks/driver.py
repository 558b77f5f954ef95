"""Checks on the driver's version: enough for torch's CUDA, one throughout, still for these cards. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from doctor.checks import check, evidence
from doctor.checks.advice import (
    best_torch_builds,
    capabilities_of,
    install_torch,
    is_arm,
    is_tenant,
    is_windows_driver,
)
from doctor.model import (
    Container,
    Driver,
    Finding,
    Gpus,
    Host,
    Packages,
    Platform,
    Python,
    Reading,
    Text,
    Torch,
    t,
)  # fmt: skip
from doctor.tables.drivers import (
    cuda_of_driver,
    minimum_driver,
    number,
    runs_cuda,
)  # fmt: skip


def _serves(driver: Driver, windows: bool) -> str:
    """Return the CUDA the driver serves, from itself or by its branch; ``?`` when neither tells."""
    version = driver.version or driver.kernel_module_version
    return driver.cuda_version or (None if windows else cuda_of_driver(version)) or "?"


@check("driver-too-old-for-torch-cuda")
def driver_runs_torch(
    driver: Driver,
    torch: Torch,
    host: Reading[Host],
    gpus: Reading[Gpus],
    container: Reading[Container],
    platform: Reading[Platform],
    python: Reading[Python],
    packages: Reading[Packages],
) -> Iterator[Finding]:
    """Can the installed driver run the CUDA that torch was built for?"""
    version, windows = driver.version or driver.kernel_module_version, is_windows_driver(host)
    if (
        not torch.cuda
        or not version
        or runs_cuda(version, driver.cuda_version, torch.cuda, windows) is not False
    ):
        return
    if _compat_serves(driver, torch.cuda) or is_not_loaded(driver, gpus):
        return
    serves, needed = _serves(driver, windows), minimum_driver(torch.cuda, windows)
    yield Finding(
        id="driver-too-old-for-torch-cuda",
        level="fail",
        subject=f"driver {version}",
        title=t(
            "driver {driver} serves CUDA up to {serves}, torch {torch} is a CUDA {cuda} build and needs driver {needed} or newer",
            driver=version, serves=serves, torch=torch.version, cuda=torch.cuda, needed=needed,
        ) if needed else t(
            "driver {driver} serves CUDA up to {serves}, torch {torch} is a build for CUDA {cuda}, a newer major",
            driver=version, serves=serves, torch=torch.version, cuda=torch.cuda,
        ),
        evidence=evidence(
            driver__version=driver.version,
            driver__kernel_module_version=None if driver.version else driver.kernel_module_version,
            driver__cuda_version=driver.cuda_version,
            torch__version=torch.version,
            torch__cuda=torch.cuda,
        ),
        advice=_for_arm(_serves(driver, windows))
        if is_arm(host)
        else _older_build(driver, torch, windows, gpus, is_tenant(container, platform), platform, python, packages),
        cause_of=("torch-sees-no-gpu", "cuda-init-fails"),
        fix="torch-for-driver",
    )  # fmt: skip


def is_not_loaded(driver: Driver, gpus: Reading[Gpus]) -> bool:
    """Only the driver's files are here, no kernel module that serves them: what runs is decided when one is loaded."""
    if driver.kernel_module_version or driver.nvml_error == 0:
        return False
    return driver.nvml_error == 9 or (gpus.status == "absent" and not driver.pci_gpu_count)


def _compat_serves(driver: Driver, cuda: str) -> bool:
    """A forward compatibility libcuda in front of the driver that serves this CUDA; whether the card accepts it is
    another check's question."""
    in_front = "compat" in (driver.libcuda_path or "")
    return in_front and runs_cuda(driver.libcuda_version or "", None, cuda) is True


def _for_arm(serves: str) -> Text:
    return t(
        "Take a torch for ARM built for the CUDA major that this driver serves ({serves}): from download.pytorch.org/whl/cu126, cu128 ..., or NVIDIA's PyTorch container of that CUDA.",
        serves=serves,
    )


def _older_build(
    driver: Driver,
    torch: Torch,
    windows: bool,
    gpus: Reading[Gpus],
    tenant: bool,
    platform: Reading[Platform],
    python: Reading[Python],
    packages: Reading[Packages],
) -> Text:
    version = driver.version or driver.kernel_module_version or ""
    rented = platform.value.name if platform.value else ""
    serves = _serves(driver, windows)
    builds = best_torch_builds(
        version,
        capabilities_of(gpus),
        torch.version,
        driver_cuda=None if serves == "?" else serves,
        python=python.value.version if python.value else None,
        windows=windows,
    )
    needed = minimum_driver(torch.cuda or "", windows) or f"CUDA {torch.cuda}"
    if not builds:
        return t(
            "No published torch build runs on this driver with these cards and this Python: take a machine with driver {needed} or newer.",
            needed=needed,
        )
    command = install_torch(builds[0], python, packages)
    return _for_tenant(rented, command, needed) if tenant else t(
        "Take the build that runs on this driver: {command} (or have the driver replaced by {needed} or newer).",
        command=command, needed=needed,
    )  # fmt: skip


def _for_tenant(rented: str, command: str, needed: str) -> Text:
    """The driver is the host's: say how another host is found."""
    if rented == "runpod":
        return t(
            "Take the build that runs on this driver: {command} (or deploy on a host with driver {needed} or newer: filter by CUDA version when you deploy).",
            command=command,
            needed=needed,
        )
    if rented in ("autodl", "vast"):
        return t(
            "Take the build that runs on this driver: {command} (or rent a host with driver {needed} or newer: the offers show the highest CUDA each one serves).",
            command=command,
            needed=needed,
        )
    return t("Take the build that runs on this driver: {command} (the driver is the host's; else rent a machine with driver {needed} or newer).", command=command, needed=needed)  # fmt: skip


@check("nvml-driver-library-mismatch")
def kernel_module_and_library_agree(
    driver: Driver, container: Reading[Container], platform: Reading[Platform]
) -> Iterator[Finding]:
    """Are the loaded kernel module and the driver's libraries of one version?"""
    module, library = driver.kernel_module_version, driver.nvml_library_version or driver.version
    differ = bool(module and library and number(module) != number(library))
    if driver.nvml_error != 18 and not (differ and driver.nvml_error is None):
        return
    yield Finding(
        id="nvml-driver-library-mismatch",
        level="fail",
        subject=f"driver {library or module or ''}".strip(),
        title=t(
            "the loaded kernel module is {module}, the driver's libraries are {library}: new programs see no GPU until both agree",
            module=module, library=library,
        ) if module and library else t(
            "the driver's libraries do not fit the loaded kernel module (NVML error 18): new programs see no GPU until both agree"
        ),
        evidence=evidence(
            driver__kernel_module_version=module,
            driver__nvml_library_version=driver.nvml_library_version,
            driver__version=driver.version if driver.version != driver.nvml_library_version else None,
            driver__nvml_error=driver.nvml_error,
        ),
        advice=t("Save your work and restart the instance in the provider's panel: the driver changed on the host under this container.")
        if is_tenant(container, platform)
        else t("Reboot (or, when no process uses the GPU: sudo rmmod nvidia_uvm nvidia_drm nvidia_modeset nvidia && sudo modprobe nvidia); then keep it from coming back: sudo apt-mark hold 'nvidia-*' 'libnvidia-*'."),
        cause_of=("no-gpu-visible", "cuda-init-fails", "gpus-not-readable", "torch-sees-no-gpu"),
    )  # fmt: skip
