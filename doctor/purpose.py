"""What a run asks of the machine, read from its script's text: a Workload. Pure: the text is handed in, nothing is run."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import msgspec

from doctor.judge import fold_symptoms, judge
from doctor.lint import Call, Script, lint_script, read_script, unreadable
from doctor.machine import with_facts
from doctor.model import Finding, Reading, Report, Snapshot, Workload, ok

_ARGUMENTS = ("TrainingArguments", "Seq2SeqTrainingArguments", "SFTConfig", "DPOConfig")
_TRAINERS = ("Trainer", "Seq2SeqTrainer", "SFTTrainer")
_SEEDS = {
    "random.seed": "python", "np.random.seed": "numpy", "numpy.random.seed": "numpy", "torch.manual_seed": "torch",
    "torch.cuda.manual_seed_all": "cuda",
}  # fmt: skip
_SEEDS_ALL = ("set_seed", "seed_everything", "enable_full_determinism")
_SENTENCEPIECE = ("T5Tokenizer", "LlamaTokenizer", "XLNetTokenizer", "CamembertTokenizer", "XLMRobertaTokenizer", "AlbertTokenizer", "MBartTokenizer", "PegasusTokenizer")  # fmt: skip
"""The slow tokenizers that transformers 4 makes with SentencePiece."""
Literal = str | int | float | bool | None


def workload_from_script(text: str, source: str = "script.py") -> Workload:
    """Return what the script ``text`` shows of its run; what it does not show stays unknown.

    Raises:
        SyntaxError, ValueError, RecursionError: as :func:`doctor.lint.read_script`.
    """
    return workload_of(read_script(text, source))


def workload_of(script: Script) -> Workload:
    """Return what a script shows of its run; what it does not show stays unknown."""
    arguments = _training_arguments(script)
    features = {*_features(script), *_decorated(script), *_from_arguments(arguments)}
    return Workload(
        source=script.path,
        imports=tuple(sorted(set(_imports(script.tree)))),
        features=tuple(sorted(features)),
        training_args=arguments,
        num_workers=_num_workers(script, arguments),
        output_dir=output if isinstance(output := arguments.get("output_dir"), str) else None,
        seeds_set=_seeds(script),
        deterministic=_deterministic(script),
    )


def _imports(body: ast.AST) -> Iterator[str]:
    """Yield top-level modules whose absence would end the script: not what it imports in a ``try`` or on a condition."""
    for node in ast.iter_child_nodes(body):
        if isinstance(node, ast.Import):
            yield from (name.name.partition(".")[0] for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            if node.module and not node.level:
                yield node.module.partition(".")[0]
        elif not isinstance(node, ast.Try) and (not isinstance(node, ast.If) or _is_main(node.test)):
            yield from _imports(node)


def _is_main(test: ast.expr) -> bool:
    # if __name__ == "__main__":
    return isinstance(test, ast.Compare) and isinstance(test.left, ast.Name) and test.left.id == "__name__"


def _plain(script: Script, call: Call) -> dict[str, Literal]:
    """Return the keywords of a call that come to a literal, through the script's variables and options."""
    known = {name: script.constant(value, call.scope) for name, value in call.keywords.items()}
    nothing = {name for name, value in call.keywords.items() if _is_none(script.value_of(value, call.scope))}
    return {
        name: value
        for name, value in known.items()
        if isinstance(value, (str, int, float)) or (value is None and name in nothing)
    }


def _is_none(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _training_arguments(script: Script) -> dict[str, Literal]:
    found: dict[str, Literal] = {}
    for call in script.calls:
        if script.kind_of(call) in _ARGUMENTS:
            found |= _plain(script, call)
            first = script.constant(call.argument(0, "output_dir"), call.scope)
            if isinstance(first, str):
                found["output_dir"] = first
    return found


def _features(script: Script) -> Iterator[str]:
    for call in script.calls:
        words = _plain(script, call)
        if script.kind_of(call) in _TRAINERS:
            yield "trainer"
        if call.name == "torch.compile":
            yield "torch-compile"
        if _resumes(script, call):
            yield "resumes"
        if call.method == "BitsAndBytesConfig" or True in (words.get("load_in_4bit"), words.get("load_in_8bit")):  # fmt: skip
            yield "bitsandbytes"
        if call.method == "from_pretrained":
            yield from _loading(call, words)
        if words.get("attn_implementation") == "flash_attention_2" or words.get("use_flash_attention_2") is True:  # fmt: skip
            yield "flash-attention-2"
        if call.name == "torch.onnx.export" and words.get("dynamo") is not False:
            yield "onnx-export-default-exporter"
        if call.method == "splitlines" and any("vocab" in line for line in script.lines):
            yield "vocab-splitlines"
        if _opens_as_the_locale_says(script, call):
            yield "locale-encoding"


# call -> (place of encoding=, place of mode=)
_TEXT_CALLS = {"open": (3, 1), "io.open": (3, 1), "read_text": (0, None), "write_text": (1, None)}


def _opens_as_the_locale_says(script: Script, call: Call) -> bool:
    """Return whether text is read or written here in whatever encoding the machine's locale has."""
    own = call.name if call.name in _TEXT_CALLS else call.method
    if own not in _TEXT_CALLS or (own == "open" and call.receiver) or call.hides_arguments:
        return False
    encoding, mode = _TEXT_CALLS[own]
    asked = script.constant(call.argument(mode, "mode"), call.scope) if mode is not None else None
    return call.argument(encoding, "encoding") is None and "b" not in str(asked or "")


def _resumes(script: Script, call: Call) -> bool:
    given = script.value_of(call.keywords.get("resume_from_checkpoint"), call.scope)
    return given is not None and not (isinstance(given, ast.Constant) and not given.value)


def _loading(call: Call, words: dict[str, Literal]) -> Iterator[str]:
    if isinstance(words.get("device_map"), str):
        yield "device-map"
    if call.receiver.rpartition(".")[2] in _SENTENCEPIECE:
        yield "sentencepiece"


def _decorated(script: Script) -> Iterator[str]:
    """Yield what the script's decorators ask for: ``@torch.compile`` or ``@torch.compile(...)``."""
    for node in ast.walk(script.tree):
        for one in getattr(node, "decorator_list", ()):
            if script.resolve(one.func if isinstance(one, ast.Call) else one) == "torch.compile":
                yield "torch-compile"


def _from_arguments(arguments: dict[str, Literal]) -> Iterator[str]:
    optimizer = str(arguments.get("optim") or "")
    if "8bit" in optimizer or "bnb" in optimizer:
        yield "bitsandbytes"
    if arguments.get("torch_compile") is True:
        yield "torch-compile"
    if arguments.get("deepspeed"):
        yield "deepspeed"
    for tracker in ("wandb", "tensorboard"):
        if arguments.get("report_to") == tracker:
            yield tracker


def _num_workers(script: Script, arguments: dict[str, Literal]) -> int | None:
    loaders = [call for call in script.calls if script.kind_of(call) == "DataLoader"]
    asked = [_plain(script, call).get("num_workers") for call in loaders]
    asked.append(arguments.get("dataloader_num_workers"))
    known = [value for value in asked if isinstance(value, int) and not isinstance(value, bool)]
    return max(known, default=None)


def _seeds(script: Script) -> tuple[str, ...] | None:
    """Return what is seeded; None where nothing is, since a fragment need not show it."""
    if any(call.method in _SEEDS_ALL for call in script.calls):
        return ("numpy", "python", "torch")
    return tuple(sorted({_SEEDS[call.name] for call in script.calls if call.name in _SEEDS})) or None


def _deterministic(script: Script) -> bool | None:
    for call in script.named("torch.use_deterministic_algorithms"):
        asked = script.constant(call.argument(0, "mode"), call.scope)
        if asked is not None:
            return bool(asked) and _plain(script, call).get("warn_only") is not True
    return None


def judge_for_script(snapshot: Snapshot, source: str, path: str) -> tuple[Snapshot, Report]:
    """Return the snapshot with the script's workload in it, and one report on machine and script together.

    A script that is not Python is said to be unreadable; the machine is judged all the same.
    """
    found: list[Finding]
    try:
        script = read_script(source, path)
    except (SyntaxError, ValueError, RecursionError) as error:
        python = snapshot.facts.python.value
        found = [unreadable(path, error, python.version if python else None)]
        snapshot = with_facts(snapshot, workload=Reading(status="failed", why=found[0].title, source=path))
    else:
        found = lint_script(script, None, snapshot)
        snapshot = with_facts(snapshot, workload=ok(workload_of(script), path))
    report = judge(snapshot)
    given = {item.id for item in report.findings()}
    together = [*report.findings(), *(item for item in found if item.id not in given)]
    return snapshot, msgspec.structs.replace(report, diagnoses=fold_symptoms(together))
