"""Checks on saved state: files cut off, pickles that torch.load refuses, weights that were not found, resuming. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from doctor.checks import check, evidence
from doctor.checks.environment import is_on
from doctor.checks.versions import install, installed, torch_version, within
from doctor.model import (
    Data,
    Environment,
    Evidence,
    Finding,
    Incident,
    InspectedFile,
    Level,
    Packages,
    Python,
    Reading,
    Torch,
    Workload,
    ok,
    t,
)


@check("corrupt-checkpoint")
def checkpoints_are_whole(data: Data) -> Iterator[Finding]:
    """Can the checkpoints be opened, the newest one above all?"""
    checkpoints = [(index, file) for index, file in enumerate(data.files) if file.kind == "checkpoint"]
    sound = [file.path for _, file in checkpoints if not file.problem]
    for index, file in checkpoints:
        if file.problem:
            yield Finding(
                id="corrupt-checkpoint",
                level="fail",
                subject=file.path,
                title=t("{file} cannot be opened: {problem}", file=file.path, problem=file.problem),
                evidence=(Evidence(fact=f"data.files[{index}].problem", value=file.problem),),
                advice=t(
                    "Resume from {sound}, which is whole. Checkpoints that are written beside and then renamed cannot end like this.",
                    sound=sound[-1],
                )
                if sound
                else t(
                    "None of the checkpoints that were looked at is whole; an older one, or a start from the base model, is what is left."
                ),
            )


# What torch.load with weights_only=True reads: tensors, their storages, and plain containers.
_PLAIN = re.compile(
    r"(torch\b|torch\.|collections\.(OrderedDict|Counter|defaultdict)|builtins\.|_codecs\.encode)"
)


def _blocked(file: InspectedFile) -> list[str]:
    names = [name.replace(" ", ".") for name in file.pickle_globals or ()]
    return [name for name in names if not _PLAIN.match(name)]


@check("torch-load-weights-only-default")
def pickles_are_read_by_this_torch(
    data: Data,
    torch: Reading[Torch],
    packages: Reading[Packages],
    environment: Reading[Environment],
    python: Reading[Python],
) -> Iterator[Finding]:
    """Does torch.load, which reads weights only from 2.6 on, refuse what a checkpoint holds?"""
    version = torch_version(torch, packages)
    if not within(version, ">=2.6") or (
        environment.value and is_on(environment.value.get("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"))
    ):
        return
    numpy = packages.value.version("numpy") if packages.value else None
    for index, file in enumerate(data.files):
        blocked = _blocked(file)
        name = file.path.rpartition("/")[2]
        if not blocked or name == "training_args.bin":
            continue
        if name.startswith("rng_state"):
            yield from _rng_state(index, file, blocked, version or "", numpy)
            continue
        yield Finding(
            id="torch-load-weights-only-default",
            level="warn",
            subject=file.path,
            title=t(
                "{file} holds more than tensors ({names}): torch.load of torch {torch} refuses it unless told otherwise",
                file=file.path,
                names=", ".join(blocked[:3]),
                torch=version or "",
            ),
            evidence=(
                Evidence(fact=f"data.files[{index}].pickle_globals", value=", ".join(blocked[:5])),
                *evidence(torch__version=version),
            ),
            advice=t(
                "For a file of your own: torch.load(path, weights_only=False). A file of someone else's can run code that way: ask for safetensors."
            ),
        )


def _rng_state(
    index: int, file: InspectedFile, blocked: list[str], torch: str, numpy: str | None
) -> Iterator[Finding]:
    """The Trainer allows numpy's functions under the names of the installed numpy; the other major's are refused."""
    old, new = (
        any(name.startswith("numpy.core.") for name in blocked),
        any(name.startswith("numpy._core.") for name in blocked),
    )
    if not (old or new) or not numpy or bool(within(numpy, ">=2")) == new:
        return
    yield Finding(
        id="torch-load-weights-only-default",
        level="fail",
        subject=file.path,
        title=t(
            "{file} was written under NumPy {written}, numpy {numpy} is installed: resuming from it fails (Weights only load failed)",
            file=file.path,
            written=1 if old else 2,
            numpy=numpy,
        ),
        evidence=(
            Evidence(fact=f"data.files[{index}].pickle_globals", value=", ".join(blocked[:5])),
            *evidence(torch__version=torch),
        ),
        advice=t(
            "Resume with the NumPy major of the first run, or for your own file: export TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD=1"
        ),
    )


# classifier.weight | score.weight | qa_outputs.bias | lm_head.weight | bert.pooler.dense.weight | cls.predictions.bias
_HEAD = re.compile(
    r"(^|\.)(classifier|classification_head|score|qa_outputs|lm_head|head|heads|cls|pooler|pre_classifier|out_proj|projection|dense_act_fn|summary|position_ids|inv_freq|logits_proj|vocab_\w+|lora_\w+)(\.|$)"
)


@check("checkpoint-keys-not-loaded")
def the_body_of_the_model_was_loaded(incident: Incident) -> Iterator[Finding]:
    """Were weights of the model's body, not only of its new head, left at random values?"""
    fresh = incident.newly_initialized or ()
    body = [name for name in fresh if not _HEAD.search(name)]
    if not body:
        return
    unused = incident.unused_weights or ()
    prefix = next(
        (
            head
            for head in ("module.", "model.", "_orig_mod.", "base_model.")
            if any(name.startswith(head) for name in unused)
            and not any(name.startswith(head) for name in body)
        ),
        "",
    )
    yield Finding(
        id="checkpoint-keys-not-loaded",
        level="fail",
        subject=body[0],
        title=t(
            "{count} {count:weight|weights} of the model's body {count:was|were} not found in the checkpoint and {count:starts|start} at random ({names})",
            count=len(body),
            names=", ".join(body[:3]),
        ),
        evidence=evidence(
            incident__newly_initialized=", ".join(body[:5]),
            incident__unused_weights=", ".join(unused[:5]) or None,
        ),
        advice=t(
            'The checkpoint\'s names begin with {prefix}: take it off before loading: {k.removeprefix("{prefix}"): v for k, v in state.items()}',
            prefix=prefix,
        )
        if prefix
        else t(
            "Load with the model class that saved it, and compare the names of the checkpoint with model.state_dict()."
        ),
    )


@check("resume-not-bitwise")
def a_resumed_run_goes_on_where_it_stopped(
    workload: Workload, packages: Packages, python: Reading[Python], torch: Reading[Torch]
) -> Iterator[Finding]:
    """Will a resumed run see the same data and random numbers as an uninterrupted one?"""
    have, arguments = packages.version("transformers"), workload.training_args
    resumes = bool(arguments.get("resume_from_checkpoint")) or "resumes" in workload.features
    if arguments.get("ignore_data_skip") is True:
        level: Level = "warn" if resumes else "note"
        title = t(
            "ignore_data_skip=True: a resumed run begins its epoch anew and sees samples twice, others not at all"
        )
        advice = t("Leave ignore_data_skip out, unless skipping takes longer than it is worth.")
    elif have and within(have, "<4.19") and arguments.get("save_strategy") == "epoch":
        level = "warn" if resumes else "note"
        title = t(
            "the Trainer of transformers {have} does not restore the random state when it resumes at the end of an epoch: the rest differs from an uninterrupted run",
            have=have,
        )
        advice = t(
            "Install a version that fits: {command}",
            command=install(python, "transformers>=4.19", torch=torch_version(torch, ok(packages))),
        )
    else:
        return
    yield Finding(
        id="resume-not-bitwise",
        level=level,
        subject="resume_from_checkpoint",
        title=title,
        evidence=installed(packages, "transformers")
        + evidence(
            workload__training_args__save_strategy=arguments.get("save_strategy"),
            workload__training_args__ignore_data_skip=arguments.get("ignore_data_skip"),
        ),
        advice=advice,
    )
