"""The model card of a finished run: what it is, how good, on what data, from which seeds, and how to load it."""

from __future__ import annotations

import hashlib
import json
from importlib import metadata
from typing import Any

from runner.data import DataFacts
from runner.deploy.card_use import PIPELINES, is_adapter, origin, use_lines
from runner.plan import Plan
from runner.train_state import TrainState

_SHOWN = ("torch", "transformers", "accelerate", "tokenizers", "numpy")


def environment_digest() -> str:
    """Return a hash over the names and versions of every distribution of this environment."""
    names = sorted({f"{one.name}=={one.version}" for one in metadata.distributions() if one.name})
    return hashlib.sha256("\n".join(names).encode()).hexdigest()


def model_card(
    plan: Plan, facts: DataFacts, state: TrainState, metrics: dict[str, float], is_finished: bool = True
) -> str:
    """Return the card as Markdown with the front matter that the hub reads. English, as cards are.

    ``is_finished``: False for a checkpoint of a run that went on, or was to.
    """
    lines = [
        *_front_matter(plan),
        f"# {_in_one_line(plan.profile.run.name)}",
        "",
        *(
            []
            if is_finished
            else [f"A checkpoint after {state.updates_done} updates of a run that was not finished.", ""]
        ),
        *_results(facts, metrics),
        *use_lines(plan, facts),
        *_training(plan, facts, state),
        *_not_stated(),
        *_environment(plan),
    ]
    return "\n".join(lines) + "\n"


def _front_matter(plan: Plan) -> list[str]:
    """JSON strings are YAML strings: a name from elsewhere cannot break the block."""
    profile = plan.profile
    task, hub = profile.model.task, profile.model.hub
    return [
        "---",
        f"library_name: {'peft' if is_adapter(plan) else 'transformers'}",
        *([f"pipeline_tag: {PIPELINES[task]}"] if task in PIPELINES else []),
        *([f"base_model: {json.dumps(hub)}"] if hub else []),
        *([f"datasets: [{json.dumps(profile.data.hub)}]"] if profile.data.hub else []),
        "tags: [rundoctor]",
        "---",
        "",
    ]


def _in_one_line(words: str) -> str:
    return " ".join(words.split())


def _results(facts: DataFacts, metrics: dict[str, float]) -> list[str]:
    if not metrics:
        return ["It was never evaluated on held-out rows.", ""]
    rows = [f"| {name} | {value:.4f} |" for name, value in metrics.items()]
    return [f"On {facts.eval.samples} held-out rows, none of which was trained on:", "",
            "| metric | value |", "| --- | --- |", *rows, ""]  # fmt: skip


def _training(plan: Plan, facts: DataFacts, state: TrainState) -> list[str]:
    train, settings = plan.profile.train, plan.settings
    labels = ", ".join(map(_in_one_line, facts.classes[:30])) + (f" and {len(facts.classes) - 30} more" if len(facts.classes) > 30 else "")  # fmt: skip
    return [
        "## Training",
        "",
        f"- Started from: {origin(plan)}",
        *_data(plan, facts),
        *([f"- Labels: {labels}"] if labels else []),
        f"- {state.updates_done} updates, {state.samples_done} samples, global batch {train.batch_size}, learning rate {train.lr:g} ({train.schedule})",
        f"- Precision {settings.precision}, device {settings.device}, gradient norm clipped at {train.clip_norm:g}",
        f"- Seed {plan.profile.run.seed} ({', '.join(f'{name} {seed}' for name, seed in plan.seeds.items())}); steps with non-finite numbers: {state.non_finite_windows}",
        *(
            [f"- Not exact since it was continued: {', '.join(state.approximate)}"]
            if state.approximate
            else []
        ),
        f"- Plan digest: `{plan.digest}`",
        "",
    ]


def _data(plan: Plan, facts: DataFacts) -> list[str]:
    data = plan.profile.data
    came_from = data.hub or data.package or ", ".join(_names(data.train)) or data.function
    hashes = [f"{part} `{sha256}`" for part, sha256 in _hashes(facts)]
    return [
        f"- Data: {came_from}; {facts.train.samples} rows ({facts.train.tokens} tokens) trained on, {facts.eval.samples} held out; {facts.train.truncated + facts.eval.truncated} were cut",
        f"- SHA-256 of the rows as token ids: {', '.join(hashes)}",
        *([f"- SHA-256 that the profile pins of the source: `{data.sha256}`"] if data.sha256 else []),
    ]


def _hashes(facts: DataFacts) -> list[tuple[str, str]]:
    parts = (("trained on", facts.train), ("held out", facts.eval))
    return [
        (name, part.sha256[file]) for name, part in parts for file in part.sha256 if file.endswith("ids.bin")
    ]


def _not_stated() -> list[str]:
    return [
        "## Not stated",
        "",
        "- Intended use and limitations: not stated. The numbers above are of the rows described above, and of nothing else.",
        "- Licence: not stated. Those of the base model and of the data were not looked at: see to them before you share this.",
        "- Personal or offensive content in the data: not looked at.",
        "",
    ]


def _names(paths: Any) -> list[str]:
    """Return the files' names without their folders, which are the trainer's own business."""
    given = [paths] if isinstance(paths, str) else list(paths)
    return [path.rsplit("/", 1)[-1] for path in given]


def _environment(plan: Plan) -> list[str]:
    versions = []
    for name in _SHOWN:
        try:
            versions.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            continue
    return ["## Environment", "", f"{', '.join(versions)}.",
            f"All distributions, hashed: `{environment_digest()}`.", ""]  # fmt: skip
