"""The model card of a finished run: what it is, how good, on what data, from which seeds, and how to load it."""

from __future__ import annotations

import hashlib
from importlib import metadata
from typing import Any

from runner.data import DataFacts
from runner.plan import Plan
from runner.train_state import TrainState

_PIPELINES = {
    "classification": "text-classification",
    "multi-label": "text-classification",
    "regression": "text-classification",
    "token-classification": "token-classification",
    "causal-lm": "text-generation",
    "masked-lm": "fill-mask",
}
_SHOWN = ("torch", "transformers", "accelerate", "tokenizers", "numpy")


def environment_digest() -> str:
    """Return a hash over the names and versions of every distribution of this environment."""
    names = sorted({f"{one.name}=={one.version}" for one in metadata.distributions() if one.name})
    return hashlib.sha256("\n".join(names).encode()).hexdigest()


def model_card(plan: Plan, facts: DataFacts, state: TrainState, metrics: dict[str, float]) -> str:
    """Return the card as Markdown with the front matter that the hub reads. English, as cards are."""
    task = plan.profile.model.task
    lines = [
        "---",
        "library_name: transformers",
        *([f"pipeline_tag: {_PIPELINES[task]}"] if task in _PIPELINES else []),
        "tags: [rundoctor]",
        "---",
        "",
        f"# {plan.profile.run.name}",
        "",
        *_results(facts, metrics),
        *_use(task, facts),
        *_training(plan, facts, state),
        *_environment(plan),
    ]
    return "\n".join(lines) + "\n"


def _results(facts: DataFacts, metrics: dict[str, float]) -> list[str]:
    rows = [f"| {name} | {value:.4f} |" for name, value in metrics.items()]
    return [f"On {facts.eval.samples} held-out rows, none of which was trained on:", "",
            "| metric | value |", "| --- | --- |", *rows, ""]  # fmt: skip


def _use(task: str, facts: DataFacts) -> list[str]:
    pipeline = _PIPELINES.get(task, "text-classification")
    length = f"truncation=True, max_length={facts.max_length}"
    call = f'answers("...", {length})' if _PIPELINES.get(task) == "text-classification" else 'answers("...")'
    return ["## Use", "", "```python", "from transformers import pipeline", "",
            f'answers = pipeline("{pipeline}", model=".")', f"print({call})", "```", "",
            f"Texts were cut to {facts.max_length} tokens in training.", ""]  # fmt: skip


def _training(plan: Plan, facts: DataFacts, state: TrainState) -> list[str]:
    train, data, settings = plan.profile.train, plan.profile.data, plan.settings
    came_from = data.hub or data.package or ", ".join(_names(data.train)) or data.function
    labels = ", ".join(facts.classes[:30]) + (f" and {len(facts.classes) - 30} more" if len(facts.classes) > 30 else "")  # fmt: skip
    return [
        "## Training",
        "",
        f"- Started from: {_origin(plan)}",
        f"- Data: {came_from}; {facts.train.samples} rows trained on, {facts.eval.samples} held out",
        *([f"- Labels: {labels}"] if labels else []),
        f"- {state.updates_done} updates, {state.samples_done} samples, global batch {train.batch_size}, learning rate {train.lr:g} ({train.schedule})",
        f"- Precision {settings.precision}, device {settings.device}, gradient norm clipped at {train.clip_norm:g}",
        f"- Seed {plan.profile.run.seed}; steps with non-finite numbers: {state.non_finite_windows}",
        f"- Plan digest: `{plan.digest}`",
        "- The licences of the base model and of the data were not looked at: see to them before you share this.",
        "",
    ]


def _names(paths: Any) -> list[str]:
    """Return the files' names without their folders, which are the trainer's own business."""
    given = [paths] if isinstance(paths, str) else list(paths)
    return [path.rsplit("/", 1)[-1] for path in given]


def _origin(plan: Plan) -> str:
    model = plan.profile.model
    where = model.hub or model.package or model.path.rsplit("/", 1)[-1]
    return where or f"a new {model.config.get('model_type', 'model')}, from its configuration"


def _environment(plan: Plan) -> list[str]:
    versions = []
    for name in _SHOWN:
        try:
            versions.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            continue
    return ["## Environment", "", f"{', '.join(versions)}.",
            f"All distributions, hashed: `{environment_digest()}`.", ""]  # fmt: skip
