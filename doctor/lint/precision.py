"""Mixed precision: scalers, unscaling, clipping, and weights of the wrong type."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from doctor.lint import Call, Installed, Problem, Script, problem, rule
from doctor.model import t


def is_fp16(script: Script, node: ast.expr | None, call: Call) -> bool:
    """Return whether ``node`` is torch.float16, torch.half, "float16" or "fp16"."""
    if node is None:
        return False
    value = script.value_of(node, call.scope)
    if isinstance(value, ast.Constant):
        return value.value in ("float16", "fp16", "half")
    return isinstance(value, ast.expr) and script.resolve(value) in ("torch.float16", "torch.half")


def trains_in_fp16(script: Script) -> Call | None:
    """Return the call that turns a GradScaler on: TrainingArguments(fp16=True) or a scaler itself."""
    for call in script.calls:
        if (
            call.method.endswith("TrainingArguments")
            and script.constant(call.keywords.get("fp16"), call.scope) is True
        ):
            return call
        if (
            call.method == "GradScaler"
            and script.constant(call.keywords.get("enabled"), call.scope) is not False
        ):
            return call
    return None


@rule
def fp16_weights(script: Script, installed: Installed) -> Iterator[Problem]:
    """Are the weights themselves fp16 while a GradScaler is used?"""
    scaler = trains_in_fp16(script)
    if scaler is None:
        return
    adapters = any(call.method == "get_peft_model" for call in script.calls)
    copies = any("modules_to_save" in call.keywords for call in script.calls)
    for call in script.methods("from_pretrained"):
        node = call.keywords.get("torch_dtype") or call.keywords.get("dtype")
        quantised = {"quantization_config", "load_in_8bit", "load_in_4bit"} & set(call.keywords)
        if is_fp16(script, node, call) and not quantised and (not adapters or copies):
            title = t(
                'The model is loaded in fp16 and trained with a GradScaler: "Attempting to unscale FP16 gradients".'
            )
            advice = t("Load in float32 and let autocast make the fp16; or bf16=True without a scaler.")
            yield problem("fp16-params-with-gradscaler", "fail", call, title, advice)


@rule
def clip_before_unscale(script: Script, installed: Installed) -> Iterator[Problem]:
    """Are gradients clipped while they are still scaled?"""
    for clip in script.methods("clip_grad_norm_", "clip_grad_value_"):
        if clip.receiver.rpartition(".")[2] in ("accelerator", "fabric", "self"):
            continue
        mates = [call for call in script.calls if call.scope == clip.scope]
        scaled = [call for call in mates if call.method == "scale" and _is_scaler(script, call)]
        if not scaled or not any(call.method == "backward" for call in mates):
            continue
        if not any(call.method == "unscale_" and call.order < clip.order for call in mates):
            title = t(
                "Gradients are clipped while still multiplied by the loss scale, so the limit is meaningless."
            )
            advice = t("Call scaler.unscale_(optimizer) once before clip_grad_norm_.")
            yield problem("clip-before-unscale", "fail", clip, title, advice)


def _is_scaler(script: Script, call: Call) -> bool:
    value = (
        script.value_of(call.node.func.value, call.scope)
        if isinstance(call.node.func, ast.Attribute)
        else None
    )
    made = isinstance(value, ast.Call) and script.resolve(value.func).endswith("GradScaler")
    return made or "scaler" in call.receiver.lower()


@rule
def unscale_twice(script: Script, installed: Installed) -> Iterator[Problem]:
    """Is unscale_ called twice for one optimizer without an update between?"""
    seen: dict[tuple[str, int], Call] = {}
    for call in script.calls:
        key = (ast.unparse(call.node.args[0]) if call.node.args else "", call.block)
        if call.method == "unscale_":
            if key in seen and seen[key].scope == call.scope:
                title = t("unscale_ is called a second time before scaler.update(): RuntimeError.")
                yield problem(
                    "unscale-twice",
                    "fail",
                    call,
                    title,
                    t("Unscale once per optimizer step, before clipping."),
                )
            seen[key] = call
        elif call.method == "update" and "scaler" in call.receiver.lower():
            seen = {}


# google/flan-t5-base, google/mt5-small, t5-base: pretrained in bf16; their activations overflow fp16
_BF16_FAMILIES = re.compile(
    r"(?:^|[/_-])(?:m?t5|umt5|byt5|flan-t5|long-t5|t0|gemma)(?:[-_.\d]|$)", re.IGNORECASE
)


@rule
def fp16_on_bf16_models(script: Script, installed: Installed) -> Iterator[Problem]:
    """Is a model that was pretrained in bf16 trained in fp16?"""
    scaler = trains_in_fp16(script)
    if scaler is None:
        return
    for call in script.methods("from_pretrained"):
        name = script.constant(call.node.args[0], call.scope) if call.node.args else None
        if isinstance(name, str) and _BF16_FAMILIES.search(name) and not _is_tokenizer(call):
            title = t("{model} was pretrained in bf16 and overflows in fp16: loss NaN or 0.", model=name)
            capability = installed.lowest_capability()
            old_card = capability is not None and capability < (8, 0)
            advice = (
                t("This card has no bf16: train in fp32.")
                if old_card
                else t("Use bf16=True in place of fp16=True.")
            )
            yield problem("fp16-on-bf16-pretrained", "warn", scaler, title, advice, name)


def _is_tokenizer(call: Call) -> bool:
    return any(word in call.receiver.lower() for word in ("tokenizer", "processor", "config"))


@rule
def attention_needs_ampere(script: Script, installed: Installed) -> Iterator[Problem]:
    """Is flash-attention 2 asked for on a card that it has no kernels for?"""
    capability = installed.lowest_capability()
    if capability is None or capability >= (8, 0):
        return
    for call in script.methods("from_pretrained", "from_config"):
        asked = script.constant(call.keywords.get("attn_implementation"), call.scope) == "flash_attention_2"
        if asked or script.constant(call.keywords.get("use_flash_attention_2"), call.scope) is True:
            have = f"{capability[0]}.{capability[1]}"
            title = t("flash_attention_2 needs compute capability 8.0; the card here has {have}.", have=have)
            yield problem(
                "flash-attn-unsupported-gpu", "fail", call, title, t('Use attn_implementation="sdpa".')
            )
