"""Checks on environment variables that make a run slow, or that do not do what their owner thinks. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from doctor.checks import check, evidence
from doctor.checks.versions import below, install, minor, torch_version, within
from doctor.model import Environment, Finding, Level, Packages, Python, Reading, Text, Torch, t

_ON = ("1", "true", "yes", "on", "y", "t")


def is_on(value: str | None) -> bool:
    return (value or "").strip().lower() in _ON


def _slowing(name: str, value: str) -> tuple[Level, Text] | None:
    """Return how a debugging or override variable that is left on hurts; None: this one does not."""
    if name == "CUDA_LAUNCH_BLOCKING" and is_on(value):
        return "warn", t(
            "CUDA_LAUNCH_BLOCKING={value} is left on: every kernel is waited for, training is much slower",
            value=value,
        )
    if name == "PYTORCH_NO_CUDA_MEMORY_CACHING" and value not in ("", "0"):
        return "warn", t(
            "PYTORCH_NO_CUDA_MEMORY_CACHING is left on: every tensor asks the driver for memory, training is several times slower"
        )
    if name == "TORCH_DISTRIBUTED_DEBUG" and value.upper() == "DETAIL":
        return "note", t(
            "TORCH_DISTRIBUTED_DEBUG=DETAIL is left on: every collective is checked, which is slow"
        )
    if name == "NVIDIA_TF32_OVERRIDE" and value == "0":
        return "note", t(
            "NVIDIA_TF32_OVERRIDE=0 switches TF32 off in all libraries: fp32 matrix products are slow on Ampere and newer"
        )
    if name == "CUDA_MODULE_LOADING" and value.upper() == "EAGER":
        return "note", t(
            "CUDA_MODULE_LOADING=EAGER loads every kernel at the start: hundreds of MB more of the card's memory per process"
        )
    if name == "NCCL_DEBUG" and value.upper() in ("INFO", "TRACE"):
        return "note", t("NCCL_DEBUG={value} is left on: large logs", value=value)
    if name == "TORCH_SHOW_CPP_STACKTRACES" and is_on(value):
        return "note", t("TORCH_SHOW_CPP_STACKTRACES is left on: errors are slow to build")
    if name == "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD" and is_on(value):
        return "note", t(
            "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD is on: code inside any checkpoint that is loaded runs"
        )
    return None


@check("debug-variable-left-on")
def no_debugging_is_left_on(environment: Environment) -> Iterator[Finding]:
    """Is a debugging variable still set that makes training slow?"""
    for name, value in environment.variables.items():
        found = _slowing(name, value)
        if found:
            yield Finding(
                id="debug-variable-left-on",
                level=found[0],
                subject=name,
                title=found[1],
                evidence=evidence(**{f"environment__variables__{name}": value}),
                advice=t("unset {name}", name=name),
            )


@check("allocator-setting-without-effect")
def allocator_settings_are_read(
    environment: Environment, torch: Reading[Torch], packages: Reading[Packages]
) -> Iterator[Finding]:
    """Does the installed torch read the allocator setting under the name and in the form it is given?"""
    version = torch_version(torch, packages)
    new, old = environment.get("PYTORCH_ALLOC_CONF"), environment.get("PYTORCH_CUDA_ALLOC_CONF")
    if new and not old and below(version, "2.9"):
        yield _allocator(
            "PYTORCH_ALLOC_CONF",
            new,
            version,
            "warn",
            t(
                "torch {torch} does not know PYTORCH_ALLOC_CONF (it came with 2.9): the setting has no effect",
                torch=version or "",
            ),
        )
    elif new and not old and "expandable_segments" in new and minor(version) == "2.9":
        yield _allocator(
            "PYTORCH_ALLOC_CONF",
            new,
            version,
            "warn",
            t("torch {torch} ignores expandable_segments in PYTORCH_ALLOC_CONF on CUDA", torch=version or ""),
        )
    for name, value in (("PYTORCH_ALLOC_CONF", new), ("PYTORCH_CUDA_ALLOC_CONF", old)):
        # expandable_segments=True instead of expandable_segments:True
        wrong = next(
            (part for part in (value or "").split(",") if re.fullmatch(r"\s*[a-z_]+\s*=.*", part)), None
        )
        if value and wrong:
            yield _allocator(
                name,
                value,
                version,
                "warn",
                t(
                    "{name} has {part}: torch wants key:value, and raises at the first use of CUDA",
                    name=name,
                    part=wrong.strip(),
                ),
            )


def _allocator(name: str, value: str, version: str | None, level: Level, title: Text) -> Finding:
    repaired = ",".join(re.sub(r"\s*=\s*", ":", part.strip(), count=1) for part in value.split(","))
    return Finding(
        id="allocator-setting-without-effect",
        level=level,
        subject=name,
        title=title,
        evidence=evidence(**{f"environment__variables__{name}": value}, torch__version=version),
        advice=t("export PYTORCH_CUDA_ALLOC_CONF={value} (this name works in every torch)", value=repaired),
    )


@check("hub-endpoint-invalid", "mirror-with-xet", "hf-transfer-missing", "hub-offline")
def hub_variables_work(
    environment: Environment, packages: Packages, python: Reading[Python]
) -> Iterator[Finding]:
    """Do the Hugging Face variables lead to a hub that answers?"""
    endpoint, hub = environment.get("HF_ENDPOINT"), packages.version("huggingface-hub")
    if endpoint and not endpoint.startswith(("http://", "https://")):
        yield Finding(
            id="hub-endpoint-invalid",
            level="warn",
            subject="HF_ENDPOINT",
            title=t("HF_ENDPOINT={endpoint} has no https://: requests to it fail", endpoint=endpoint),
            evidence=evidence(environment__variables__HF_ENDPOINT=endpoint),
            advice=t("export HF_ENDPOINT=https://{endpoint}", endpoint=endpoint),
        )
    elif (
        endpoint
        and "huggingface.co" not in endpoint
        and packages.get("hf-xet")
        and not is_on(environment.get("HF_HUB_DISABLE_XET"))
    ):
        yield Finding(
            id="mirror-with-xet",
            level="note",
            subject="HF_ENDPOINT",
            title=t(
                "downloads go to the mirror {endpoint}, and hf-xet is installed: a mirror that does not serve Xet storage stalls or fails on large files",
                endpoint=endpoint,
            ),
            evidence=evidence(environment__variables__HF_ENDPOINT=endpoint),
            advice=t("If large files stall: export HF_HUB_DISABLE_XET=1"),
        )
    if is_on(environment.get("HF_HUB_ENABLE_HF_TRANSFER")) and hub and packages.is_missing("hf-transfer"):
        old = within(hub, "<1.0")
        yield Finding(
            id="hf-transfer-missing",
            level="fail" if old else "note",
            subject="HF_HUB_ENABLE_HF_TRANSFER",
            title=t(
                "HF_HUB_ENABLE_HF_TRANSFER is on, hf-transfer is not installed: every download fails",
            )
            if old
            else t(
                "HF_HUB_ENABLE_HF_TRANSFER is not read by huggingface-hub {hub}; HF_XET_HIGH_PERFORMANCE=1 took its place",
                hub=hub,
            ),
            evidence=evidence(
                environment__variables__HF_HUB_ENABLE_HF_TRANSFER=environment.get("HF_HUB_ENABLE_HF_TRANSFER")
            ),
            advice=t(
                "unset HF_HUB_ENABLE_HF_TRANSFER (or {command})", command=install(python, "hf-transfer")
            ),
        )
    offline = next(
        (name for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE") if is_on(environment.get(name))), None
    )
    if offline:
        yield Finding(
            id="hub-offline",
            level="note",
            subject=offline,
            title=t("{name} is on: models and data that are not in the cache are not found", name=offline),
            evidence=evidence(**{f"environment__variables__{offline}": environment.get(offline)}),
            advice=t("unset {name}", name=offline),
        )


# /usr/lib/python3/dist-packages | /opt/conda/lib/python3.10/site-packages
_SITE = re.compile(r"/(site|dist)-packages/?$")


@check("pythonpath-with-other-packages")
def pythonpath_brings_no_other_environment(
    environment: Environment, python: Reading[Python], packages: Reading[Packages]
) -> Iterator[Finding]:
    """Does PYTHONPATH put another environment's packages before the judged one's?"""
    value = environment.get("PYTHONPATH")
    prefix = python.value.prefix if python.value else None
    others = [
        part
        for part in (value or "").split(":")
        if _SITE.search(part) and not (prefix and part.startswith(prefix.rstrip("/") + "/"))
    ]
    items = packages.value.items if packages.value else ()
    mixed = [
        item.name
        for item in items
        if item.name in ("torch", "numpy", "transformers")
        and item.location.rstrip("/") in {one.rstrip("/") for one in others}
    ]
    if others and value:
        yield Finding(
            id="pythonpath-with-other-packages",
            level="warn" if mixed else "note",
            subject="PYTHONPATH",
            title=t(
                "PYTHONPATH puts {folder} before the environment's own packages: {names} come from there",
                folder=others[0],
                names=", ".join(mixed),
            )
            if mixed
            else t("PYTHONPATH puts {folder} before the environment's own packages", folder=others[0]),
            evidence=evidence(environment__variables__PYTHONPATH=value, python__prefix=prefix),
            advice=t("unset {name}", name="PYTHONPATH"),
            cause_of=("duplicate-distribution-metadata",),
        )


@check("tracker-variable-not-read")
def tracker_variables_are_read(environment: Environment, packages: Packages) -> Iterator[Finding]:
    """Is wandb switched off by a variable that the installed transformers no longer reads?"""
    have, value = packages.version("transformers"), environment.get("WANDB_DISABLED")
    if value and have and within(have, ">=5.0"):
        yield Finding(
            id="tracker-variable-not-read",
            level="note",
            subject="WANDB_DISABLED",
            title=t("WANDB_DISABLED is not read by transformers {have}", have=have),
            evidence=evidence(environment__variables__WANDB_DISABLED=value),
            advice=t('report_to="none" in the arguments, or export WANDB_MODE=disabled'),
        )
