"""What a run asks of the machine, read from its script's text: a Workload. Pure: the text is handed in, nothing is run."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import msgspec

from doctor.judge import fold_symptoms, judge
from doctor.lint import lint_source
from doctor.machine import with_facts
from doctor.model import Reading, Report, Snapshot, Workload, ok, t

_ARGUMENTS = ("TrainingArguments", "Seq2SeqTrainingArguments", "SFTConfig", "DPOConfig")
_SEEDS = {
    "random.seed": "python", "np.random.seed": "numpy", "numpy.random.seed": "numpy", "torch.manual_seed": "torch",
    "torch.cuda.manual_seed_all": "cuda",
}  # fmt: skip
_SEEDS_ALL = (
    "set_seed",
    "seed_everything",
    "enable_full_determinism",
    "transformers.set_seed",
    "accelerate.utils.set_seed",
)
Literal = str | int | float | bool | None


def workload_from_script(text: str, source: str = "script.py") -> Workload:
    """Return what the script ``text`` shows of its run; what it does not show stays unknown.

    Raises:
        SyntaxError: ``text`` is not Python.
    """
    tree = ast.parse(text)
    calls = [(dotted(node.func), node) for node in ast.walk(tree) if isinstance(node, ast.Call)]
    arguments = _training_arguments(calls)
    return Workload(
        source=source,
        imports=tuple(sorted(set(_imports(tree)))),
        features=tuple(
            sorted({*_features(text, calls, arguments), *_decorated(tree), *_from_arguments(arguments)})
        ),
        training_args=arguments,
        num_workers=_num_workers(calls, arguments),
        output_dir=_text(arguments.get("output_dir")),
        seeds_set=_seeds(calls),
        deterministic=_deterministic(calls),
    )


def dotted(node: ast.expr) -> str:
    """``torch.onnx.export`` of a call's function; empty for what is not a plain name."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        head = dotted(node.value)
        return f"{head}.{node.attr}" if head else node.attr
    return ""


def _imports(tree: ast.Module) -> Iterator[str]:
    """Yield top-level modules imported outside of ``try``, whose absence would end the script."""
    guarded = {id(node) for block in ast.walk(tree) if isinstance(block, ast.Try) for node in ast.walk(block)}
    for node in ast.walk(tree):
        if id(node) in guarded:
            continue
        if isinstance(node, ast.Import):
            yield from (name.name.partition(".")[0] for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]


def _keywords(call: ast.Call) -> dict[str, Literal]:
    return {word.arg: word.value.value for word in call.keywords if word.arg and isinstance(word.value, ast.Constant) and isinstance(word.value.value, (str, int, float, bool, type(None)))}  # fmt: skip


def _training_arguments(calls: list[tuple[str, ast.Call]]) -> dict[str, Literal]:
    found: dict[str, Literal] = {}
    for name, call in calls:
        if name.rpartition(".")[2] in _ARGUMENTS:
            found |= _keywords(call)
    return found


def _features(text: str, calls: list[tuple[str, ast.Call]], arguments: dict[str, Literal]) -> Iterator[str]:
    for name, call in calls:
        words, last = _keywords(call), name.rpartition(".")[2]
        if last in ("Trainer", "Seq2SeqTrainer", "SFTTrainer"):
            yield "trainer"
        if name == "torch.compile" or arguments.get("torch_compile") is True:
            yield "torch-compile"
        resumes = next((word.value for word in call.keywords if word.arg == "resume_from_checkpoint"), None)
        if resumes is not None and not (isinstance(resumes, ast.Constant) and not resumes.value):
            yield "resumes"
        if (
            last == "BitsAndBytesConfig"
            or words.get("load_in_4bit") is True
            or words.get("load_in_8bit") is True
        ):
            yield "bitsandbytes"
        if last == "from_pretrained" and isinstance(words.get("device_map"), str):
            yield "device-map"
        if last == "from_pretrained" and name.rpartition(".")[0].rpartition(".")[2] in _SENTENCEPIECE:
            yield "sentencepiece"
        if (
            words.get("attn_implementation") == "flash_attention_2"
            or words.get("use_flash_attention_2") is True
        ):
            yield "flash-attention-2"
        if name == "torch.onnx.export" and words.get("dynamo") is not False:
            yield "onnx-export-default-exporter"
        if last == "splitlines" and "vocab" in text:
            yield "vocab-splitlines"


_SENTENCEPIECE = ("T5Tokenizer", "LlamaTokenizer", "XLNetTokenizer", "CamembertTokenizer", "XLMRobertaTokenizer", "AlbertTokenizer", "MBartTokenizer", "PegasusTokenizer")  # fmt: skip
"""The slow tokenizers that transformers 4 makes with SentencePiece."""


def _decorated(tree: ast.Module) -> Iterator[str]:
    """Yield what the script's decorators ask for: ``@torch.compile`` or ``@torch.compile(...)``."""
    for node in ast.walk(tree):
        for one in getattr(node, "decorator_list", ()):
            if dotted(one.func if isinstance(one, ast.Call) else one) == "torch.compile":
                yield "torch-compile"


def _from_arguments(arguments: dict[str, Literal]) -> Iterator[str]:
    optimizer = str(arguments.get("optim") or "")
    if "8bit" in optimizer or "bnb" in optimizer:
        yield "bitsandbytes"
    if arguments.get("deepspeed"):
        yield "deepspeed"
    for tracker in ("wandb", "tensorboard"):
        if arguments.get("report_to") == tracker:
            yield tracker


def _num_workers(calls: list[tuple[str, ast.Call]], arguments: dict[str, Literal]) -> int | None:
    asked = [
        _keywords(call).get("num_workers") for name, call in calls if name.rpartition(".")[2] == "DataLoader"
    ]
    asked.append(arguments.get("dataloader_num_workers"))
    known = [value for value in asked if isinstance(value, int) and not isinstance(value, bool)]
    return max(known, default=None)


def _text(value: Literal) -> str | None:
    return value if isinstance(value, str) else None


def _seeds(calls: list[tuple[str, ast.Call]]) -> tuple[str, ...] | None:
    """Return what is seeded; None where nothing is, since a fragment need not show it."""
    names = {name for name, _ in calls}
    if any(name in _SEEDS_ALL or name.rpartition(".")[2] in _SEEDS_ALL for name in names):
        return ("numpy", "python", "torch")
    return tuple(sorted({_SEEDS[name] for name in names if name in _SEEDS})) or None


def _deterministic(calls: list[tuple[str, ast.Call]]) -> bool | None:
    for name, call in calls:
        first = call.args[0] if call.args else None
        if name == "torch.use_deterministic_algorithms" and isinstance(first, ast.Constant):
            return bool(first.value) and _keywords(call).get("warn_only") is not True
    return None


def judge_for_script(snapshot: Snapshot, source: str, path: str) -> tuple[Snapshot, Report]:
    """Return the snapshot with the script's workload in it, and one report on machine and script together.

    A script that is not Python is judged by lint alone (which says so); the machine is judged all the same.
    """
    try:
        workload = workload_from_script(source, path)
        snapshot = with_facts(snapshot, workload=ok(workload, path))
    except (SyntaxError, ValueError, RecursionError) as error:
        why = t("{place} could not be read as Python: {error}", place=path, error=str(error))
        snapshot = with_facts(snapshot, workload=Reading(status="failed", why=why, source=path))
    report = judge(snapshot)
    found = lint_source(source, None, path, snapshot)
    given = {item.id for item in report.findings()}
    together = [*report.findings(), *(item for item in found if item.id not in given)]
    return snapshot, msgspec.structs.replace(report, diagnoses=fold_symptoms(together))
