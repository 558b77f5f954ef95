"""What is wrong between keys of a profile that are each right by themselves. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from runner.deepspeed_keys import TUNING
from runner.sections import COUNTED, TEXT_ONLY, Profile, TrainSection
from runner.text import Text, t
from runner.tomltree import TomlTree


def cross_problems(profile: Profile, tree: TomlTree) -> Iterator[tuple[str, Text]]:
    """Yield ``(key, problem)`` for what is wrong between fields that are each right by themselves."""
    model, data, train = profile.model, profile.data, profile.train
    origins = [name for name in ("hub", "path", "package", "config") if getattr(model, name)]
    rows = [name for name in ("train", "hub", "package", "function") if getattr(data, name)]
    if len(origins) != 1:
        yield "model", _one_of(tree.place("model"), "hub, path, package, config", origins)
    if len(rows) != 1:
        yield "data", _one_of(tree.place("data"), "train, hub, package, function", rows)
    for section, part in (("model", model), ("data", data)):
        if part.package and not part.folder:
            yield (
                f"{section}.package",
                t(
                    "{place}: a package needs folder, the folder inside it",
                    place=tree.place(f"{section}.package"),
                ),
            )
    yield from _batch_problems(train, tree)
    yield from _placement_problems(profile, tree)
    yield from _parallel_problems(profile, tree)
    if train.packing and model.task != "causal-lm":
        yield (
            "train.packing",
            t("{place}: texts are joined for the task causal-lm only", place=tree.place("train.packing")),
        )
    if train.class_weights != "none" and model.task not in COUNTED:
        yield "train.class_weights", _only_classification(tree.place("train.class_weights"))
    if train.loss and model.task in (*TEXT_ONLY, "token-classification"):
        yield (
            "train.loss",
            t("{place}: a loss of your own is for tasks with a label a text", place=tree.place("train.loss")),
        )
    if train.loss and (train.label_smoothing or train.class_weights != "none"):
        yield (
            "train.loss",
            t(
                "{place}: a loss of your own takes no label_smoothing or class_weights",
                place=tree.place("train.loss"),
            ),
        )
    if model.task == "token-classification" and data.text_pair:
        yield (
            "data.text_pair",
            t("{place}: token-classification takes one text a row", place=tree.place("data.text_pair")),
        )
    if train.label_smoothing and model.task not in COUNTED:
        yield "train.label_smoothing", _only_classification(tree.place("train.label_smoothing"))


def _one_of(place: str, names: str, found: list[str]) -> Text:
    return t(
        "{place}: name exactly one of {names} (found: {found})",
        place=place,
        names=names,
        found=", ".join(found) or "-",
    )


def _only_classification(place: str) -> Text:
    return t("{place}: this belongs to the tasks classification and token-classification", place=place)


def _batch_problems(train: TrainSection, tree: TomlTree) -> Iterator[tuple[str, Text]]:
    micro, times = train.micro_batch_size, train.accumulation
    if micro == "auto":
        return
    if micro is None and times is None:
        return
    micro = micro or max(1, train.batch_size // (times or 1))
    times = times or max(1, train.batch_size // micro)
    if micro * times != train.batch_size:
        yield (
            "train.batch_size",
            t(
                "{place}: batch_size ({batch}) is not micro_batch_size ({micro}) x accumulation ({times})",
                place=tree.place("train.batch_size"),
                batch=train.batch_size,
                micro=micro,
                times=times,
            ),
        )


def _placement_problems(profile: Profile, tree: TomlTree) -> Iterator[tuple[str, Text]]:
    model, train = profile.model, profile.train
    spread = model.device_map != "none"
    if train.offload != "none" and spread:
        yield (
            "train.offload",
            t("{place}: with model.device_map it cannot be: name one of the two", place=tree.place("train.offload")),
        )  # fmt: skip
    by_deepspeed = profile.parallel.strategy == "deepspeed"  # which unscales where the gradients lie
    if train.offload != "none" and train.precision == "fp16" and not by_deepspeed:
        yield (
            "train.precision",
            t("{place}: fp16 needs a loss scaler, which looks at gradients on the card; with train.offload take bf16 or fp32",
              place=tree.place("train.precision")),
        )  # fmt: skip
    if train.compile and (spread or train.offload == "parameters"):
        yield (
            "train.compile",
            t("{place}: parameters that are fetched for each pass cannot be compiled; leave train.compile off",
              place=tree.place("train.compile")),
        )  # fmt: skip
    if model.max_memory and not spread:
        yield (
            "model.max_memory",
            t("{place}: this belongs to model.device_map", place=tree.place("model.max_memory")),
        )


def _parallel_problems(profile: Profile, tree: TomlTree) -> Iterator[tuple[str, Text]]:
    section = profile.parallel
    of_deepspeed = [name for name in ("zero_stage", "deepspeed") if getattr(section, name)]
    if of_deepspeed and section.strategy != "deepspeed":
        yield (
            f"parallel.{of_deepspeed[0]}",
            t("{place}: this belongs to parallel.strategy = \"deepspeed\"", place=tree.place(f"parallel.{of_deepspeed[0]}")),
        )  # fmt: skip
    unknown = [
        name for name in section.deepspeed if name not in (*TUNING, "offload_optimizer", "offload_param")
    ]
    if unknown:
        yield (
            "parallel.deepspeed",
            t("{place}: {names} is not handed on; known are {known}", place=tree.place("parallel.deepspeed"),
              names=", ".join(unknown), known=", ".join(TUNING)),
        )  # fmt: skip
