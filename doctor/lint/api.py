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
        if row.get("gone") and installed.at_least(package, row["gone"]):
            yield _removed(row, package, line, installed)
        elif row.get("since") and installed.at_least(package, row["since"]) is False:
            yield _too_new(row["name"], row["since"], row["use"], package, line, installed)


def _first_use(script: Script, name: str) -> int | None:
    """Return the line of the import or first call of ``name``, or of anything below it; None when it is not used."""
    imported = [
        line
        for origin, line in script.import_lines.items()
        if origin == name or origin.startswith(name + ".")
    ]
    called = [call.line for call in script.calls if call.name == name or call.name.startswith(name + ".")]
    return min(imported + called, default=None)


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
        if call.method in _ARGUMENT_CLASSES and _of_transformers(script, call):
            names = dict(load("training_arguments")["training_arguments"])
            if call.method.startswith("Seq2Seq"):
                names.update(load("training_arguments")["seq2seq_only"])
            yield from _judge_arguments(call, names, installed)
        elif call.method in _TRAINERS and _of_transformers(script, call):
            yield from _judge_arguments(call, load("training_arguments")["trainer"], installed)


def _of_transformers(script: Script, call: Call) -> bool:
    return call.name.startswith("transformers.")


def _judge_arguments(call: Call, known: dict[str, list[str]], installed: Installed) -> Iterator[Problem]:
    version = installed.version("transformers")
    for name in call.keywords:
        if name not in known:
            yield _never_existed(call, name, known)
        elif version is not None:
            first, last = known[name]
            if last and version > Version(last):
                yield from _after_last(call, name, last, version)
            elif version < Version(first):
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


def _after_last(call: Call, name: str, last: str, version: Version) -> Iterator[Problem]:
    if name == "tokenizer" and call.method in _TRAINERS and version < Version("5.0"):
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
        function=call.method,
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
def load_of_whole_objects(script: Script, installed: Installed) -> Iterator[Problem]:
    """Does torch.load read more than tensors where torch 2.6 and newer refuse that by default?"""
    if not installed.at_least("torch", "2.6"):
        return
    for call in script.named("torch.load"):
        if "weights_only" in call.keywords or "pickle_module" in call.keywords or call.has_double_star:
            continue
        read = _objects_read_from(script, call)
        if read:
            title = t(
                "torch.load runs no pickled code by default since 2.6, and {what} of this checkpoint is usually more than tensors.",
                what=", ".join(read),
            )
            advice = t(
                "For a file you trust: torch.load(path, weights_only=False); better, save plain dictionaries and tensors."
            )
            yield problem("torch-load-weights-only-default", "warn", call, title, advice)


# Keys under which scripts keep objects of their own classes; numbers and strings are loaded either way.
_OBJECT_KEYS = {
    "args",
    "config",
    "cfg",
    "opts",
    "hparams",
    "hyper_parameters",
    "best",
    "vocab",
    "model_args",
    "label_encoder",
    "scaler_obj",
}


def _objects_read_from(script: Script, call: Call) -> list[str]:
    import ast

    names = {
        name
        for (scope, name), values in script.assigned.items()
        for _, value in values
        if value is call.node and scope == call.scope
    }
    read = []
    for node in ast.walk(script.tree):
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id in names:
            if isinstance(node.slice, ast.Constant) and node.slice.value in _OBJECT_KEYS:
                read.append(str(node.slice.value))
    return list(dict.fromkeys(read))
