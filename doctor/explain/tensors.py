"""Patterns of tensors, weights and processes as one's own code handles them: conversions, empty sets, files that hold less than they should."""

from __future__ import annotations

from doctor.explain.match import Pattern
from doctor.model import t

PATTERNS: tuple[Pattern, ...] = (
    # TypeError: can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory first.   |   RuntimeError: Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.
    Pattern(
        id="tensor-to-numpy",
        regex=r"can't convert \w+(?::\d+)? device type tensor to numpy|Can't call numpy\(\) on Tensor that requires grad|Got unsupported ScalarType BFloat16",
        meaning=t("A tensor that lies on the card, belongs to a gradient or is bfloat16 is to become a numpy array, which numpy cannot hold."),
        advice=t("x.detach().float().cpu().numpy(); in metrics and plots loss.item()."),
    ),
    # TypeError: Object of type float32 is not JSON serializable
    Pattern(
        id="not-json",
        regex=r"Object of type (?P<type>float32|float16|int64|int32|ndarray|Tensor|bool_|Timestamp|PosixPath|device|dtype) is not JSON serializable",
        meaning=t("A value of type {type} is written into a JSON file, which knows only Python's own numbers, texts and lists.", type="?"),
        advice=t("float(x), int(x), x.item(), x.tolist(), str(path) before json.dump; in compute_metrics return float(...)."),
    ),
    # RuntimeError: Boolean value of Tensor with more than one value is ambiguous
    Pattern(
        id="tensor-as-truth",
        regex=r"Boolean value of Tensor with more than one value is ambiguous|truth value of an array with more than one element is ambiguous",
        meaning=t("A tensor or array of several values stands where one yes or no is wanted (if, and, or, in a comparison of lists)."),
        advice=t("(x > 0).any() or .all(); `is None` in place of `== None`; & and | between masks, in parentheses. A loss class that was called with its arguments (CrossEntropyLoss(out, y)) says so too: CrossEntropyLoss()(out, y)."),
    ),
    # RuntimeError: Sizes of tensors must match except in dimension 1. Expected size 32 but got size 31 for tensor number 1 in the list.   |   RuntimeError: torch.cat(): expected a non-empty list of Tensors
    Pattern(
        id="cat-sizes",
        regex=r"Sizes of tensors must match except in dimension (?P<dimension>\d+)\. (?:Expected size (?P<wanted>\d+) but got size (?P<got>\d+)|Got \d+ and \d+)|torch\.cat\(\): expected a non-empty list of Tensors",
        meaning=t("Tensors are put together that do not fit (sizes {wanted} and {got}), or there is none.", wanted="?", got="?"),
        advice=t("Print the shapes just before. Skip connections: height and width must be a multiple of what the network halves (pad the input). Lists gathered over batches: the last batch is smaller, an empty one has no entry."),
    ),
    # RuntimeError: running_mean should contain 36 elements not 38
    Pattern(
        id="normalisation-sizes",
        regex=r"running_mean should contain (?P<got>\d+) elements not (?P<wanted>\d+)|Given normalized_shape=(?P<shape>\[[\d, ]+\]), expected input with shape",
        meaning=t("A normalisation layer was made for another number of channels than it is given (it has {wanted}, the input {got}).", wanted="?", got="?"),
        advice=t("num_features of that layer must be the number of channels of what comes in: look at the layer before it, and at options that add channels to the input."),
    ),
    # ValueError: num_samples should be a positive integer value, but got num_samples=0
    Pattern(
        id="empty-dataset",
        regex=r"num_samples should be a positive integer value, but got num_samples=0",
        meaning=t("The data set is empty: a wrong path or file pattern, or a filter that let nothing through."),
        advice=t("len(dataset) and the path it was made from (`ls` it from where the script is started)."),
    ),
    # ValueError: optimizer got an empty parameter list
    Pattern(
        id="no-parameters",
        regex=r"optimizer got an empty parameter list",
        meaning=t("The optimizer was given no parameters: everything is frozen, the layers stand in a plain Python list, or model.parameters() was used up before."),
        advice=t("[name for name, p in model.named_parameters() if p.requires_grad] shows which are trained; nn.ModuleList for lists of layers; LoRA: get_peft_model before the optimizer."),
    ),
    # RuntimeError: Caught RuntimeError in DataLoader worker process 0.   |   RuntimeError: Caught RuntimeError in replica 0 on device 0.
    Pattern(
        id="caught-in-worker",
        regex=r"Caught (?P<error>\w+) in (?P<where>DataLoader worker process|replica|pin memory thread)",
        meaning=t("The error happened in a worker ({where}) and is handed on. The last line under 'Original Traceback' is the true one.", where="?"),
        advice=t("num_workers=0 (or one card) once: the same error comes with its own traceback."),
        general=True,
    ),
    # ValueError: weight is on the meta device, we need a `value` to put in on 0.   |   ValueError: model.embed_tokens.weight doesn't have any device set.
    Pattern(
        id="device-map-incomplete",
        regex=r"is on the meta device, we need a `value` to put in on|(?P<weight>[\w.]+) doesn't have any device set",
        meaning=t("device_map left a part of the model without a place or without values: a map that does not name all of it, weights that are not in the checkpoint, or a transformers and accelerate that do not fit."),
        advice=t("device_map='auto' or {'': 0} in place of one of your own; `python -m pip install -U transformers accelerate`; 'newly initialized' in the log names weights that the checkpoint lacks."),
        confirms=("accelerate-transformers-mismatch",),
    ),
    # ValueError: The current `device_map` had weights offloaded to the disk. Please provide an `offload_folder` for them.   |   RuntimeError: You can't move a model that has some modules offloaded to cpu or disk.
    Pattern(
        id="weights-offloaded",
        regex=r"had weights offloaded to the disk\. Please provide an `offload_folder`|You can't move a model that has some modules offloaded to cpu or disk",
        meaning=t("The model does not fit the card's free memory, so parts of it were left on the host or the disk."),
        advice=t("See who else holds the card (`doctor check`); 4 bits, a smaller model or a larger card. For inference only: offload_folder='offload', and no .to() afterwards; such a model cannot be trained."),
        confirms=("vram-held-by-process", "orphan-process-holds-vram", "vram-mostly-used"),
    ),
    # RuntimeError: trying to initialize the default process group twice!
    Pattern(
        id="process-group-twice",
        regex=r"trying to initialize the default process group twice",
        meaning=t("The process group is made a second time: Trainer, accelerate and DeepSpeed make it themselves."),
        advice=t("Leave your own init_process_group out, or `if not torch.distributed.is_initialized():` before it."),
    ),
    # RuntimeError: NCCL communicator was aborted on rank 1.   |   torch.distributed.elastic.rendezvous.api.RendezvousClosedError
    Pattern(
        id="rank-aborted",
        regex=r"NCCL communicator was aborted on rank (?P<rank>\d+)|RendezvousClosedError|RuntimeError: Socket Timeout",
        meaning=t("This rank was stopped because another one failed or did not answer; it is not the cause."),
        advice=t("Look for the first error by time among all ranks' outputs (torchrun --log-dir keeps one file a rank)."),
        general=True,
    ),
    # AssertionError: DeepSpeed backend not set, please initialize it using init_process_group()
    Pattern(
        id="deepspeed-not-started",
        regex=r"DeepSpeed backend not set, please initialize it",
        meaning=t("DeepSpeed is used before its ranks know of each other."),
        advice=t("Start with `deepspeed SCRIPT` or torchrun, and make TrainingArguments (or deepspeed.init_distributed()) before the model."),
    ),
    # ValueError: Found `optimizer` configured in the DeepSpeed config, but no `scheduler`.
    Pattern(
        id="deepspeed-scheduler",
        regex=r"Found `optimizer` configured in the DeepSpeed config, but no `scheduler`",
        meaning=t("The DeepSpeed file brings an optimizer without a scheduler, and Trainer will not mix its own scheduler with it."),
        advice=t("Take \"optimizer\" out of the file (Trainer makes both), or add \"scheduler\": {\"type\": \"WarmupDecayLR\", \"params\": {\"warmup_num_steps\": \"auto\", \"total_num_steps\": \"auto\"}}."),
    ),
    # RuntimeError: Unable to JIT load the fused_adam op due to it not being compatible due to hardware/software issue.   |   AssertionError: Unable to pre-compile async_io
    Pattern(
        id="deepspeed-op-unfit",
        regex=r"Unable to (?:JIT load|pre-compile) (?:the )?(?P<op>\w+)(?: op)?",
        meaning=t("DeepSpeed cannot compile its operator {op} here: `ds_report` says for each what is missing.", op="?"),
        advice=t("async_io: `apt-get install -y libaio-dev`, and only for offload to an NVMe disk; fused_adam, cpu_adam: nvcc of torch's CUDA, gcc and ninja, or \"torch_adam\": true in the optimizer's params. DS_BUILD_OPS=0 when installing compiles nothing in advance."),
        confirms=("nvcc-torch-cuda-mismatch",),
    ),
    # AttributeError: Can't get attribute 'Net' on <module '__main__' from 'infer.py'>
    Pattern(
        id="pickled-class-missing",
        regex=r"Can't get attribute '(?P<name>\w+)' on <module '(?P<module>[^'\n]+)'",
        meaning=t("The file (or a worker process) holds a {name} that was defined in {module} where it was written, and is not there where it is read.", name="?", module="?"),
        advice=t("Save model.state_dict() in place of the whole model; for this file define or import {name} under the same name first. Workers: define it in a module of its own, not in the notebook or under `if __name__`.", name="it"),
    ),
    # ValueError: Unknown quantization type, got awq - supported types are: ['bitsandbytes_4bit', 'bitsandbytes_8bit', 'gptq']
    Pattern(
        id="quantization-unknown",
        regex=r"Unknown quantization type, got (?P<type>\w+)",
        meaning=t("The model is quantised with {type}, which this transformers does not know: it is too old for it.", type="?"),
        advice=t("`python -m pip install -U transformers accelerate`, and the library that the model's page names."),
        confirms=("transformers-torch-too-old",),
    ),
    # FileNotFoundError: No such file or directory: "/root/m/model-00001-of-00004.safetensors"
    Pattern(
        id="shard-missing",
        regex=r"No such file or directory: [\"'](?P<path>[^\"'\n]*-\d{5}-of-\d{5}\.(?:safetensors|bin))[\"']",
        meaning=t("A part of the model is missing: {path}. Its index names it, the download or copy did not bring it.", path="?"),
        advice=t("`hf download NAME --local-dir FOLDER` again: it fetches only what is missing. Mind the disk's free space."),
        confirms=("disk-nearly-full", "quota-exceeded-on-target"),
    ),
    # ValueError: BaichuanForCausalLM does not support Flash Attention 2.0 yet.
    Pattern(
        id="model-without-flash",
        regex=r"(?P<model>\w+) does not support (?P<what>Flash Attention 2(?:\.0)?|an attention implementation through torch\.nn\.functional\.scaled_dot_product_attention)",
        meaning=t("{model} has no code for this kind of attention in the installed transformers.", model="?"),
        advice=t("attn_implementation='sdpa', else 'eager'; newer versions have it for more models."),
    ),
)  # fmt: skip
