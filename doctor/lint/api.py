"""Names and arguments that the installed versions do not have (yet, or any more)."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches
from typing import Any

from packaging.version import Version

from doctor.lint import Call, Installed, Problem, Script, problem, rule
from doctor.model import Level, t
from doctor.tables import load

_ARGUMENT_CLASSES = {
    "TrainingArguments": "training_arguments",
    "Seq2SeqTrainingArguments": "training_arguments",
}
_TRAINERS = ("Trainer", "Seq2SeqTrainer")

# What to write in place of an argument that is gone.
_SUCCESSORS = {
    "evaluation_strategy": "eval_strategy",
    "no_cuda": "use_cpu",
    "tokenizer": "processing_class",
    "per_gpu_train_batch_size": "per_device_train_batch_size",
    "per_gpu_eval_batch_size": "per_device_eval_batch_size",
    "adafactor": 'optim="adafactor"',
    "warmup_ratio": "warmup_steps (a float below 1 is a share)",
    "group_by_length": 'train_sampling_strategy="group_by_length"',
    "logging_dir": "the variable TENSORBOARD_LOGGING_DIR",
    "include_tokens_per_second": "include_num_input_tokens_seen",
    "push_to_hub_model_id": "hub_model_id",
    "push_to_hub_token": "hub_token",
    "dispatch_batches": "accelerator_config",
    "split_batches": "accelerator_config",
    "sharded_ddp": "fsdp",
    "xpu_backend": "ddp_backend",
    "torchdynamo": "torch_compile_backend",
}


@rule
def names_gone(script: Script, installed: Installed) -> Iterator[Problem]:
    """Does the script use a name that the installed release does not have?"""
    for row in load("api_changes")["name"]:
        package = str(row["name"]).partition(".")[0]
        line = _first_use(script, row["name"])
        if line is None:
            continue
        back = bool(row.get("back")) and installed.at_least(package, row["back"])
        if row.get("gone") and installed.at_least(package, row["gone"]) and not back:
            yield _removed(row, package, line, installed)
        elif row.get("since") and installed.at_least(package, row["since"]) is False:
            yield _too_new(row["name"], row["since"], row["use"], package, line, installed)


def _first_use(script: Script, name: str) -> int | None:
    """Return the line of the import or first call of ``name``, or of anything below it; None when it is not used.

    A name imported under a condition or in a ``try`` is not judged: the script provides for its absence.
    """
    if any(origin == name or origin.startswith(name + ".") for origin in script.guarded_origins):
        return None
    imported = [
        line
        for origin, line in script.import_lines.items()
        if origin == name or origin.startswith(name + ".")
    ]
    called = [call.line for call in script.calls if call.name == name or call.name.startswith(name + ".")]
    root = name.partition(".")[0]
    reached = [
        line
        for used, line in script.attribute_lines.items()
        if used == name and any(origin.partition(".")[0] == root for origin in script.imports.values())
    ]
    return min(imported + called + reached, default=None)


def _removed(row: dict[str, Any], package: str, line: int, installed: Installed) -> Problem:
    version = str(installed.version(package))
    title = t(
        "{name} is gone since {package} {gone}; {version} is installed.",
        name=row["name"],
        package=package,
        gone=row["gone"],
        version=version,
    )
    return problem("removed-import", "fail", line, title, t("Use {use}.", use=row["use"]), row["name"])


def _too_new(name: str, since: str, use: str, package: str, line: int, installed: Installed) -> Problem:
    version = str(installed.version(package))
    title = t(
        "{name} exists only from {package} {since} on; {version} is installed.",
        name=name,
        package=package,
        since=since,
        version=version,
    )
    return problem("argument-too-new", "fail", line, title, t("Use {use}.", use=use), name)


@rule
def arguments_too_new(script: Script, installed: Installed) -> Iterator[Problem]:
    """Does a call pass an argument that the installed release does not know yet?"""
    for row in load("api_changes")["argument"]:
        package = str(row["call"]).partition(".")[0]
        for call in script.named(row["call"]):
            if row["argument"] in call.keywords and installed.at_least(package, row["since"]) is False:
                yield _too_new(
                    f"{call.method}({row['argument']}=)",
                    row["since"],
                    row["use"],
                    package,
                    call.line,
                    installed,
                )


@rule
def deprecated_names(script: Script, installed: Installed) -> Iterator[Problem]:
    """Does the script use a name that the installed release warns about?"""
    for row in load("api_changes")["deprecated"]:
        line = _first_use(script, row["name"])
        if line is not None and installed.at_least("torch", row["warns_since"]):
            title = t(
                "{name} works, with a warning, since torch {since}.",
                name=row["name"],
                since=row["warns_since"],
            )
            yield problem("deprecated-api", "note", line, title, t("Use {use}.", use=row["use"]), row["name"])


@rule
def training_arguments(script: Script, installed: Installed) -> Iterator[Problem]:
    """Does TrainingArguments or Trainer get an argument that the installed transformers does not take?"""
    for call in script.calls:
        kind = script.kind(call.name)
        name = kind.rpartition(".")[2]
        own = script.is_local(call) or name in _DERIVED
        if name in (*_ARGUMENT_CLASSES, *_DERIVED) and kind.startswith(("transformers.", "trl.")):
            names = dict(load("training_arguments")["training_arguments"])
            if name.startswith("Seq2Seq"):
                names.update(load("training_arguments")["seq2seq_only"])
            yield from _judge_arguments(call, name, names, installed, own)
        elif name in _TRAINERS and kind.startswith("transformers."):
            yield from _judge_arguments(call, name, load("training_arguments")["trainer"], installed, own)


_DERIVED = ("SFTConfig", "DPOConfig", "RewardConfig", "ORPOConfig", "KTOConfig", "GRPOConfig")
"""trl's own subclasses of TrainingArguments, which take more."""


def _judge_arguments(
    call: Call, function: str, known: dict[str, list[str]], installed: Installed, own_too: bool
) -> Iterator[Problem]:
    """Judge each argument; a class that may have arguments of its own (``own_too``) is never told of unknown ones."""
    version = installed.version("transformers")
    for name in call.keywords:
        if name not in known:
            if not own_too:
                yield _never_existed(call, name, known)
        elif version is not None:
            first, last = known[name]
            if last and version > Version(last):
                yield from _after_last(call, function, name, last, version)
            elif version < Version(first) and not own_too:
                yield from _before_first(call, name, first, version)


def _never_existed(call: Call, name: str, known: dict[str, list[str]]) -> Problem:
    near = get_close_matches(name, list(known), n=1, cutoff=0.75)
    advice = (
        t("Did you mean {near}?", near=near[0])
        if near
        else t("Remove it; what it hopes for is set elsewhere (DeepSpeed or FSDP configuration).")
    )
    title = t(
        "{function} has no argument {name}, in no release from 4.18 to 5.24: TypeError.",
        function=call.method,
        name=name,
    )
    return problem("unknown-argument", "fail", call.keywords[name], title, advice, name)


def _after_last(call: Call, function: str, name: str, last: str, version: Version) -> Iterator[Problem]:
    if name == "tokenizer" and function in _TRAINERS and version < Version("5.0"):
        title = t("Trainer(tokenizer=) is accepted with a warning from 4.46 to 4.57, and gone in 5.0.")
        yield problem(
            "removed-argument",
            "note",
            call.keywords[name],
            title,
            t("Write {name}.", name="processing_class="),
            name,
        )
        return
    following = next(
        (item for item in load("training_arguments")["releases"] if Version(item) > Version(last)), ""
    )
    level: Level = "fail" if following and version >= Version(following) else "warn"
    title = t(
        "{function} no longer takes {name} in transformers {version} (last seen in {last}).",
        function=function,
        name=name,
        version=str(version),
        last=last,
    )
    use = _SUCCESSORS.get(name)
    advice = t("Write {name}.", name=use) if use else t("Remove it.")
    yield problem("removed-argument", level, call.keywords[name], title, advice, name)


def _before_first(call: Call, name: str, first: str, version: Version) -> Iterator[Problem]:
    releases = load("training_arguments")["releases"]
    earlier = [item for item in releases if Version(item) < Version(first)]
    if not earlier or version > Version(earlier[-1]):
        return  # between two releases that were read: it may or may not be there
    title = t(
        "{function} takes {name} only since about transformers {first}; {version} is installed.",
        function=call.method,
        name=name,
        first=first,
        version=str(version),
    )
    older = next((old for old, new in _SUCCESSORS.items() if new == name), None)
    advice = t("Write {name}.", name=older) if older else t("Remove it, or install a newer transformers.")
    yield problem("argument-too-new", "fail", call.keywords[name], title, advice, name)


@rule
def arguments_of_torch(script: Script, installed: Installed) -> Iterator[Problem]:
    """Does an optimizer or a loader of torch get an argument that no release of it takes?"""
    for row in load("api_changes")["signature"]:
        for call in script.named(*row["calls"]):
            for name in call.keywords:
                if name not in row["takes"]:
                    near = get_close_matches(name, [*row["takes"], *row["meant"]], n=1, cutoff=0.75)
                    meant = row["meant"].get(name) or (row["meant"].get(near[0], near[0]) if near else "")
                    yield _torch_lacks(call, name, meant)


def _torch_lacks(call: Call, name: str, meant: str) -> Problem:
    title = t("{function} has no argument {name}: TypeError.", function=call.method, name=name)
    advice = t("Did you mean {near}?", near=meant) if meant else t("Remove it.")
    return problem("unknown-argument", "fail", call.keywords[name], title, advice, name)
