"""Checks on a run that is meant, against the versions that would run it. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from doctor.checks import check, evidence
from doctor.checks.versions import below, install, installed, parse, torch_version, within
from doctor.model import Environment, Finding, Packages, Python, Reading, Torch, Workload, t
from doctor.tables import load


@check("accumulation-loss-not-scaled")
def accumulated_losses_are_divided(
    workload: Workload, packages: Packages, python: Reading[Python], torch: Reading[Torch]
) -> Iterator[Finding]:
    """Does this Trainer divide the loss by the accumulation steps?"""
    have, steps = packages.version("transformers"), workload.training_args.get("gradient_accumulation_steps")
    if not have or not within(have, ">=4.46,<4.48") or not isinstance(steps, int) or steps < 2:
        return
    takes = workload.model_accepts_loss_kwargs
    if takes:
        return
    yield Finding(
        id="accumulation-loss-not-scaled",
        level="warn" if takes is False else "note",
        subject="gradient_accumulation_steps",
        title=t(
            "the Trainer of transformers {have} does not divide the loss by gradient_accumulation_steps for models whose forward takes no loss arguments (BERT and most encoders): gradients are {steps} {steps:time|times} too large",
            have=have,
            steps=steps,
        ),
        evidence=installed(packages, "transformers")
        + evidence(
            workload__training_args__gradient_accumulation_steps=steps,
            workload__model_accepts_loss_kwargs=takes,
        ),
        advice=t(
            "Install a version that fits: {command}",
            command=install(
                python,
                "transformers>=4.48,<4.49",
                torch=torch_version(torch, Reading(status="ok", value=packages)),
            ),
        ),
    )


@check("torch-compile-python-unsupported")
def compile_knows_this_python(
    python: Python, torch: Torch, workload: Reading[Workload], packages: Reading[Packages]
) -> Iterator[Finding]:
    """Does torch.compile of the installed torch know this Python?"""
    version = parse(python.version)
    rows: dict[str, str] = load("torch_wheels")["compile_python"]
    ours = f"{version.major}.{version.minor}" if version else ""
    floor = rows.get(ours)
    if not floor or not below(torch.version, floor):
        return
    run = workload.value
    asked = bool(run and ("torch-compile" in run.features or run.training_args.get("torch_compile")))
    yield Finding(
        id="torch-compile-python-unsupported",
        level="fail" if asked else "note",
        subject="torch.compile",
        title=t(
            "torch.compile of torch {torch} raises on Python {python}: it works there from torch {floor} on",
            torch=torch.version,
            python=ours,
            floor=floor,
        ),
        evidence=evidence(torch__version=torch.version, python__version=python.version),
        advice=t("Leave torch.compile out, or use an older Python or torch {floor} or newer.", floor=floor),
    )


@check("workers-start-by-forkserver")
def workers_can_be_started(python: Python, workload: Workload) -> Iterator[Finding]:
    """Will this Python start loader workers in a way that the script may not expect?"""
    if within(python.version, ">=3.14") and workload.num_workers:
        yield Finding(
            id="workers-start-by-forkserver",
            level="note",
            subject="num_workers",
            title=t(
                'Python {python} starts loader workers by forkserver, not fork: data sets must be picklable, and the script needs its if __name__ == "__main__" guard',
                python=python.version or "",
            ),
            evidence=evidence(python__version=python.version, workload__num_workers=workload.num_workers),
            advice=t(
                'As before: DataLoader(..., multiprocessing_context="fork"), which is unsafe once CUDA is in use.'
            ),
        )


@check("cublas-workspace-unset")
def deterministic_matmul_has_its_workspace(
    workload: Workload, environment: Environment, torch: Torch
) -> Iterator[Finding]:
    """Is CUBLAS_WORKSPACE_CONFIG set where deterministic algorithms are asked for?"""
    value = environment.get("CUBLAS_WORKSPACE_CONFIG")
    if workload.deterministic is not True or not torch.cuda or value in (":4096:8", ":16:8"):
        return
    if value is None and (
        not environment.complete
        or "CUBLAS_WORKSPACE_CONFIG" in environment.names
        or not workload.source.endswith(".py")
    ):
        return
    yield Finding(
        id="cublas-workspace-unset",
        level="fail" if value is None else "warn",
        subject="CUBLAS_WORKSPACE_CONFIG",
        title=t(
            "deterministic algorithms are asked for and CUBLAS_WORKSPACE_CONFIG is not set: matrix products on the card raise RuntimeError"
        )
        if value is None
        else t("CUBLAS_WORKSPACE_CONFIG={value} is not one of :4096:8 and :16:8", value=value),
        evidence=evidence(
            workload__deterministic=True, environment__variables__CUBLAS_WORKSPACE_CONFIG=value
        ),
        advice=t("export CUBLAS_WORKSPACE_CONFIG=:4096:8 before Python starts"),
    )


@check("seeds-incomplete")
def the_run_is_seeded(workload: Workload, environment: Environment) -> Iterator[Finding]:
    """Does the run seed what it draws from?"""
    seeds = workload.seeds_set
    if seeds is None:
        return
    unset = [name for name in ("python", "numpy", "torch") if name not in seeds]
    if unset:
        yield Finding(
            id="seeds-incomplete",
            level="note",
            subject=", ".join(unset),
            title=t("the run does not seed {names}: it cannot be repeated exactly", names=", ".join(unset)),
            evidence=evidence(workload__seeds_set=", ".join(seeds) or "none"),
            advice=t(
                "transformers.set_seed(42) seeds all of them; export PYTHONHASHSEED=0 before Python starts."
            ),
        )
    elif (
        environment.complete
        and environment.get("PYTHONHASHSEED") is None
        and "PYTHONHASHSEED" not in environment.names
    ):
        yield Finding(
            id="seeds-incomplete",
            level="note",
            subject="PYTHONHASHSEED",
            title=t(
                "PYTHONHASHSEED is not set: the order of sets differs from run to run, which matters where labels or words are collected in one"
            ),
            evidence=evidence(workload__seeds_set=", ".join(seeds)),
            advice=t("export PYTHONHASHSEED=0 before Python starts"),
        )
