"""How a finished model is loaded, as lines of its card: a program that runs as it stands, in the model's folder."""

from __future__ import annotations

from runner.data import DataFacts
from runner.plan import Plan

PIPELINES = {
    "classification": "text-classification",
    "multi-label": "text-classification",
    "regression": "text-classification",
    "token-classification": "token-classification",
    "causal-lm": "text-generation",
    "masked-lm": "fill-mask",
}
"""What transformers calls each task."""
_CLASSES = {
    "text-classification": "AutoModelForSequenceClassification",
    "token-classification": "AutoModelForTokenClassification",
    "text-generation": "AutoModelForCausalLM",
    "fill-mask": "AutoModelForMaskedLM",
}


def use_lines(plan: Plan, facts: DataFacts) -> list[str]:
    """Return the section of the card."""
    pipeline = PIPELINES[plan.profile.model.task]
    options = ", top_k=None" if pipeline == "text-classification" else ""
    opened = (
        _adapter(plan, facts, pipeline) if is_adapter(plan) else ["from transformers import pipeline", ""]
    )
    source = 'model=model, tokenizer=AutoTokenizer.from_pretrained(".")' if is_adapter(plan) else 'model="."'
    return [
        "## Use", "", "```python", *opened,
        f'answers = pipeline("{pipeline}", {source}{options})', f"print({_call(pipeline, facts)})", "```", "",
        *([f"This is a LoRA adapter alone, on its base: {origin(plan)}.", ""] if is_adapter(plan) else []),
        f"Texts were cut to {facts.max_length} tokens in training.",
        "Where a folder `onnx` lies beside this file, it holds the same model for onnxruntime; its README says how to load it.",
        "",
    ]  # fmt: skip


def _call(pipeline: str, facts: DataFacts) -> str:
    calls = {
        # A list of one: what a single text gives back differs by version.
        "text-classification": f'answers(["..."], truncation=True, max_length={facts.max_length})[0]',
        "fill-mask": 'answers(f"... {answers.tokenizer.mask_token}")',
        "text-generation": 'answers("...", max_new_tokens=50)',
    }
    return calls.get(pipeline, 'answers("...")')


def _adapter(plan: Plan, facts: DataFacts, pipeline: str) -> list[str]:
    """An adapter's folder does not say how many classes its head has, nor their names: they stand here."""
    auto, labels = _CLASSES[pipeline], ""
    if "classification" in pipeline:
        names = ", ".join(f"{number}: {name!r}" for number, name in enumerate(facts.classes))
        labels = f", id2label={{{names}}}" if names else ", num_labels=1"
        labels += ", ignore_mismatched_sizes=True"
    if plan.profile.model.task in ("multi-label", "regression"):
        kind = "regression" if plan.profile.model.task == "regression" else "multi_label_classification"
        labels += f", problem_type={kind!r}"
    return [
        "from peft import PeftConfig, PeftModel",
        f"from transformers import {auto}, AutoTokenizer, pipeline",
        "",
        'base = PeftConfig.from_pretrained(".").base_model_name_or_path',
        f'model = PeftModel.from_pretrained({auto}.from_pretrained(base{labels}), ".").merge_and_unload()',
    ]


def is_adapter(plan: Plan) -> bool:
    """Does the folder hold a LoRA adapter alone?"""
    lora = plan.profile.model.lora
    return lora is not None and not lora.merge


def origin(plan: Plan) -> str:
    """Return what the model was before, without a folder of this machine."""
    model = plan.profile.model
    where = model.hub or model.package or model.path.rsplit("/", 1)[-1]
    return where or f"a new {model.config.get('model_type', 'model')}, from its configuration"
