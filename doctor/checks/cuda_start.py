"""Checks on whether CUDA starts: device files, a driver that answers, NVSwitch's fabric manager, compat libraries. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from doctor.checks import check, evidence
from doctor.checks.advice import is_tenant
from doctor.model import Container, Driver, Evidence, Finding, Gpus, Host, Platform, Reading, t
from doctor.tables.drivers import number
from doctor.tables.gpus import is_consumer, is_sxm


@check("nvml-lost-in-container", "gpu-device-permission")
def device_nodes_open(driver: Driver, container: Reading[Container]) -> Iterator[Finding]:
    """May this session open the GPU's device files?"""
    refused = {name: error for name, error in driver.device_nodes.items() if error in ("EPERM", "EACCES")}
    inside = container.value.inside if container.value else None
    node = min(refused, key=lambda name: (not name[-1].isdigit(), name), default="GPU")
    unknown_error = driver.nvml_error == 999 and not driver.device_nodes
    # One node of several may be another tenant's; without word from NVML only all of them together tell.
    lost = refused if driver.nvml_error or len(refused) == len(driver.device_nodes) else {}
    if inside and driver.nvml_error != 0 and (lost or unknown_error):
        yield Finding(
            id="nvml-lost-in-container",
            level="fail",
            subject=node,
            title=t(
                "the container has lost its GPUs: {node} is there, opening it gives {error}",
                node=node, error=refused[node],
            ) if refused else t("the container has lost its GPUs: NVML answers with error 999 (unknown error), the sign of revoked device access"),
            evidence=_nodes(refused) + evidence(driver__nvml_error=driver.nvml_error),
            advice=t(
                "Save your work, then restart the container (on a rental platform: restart the instance in its panel). Nothing inside it is broken. The host's owner stops it from coming back with the cgroupfs driver or explicit --device options."
            ),
            cause_of=("no-gpu-visible", "cuda-init-fails", "gpus-not-readable", "torch-sees-no-gpu"),
        )  # fmt: skip
    elif lost and inside is False and driver.nvml_error != 0:
        yield Finding(
            id="gpu-device-permission",
            level="fail",
            subject=node,
            title=t("this user may not open {node} ({error})", node=node, error=refused[node]),
            evidence=_nodes(refused),
            advice=t("See who may: ls -l {node}. Join that group (often video or render: sudo usermod -aG video $USER) and log in again; in a SLURM job, ask for the GPU (--gres=gpu:1).", node=node),
            cause_of=("no-gpu-visible", "cuda-init-fails", "gpus-not-readable", "torch-sees-no-gpu"),
        )  # fmt: skip


def _nodes(nodes: dict[str, str]) -> tuple[Evidence, ...]:
    return tuple(Evidence(fact=f"driver.device_nodes.{name}", value=nodes[name]) for name in sorted(nodes))


@check("gpus-not-readable")
def driver_answers(driver: Reading[Driver], gpus: Reading[Gpus]) -> Iterator[Finding]:
    """Does the driver answer when it is asked for its cards?"""
    known = driver.value or Driver()
    error = known.nvml_error
    if known.hung:
        yield _hung(known)
    elif error not in (None, 0, 9, 12, 18) and gpus.status != "ok":
        yield Finding(
            id="gpus-not-readable",
            level="fail",
            subject="NVML",
            title=t("the driver refuses to start its management library: NVML error {code}", code=error or 0),
            evidence=evidence(driver__nvml_error=error, driver__kernel_module_version=known.kernel_module_version),
            advice=t("Restart the container or the machine; when it comes back the same, take another one and report the number."),
            cause_of=("cuda-init-fails", "torch-sees-no-gpu"),
        )  # fmt: skip
    elif gpus.status == "failed" and error in (None, 0):
        yield Finding(
            id="gpus-not-readable",
            level="unknown",
            subject="GPU",
            title=t("whether there is a GPU, and what it is doing, could not be read"),
            evidence=evidence(driver__nvml_error=error),
        )


def _hung(driver: Driver) -> Finding:
    return Finding(
        id="gpus-not-readable",
        level="fail",
        subject="NVIDIA driver",
        title=t("the driver hangs: a question to it never came back, and a program that uses the GPU waits the same way"),
        evidence=evidence(driver__hung=driver.hung, driver__kernel_module_version=driver.kernel_module_version),
        advice=t("It does not recover by itself. See who waits in the driver (state D): ps -eo pid,stat,etime,cmd | grep ' D'. Then restart the machine (rented: restart it in the panel, or take another one)."),
        cause_of=("cuda-init-fails", "no-gpu-visible", "torch-sees-no-gpu", "deep-check-timed-out"),
    )  # fmt: skip


_CUDA_MEANS = {
    100: t("no device"),
    101: t("invalid device"),
    802: t("system not yet initialized"),
    803: t("driver and library versions do not fit"),
    804: t("forward compatibility is not supported on this card"),
    999: t("unknown error"),
}


@check("fabric-manager-not-running", "cuda-init-fails")
def cuda_starts(
    driver: Driver,
    container: Reading[Container],
    platform: Reading[Platform],
    host: Reading[Host],
    gpus: Reading[Gpus],
) -> Iterator[Finding]:
    """Does CUDA start, and where cards are joined by NVSwitch, does the fabric manager run?"""
    error = driver.cuda_init_error
    service = (host.value.services if host.value else {}).get("nvidia-fabricmanager")
    if error != 0 and _has_switch(driver, gpus) and (error == 802 or _fabric_is_down(driver, service)):
        yield Finding(
            id="fabric-manager-not-running",
            level="fail",
            subject="nvidia-fabricmanager",
            title=t("this machine joins its GPUs by NVSwitch, and the fabric manager does not run: CUDA does not start (error 802)"),
            evidence=evidence(
                driver__nvswitch=driver.nvswitch, driver__cuda_init_error=error, driver__fabric_state=driver.fabric_state,
            ) + (evidence(**{"host__services__nvidia-fabricmanager": service}) if service else ()),
            advice=t("It is the host's business: restart the instance once, and if it stays so take another machine and report error 802.")
            if is_tenant(container, platform)
            else t("Install the fabric manager of the driver's exact version ({driver}) and start it: sudo systemctl enable --now nvidia-fabricmanager", driver=driver.version or driver.kernel_module_version or "?"),
            cause_of=("cuda-init-fails", "torch-sees-no-gpu"),
        )  # fmt: skip
    if error:
        yield Finding(
            id="cuda-init-fails",
            level="fail",
            subject="CUDA",
            title=t("CUDA does not start: cuInit gives error {code} ({meaning!t})", code=error, meaning=_CUDA_MEANS.get(error, t("see cuda.h")).msgid),
            evidence=evidence(driver__cuda_init_error=error),
            advice=t("Restart the container or the instance; if the number stays, take another machine and report it."),
            cause_of=("torch-sees-no-gpu",),
        )  # fmt: skip


def _has_switch(driver: Driver, gpus: Reading[Gpus]) -> bool:
    """NVSwitch seen, or not looked for where the cards are of the kind that is joined by it."""
    if driver.nvswitch is not None:
        return driver.nvswitch
    cards = gpus.value.items if gpus.value else ()
    return driver.fabric_state is not None or (len(cards) >= 4 and all(is_sxm(gpu.name) for gpu in cards))


def _fabric_is_down(driver: Driver, service: str | None) -> bool:
    """Without word from CUDA itself: NVML's state first, then the service, which a container does not see."""
    if driver.fabric_state is not None:
        return driver.fabric_state.lower() in ("not started", "in progress")
    return service in ("inactive", "failed")


@check("cuda-compat-on-unsupported-gpu")
def compat_library_fits_the_card(
    driver: Driver, gpus: Gpus, container: Reading[Container]
) -> Iterator[Finding]:
    """Does a forward compatibility libcuda stand in front of the driver of a card that does not accept one?"""
    path, error = driver.libcuda_path or "", driver.cuda_init_error
    in_front = "/compat" in path and not _is_the_drivers_own(driver)
    consumer = next((gpu.name for gpu in gpus.items if is_consumer(gpu.name)), "")
    if error == 0 or not (error == 804 or (in_front and (consumer or error == 803))):
        return
    name = consumer or (gpus.items[0].name if gpus.items else "GPU")
    yield Finding(
        id="cuda-compat-on-unsupported-gpu",
        level="fail",
        subject=path or "libcuda.so.1",
        title=t(
            "a forward compatibility libcuda ({library}) is loaded instead of the driver's ({driver}), and {gpu} does not accept one",
            library=driver.libcuda_version or path or "?", driver=driver.version or "?", gpu=name,
        ),
        evidence=evidence(
            driver__libcuda_path=driver.libcuda_path, driver__libcuda_version=driver.libcuda_version,
            driver__version=driver.version, driver__cuda_init_error=error,
        ),
        advice=t("Take the compat folder out of the loader's way: export LD_LIBRARY_PATH=$(echo \"$LD_LIBRARY_PATH\" | tr ':' '\\n' | grep -v compat | paste -sd:) and, in an image of your own, remove it from /etc/ld.so.conf.d; or use an image of the driver's CUDA generation."),
        cause_of=("cuda-init-fails", "driver-too-old-for-torch-cuda", "torch-sees-no-gpu"),
    )  # fmt: skip


def _is_the_drivers_own(driver: Driver) -> bool:
    return bool(
        driver.libcuda_version and driver.version and number(driver.libcuda_version) == number(driver.version)
    )
