"""Patterns of DeepSpeed and FSDP: configurations that contradict, and what shards cannot do."""

from __future__ import annotations

from doctor.explain.match import Pattern
from doctor.model import t

PATTERNS: tuple[Pattern, ...] = (
    # AssertionError: Check batch related parameters. train_batch_size is not equal to micro_batch_per_gpu * gradient_acc_step * world_size 256 != 4 * 8 * 1
    Pattern(
        id="deepspeed-batch",
        regex=r"Check batch related parameters\. train_batch_size is not equal to micro_batch_per_gpu \* gradient_acc_step \* world_size (?P<whole>\d+) != (?P<micro>\d+) \* (?P<steps>\d+) \* (?P<ranks>\d+)",
        meaning=t("DeepSpeed's batch sizes contradict: train_batch_size is {whole}, and micro-batch x accumulation x processes is {micro} x {steps} x {ranks}.", whole="?", micro="?", steps="?", ranks="?"),
        advice=t("Leave train_batch_size out of the file, or set all three to \"auto\" under Trainer; with {ranks} for the processes also look whether all cards were started.", ranks="?"),
        confirms=("fewer-gpus-than-rented",),
    ),
    # ValueError: Please correct the following DeepSpeed config values that mismatch TrainingArguments values: - ds train_micro_batch_size_per_gpu=4 vs hf per_device_train_batch_size=8
    Pattern(
        id="deepspeed-arguments",
        regex=r"DeepSpeed config values that mismatch TrainingArguments values",
        meaning=t("The DeepSpeed file and the TrainingArguments say different things; the lines under it name each pair."),
        advice=t("\"auto\" for those values in the file: Trainer fills them in."),
    ),
    # ValueError: DeepSpeed Zero-3 is not compatible with `low_cpu_mem_usage=True` or with passing a `device_map`.
    Pattern(
        id="zero3-device-map",
        regex=r"DeepSpeed Zero-3 is not compatible with (?:`low_cpu_mem_usage=True`|passing a `device_map`)",
        meaning=t("ZeRO-3 spreads the weights itself while they are loaded, and device_map would do the same in another way."),
        advice=t("Leave device_map and low_cpu_mem_usage out of from_pretrained, and make the TrainingArguments before the model."),
    ),
    # RuntimeError: 'weight' must be 2-D   |   size mismatch for model.embed_tokens.weight: ... the shape in current model is torch.Size([0]).
    Pattern(
        id="zero3-empty-weight",
        regex=r"'weight' must be 2-D|the shape in current model is torch\.Size\(\[0\]\)",
        meaning=t("Under ZeRO-3 a weight is empty outside its own layer's forward, and something reads it there (generate on one rank, resizing, loading by hand, an evaluation model that was not prepared)."),
        advice=t("deepspeed.zero.GatheredParameters([weight]) around it; load with from_pretrained under the DeepSpeed configuration; synced_gpus=True in generate; or ZeRO-2."),
        hides=("state-dict",),
    ),
    # AssertionError: no_sync context manager is incompatible with gradient partitioning logic of ZeRO stage 3
    Pattern(
        id="zero-no-sync",
        regex=r"no_sync context manager is incompatible with gradient partitioning",
        meaning=t("Accumulation without exchange (no_sync) is not possible where ZeRO splits the gradients, and this accelerate or transformers asks for it."),
        advice=t("`python -m pip install -U transformers accelerate deepspeed` (newer ones leave it to DeepSpeed), ZeRO-1, or gradient accumulation of 1."),
        confirms=("dependent-library-too-old",),
    ),
    # assert param.ds_status == ZeroParamStatus.AVAILABLE, param.ds_summary()
    Pattern(
        id="zero3-parameter-away",
        regex=r"param\.ds_status == ZeroParamStatus\.AVAILABLE|ZeroParamStatus\.(?:NOT_AVAILABLE|INFLIGHT)",
        meaning=t("ZeRO-3 lost track of a parameter: layers run in another order than in the step before (branches, experts that are not used, a part called twice, gradient checkpointing)."),
        advice=t("ZeRO-2; for mixtures of experts deepspeed.utils.set_z3_leaf_modules(model, [Block]); gradient_checkpointing_kwargs={'use_reentrant': False}."),
    ),
    # AssertionError: You are using an untested ZeRO Optimizer. Please add <"zero_allow_untested_optimizer": true> in the configuration file to use it.
    Pattern(
        id="zero-untested-optimizer",
        regex=r"You are using an untested ZeRO Optimizer",
        meaning=t("DeepSpeed has not been tested with this optimizer under ZeRO, and refuses it."),
        advice=t("\"zero_allow_untested_optimizer\": true in the file if you mean it; else optim='adamw_torch', or \"optimizer\": {\"type\": \"AdamW\"} there."),
    ),
    # ValueError: Must flatten tensors with uniform dtype but got torch.bfloat16 and torch.float32
    Pattern(
        id="fsdp-uniform-dtype",
        regex=r"Must flatten tensors with uniform (?P<what>dtype|requires_grad|`requires_grad`)|FlatParameter requires uniform (?P<what2>dtype|requires_grad)",
        meaning=t("FSDP joins the weights of a block into one, and they differ in {what}{what2}: adapters in float32 beside bf16 weights, or frozen beside trained ones.", what="", what2=""),
        advice=t("One dtype for all (model.to(torch.bfloat16), bnb_4bit_quant_storage equal to it for QLoRA), use_orig_params=True for frozen parts, or FSDP2."),
    ),
    # ValueError: Could not find the transformer layer class LlamaDecoderLayer in the model.
    Pattern(
        id="fsdp-layer-class",
        regex=r"Could not find the transformer layer class(?: to wrap)?(?: (?P<name>\w+))?(?: in the model)?",
        meaning=t("FSDP's configuration names a layer class ({name}) that this model does not have.", name="?"),
        advice=t("`print(model)` shows the name of the repeated block (Qwen2DecoderLayer, MistralDecoderLayer ...): fsdp_transformer_layer_cls_to_wrap, or leave it out and let the model name it."),
    ),
    # AssertionError: Non-root FSDP instance's `_is_root` should not have been set yet
    Pattern(
        id="fsdp-not-root",
        regex=r"Non-root FSDP instance's `_is_root` should not have been set yet|Expects one of .{0,80} to be root FSDP",
        meaning=t("A part of a model sharded by FSDP was called by itself before the whole."),
        advice=t("Call the wrapped model, not its inner layers; for generate under FSDP: with FSDP.summon_full_params(model, recurse=False)."),
    ),
)  # fmt: skip
