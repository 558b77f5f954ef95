"""Mixed precision: weights of the wrong type, models that overflow in fp16, attention that a card has no kernels for."""

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


def _asks_for_fp16(script: Script, call: Call) -> bool:
    """TrainingArguments(fp16=True), Accelerator(mixed_precision="fp16"), Trainer(precision=16) of Lightning, GradScaler()."""
    kind = script.kind_of(call)
    if kind.endswith(("TrainingArguments", "SFTConfig", "DPOConfig")):
        node = call.keywords.get("fp16")
        value = script.value_of(node, call.scope)
        if_there = isinstance(value, ast.Call) and script.resolve(value.func) == "torch.cuda.is_available"
        return if_there or script.constant(node, call.scope) is True
    if kind == "Accelerator":
        return script.constant(call.keywords.get("mixed_precision"), call.scope) == "fp16"
    if kind in ("Trainer", "Fabric") and "precision" in call.keywords:
        return script.constant(call.keywords["precision"], call.scope) in (16, "16", "16-mixed")
    return kind == "GradScaler" and script.constant(call.keywords.get("enabled"), call.scope) is not False


def trains_in_fp16(script: Script) -> Call | None:
    """Return the call that turns a GradScaler on, the scaler itself included; None when nothing does."""
    return next((call for call in script.calls if _asks_for_fp16(script, call)), _trainer_told_fp16(script))


def _trainer_told_fp16(script: Script) -> Call | None:
    """Return the Trainer of a script that sets ``training_args.fp16 = True`` by hand."""
    told = any(
        isinstance(target, ast.Attribute)
        and target.attr == "fp16"
        and "arg" in ast.unparse(target.value).lower()
        for node in ast.walk(script.tree)
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant) and node.value.value is True
        for target in node.targets
    )
    trainers = (
        call for call in script.calls if script.kind_of(call) in ("Trainer", "Seq2SeqTrainer", "SFTTrainer")
    )
    return next(trainers, None) if told else None


@rule
def fp16_weights(script: Script, installed: Installed) -> Iterator[Problem]:
    """Are the weights themselves fp16 while a GradScaler is used?"""
    scaler = trains_in_fp16(script)
    if scaler is None:
        return
    for call in (*_loaded_in_half(script, installed), *_cast_to_half(script, scaler)):
        title = t(
            'The model is loaded in fp16 and trained with a GradScaler: "Attempting to unscale FP16 gradients".'
        )
        advice = t("Load in float32 and let autocast make the fp16; or bf16=True without a scaler.")
        yield problem("fp16-params-with-gradscaler", "fail", call, title, advice)


def _loaded_in_half(script: Script, installed: Installed) -> Iterator[Call]:
    adapters = any(call.method == "get_peft_model" for call in script.calls)
    # From 0.12 on peft keeps the adapters of a half-precision model in float32.
    copies = any("modules_to_save" in call.keywords for call in script.calls)
    in_half = copies or installed.at_least("peft", "0.12") is False
    for call in script.methods("from_pretrained"):
        node = call.keywords.get("torch_dtype") or call.keywords.get("dtype")
        quantised = {"quantization_config", "load_in_8bit", "load_in_4bit"} & set(call.keywords)
        if is_fp16(script, node, call) and not quantised and (not adapters or in_half):
            name = _name_given_to(script, call)
            if not _is_frozen(script, name) and not _another_is_trained(script, name):
                yield call


def _name_given_to(script: Script, call: Call) -> str:
    """Return the variable that holds what ``call`` made (``Net.from_pretrained(...).eval()`` too); empty: there is none."""
    for (_, name), values in script.assigned.items():
        if any(node is call.node for _, value in values for node in _chain(value)):
            return name
    return ""


def _another_is_trained(script: Script, name: str) -> bool:
    """Optimizers stand in the script, and none of them gets this model's parameters."""
    owners = {call.receiver.rpartition(".")[2] for call in script.methods("parameters", "named_parameters")}
    trained = any(script.resolve(call.node.func).startswith("torch.optim.") for call in script.calls)
    return trained and bool(name) and bool(owners) and name.rpartition(".")[2] not in owners


def _is_frozen(script: Script, name: str) -> bool:
    return bool(name) and any(
        call.receiver == name and call.node.args and script.constant(call.node.args[0]) is False
        for call in script.methods("requires_grad_")
    )


_MODEL = re.compile(r"(?:^|[._])(?:model|net|network|unet|backbone|bert|student|transformer|generator)\d*$", re.IGNORECASE)  # fmt: skip
_BUILDS = ("__init__", "main", "setup", "build", "build_model", "get_model", "load_model", "create_model")


def _cast_to_half(script: Script, scaler: Call) -> Iterator[Call]:
    """Yield ``model.half()`` and ``model.to(torch.float16)`` of a model that is trained where the scaler is."""
    yield from script.named("torch.set_default_dtype") if _default_is_half(script) else ()
    for call in script.methods("half", "to"):
        if call.method == "half":
            cast = not call.node.args
        else:
            cast = any(is_fp16(script, one, call) for one in (*call.node.args, call.keywords.get("dtype")))
        together = call.scope in ((), scaler.scope) or call.scope[-1] in _BUILDS
        name = _name_held(script, call)
        if cast and _is_cast_back(script, call):
            continue
        if cast and together and _MODEL.search(name) and not _is_frozen(script, name):
            yield call


def _is_cast_back(script: Script, call: Call) -> bool:
    # model.half().float()
    around = script.parents.get(id(call.node))
    return isinstance(around, ast.Attribute) and around.attr in ("float", "bfloat16")


def _default_is_half(script: Script) -> bool:
    return any(
        is_fp16(script, call.argument(0, "d"), call) for call in script.named("torch.set_default_dtype")
    )


def _name_held(script: Script, call: Call) -> str:
    """Return the model that is cast: the receiver, or the variable that gets ``Net().half().cuda()`` as a whole."""
    if "(" not in call.receiver:
        return call.receiver
    for (_, name), values in script.assigned.items():
        for _, value in values:
            if isinstance(value, ast.Call) and any(node is call.node for node in _chain(value)):
                return name
    return ""


def _chain(node: ast.expr) -> Iterator[ast.expr]:
    """Yield the calls of ``a().b().c()`` from the last to the first."""
    while isinstance(node, ast.Call):
        yield node
        if not isinstance(node.func, ast.Attribute):
            return
        node = node.func.value


# google/flan-t5-base, google/mt5-small, t5-base: pretrained in bf16; their activations overflow fp16
_BF16_FAMILIES = re.compile(
    r"(?:^|[/_-])(?:(?!gp)[a-z]{0,5}t5p?|t0(?:pp|_3b)?|gemma)(?:[-_.\d]|$)", re.IGNORECASE
)
# T5ForConditionalGeneration, MT5EncoderModel, Gemma2ForCausalLM
_BF16_CLASSES = re.compile(r"^(?:U?M?T5|LongT5|Gemma\d?)(?:For|Model|Encoder)")


@rule
def fp16_on_bf16_models(script: Script, installed: Installed) -> Iterator[Problem]:
    """Is a model that was pretrained in bf16 trained in fp16?"""
    scaler = trains_in_fp16(script)
    if scaler is None:
        return
    for call in script.methods("from_pretrained"):
        given = script.constant(call.node.args[0], call.scope) if call.node.args else None
        kind = call.receiver.rpartition(".")[2]
        name = given if isinstance(given, str) else kind
        known = bool(isinstance(given, str) and _BF16_FAMILIES.search(given)) or bool(_BF16_CLASSES.match(kind))  # fmt: skip
        if known and not _is_tokenizer(call):
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
