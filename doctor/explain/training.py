"""Patterns of training code: labels and ids, precision, gradients."""

from __future__ import annotations

from doctor.explain.match import Pattern
from doctor.model import t

_LOSS_NAN = t(
    "The loss or the gradient norm is NaN. Trainer's log may show loss 0.0 beside grad_norm nan: the filter hides it."
)
_BEFORE_NAN = t(
    "Stop: the weights are already lost. Go back to a checkpoint; bf16 or fp32, lower learning rate, clipping, and look at the batch."
)

PATTERNS: tuple[Pattern, ...] = (
    # /pytorch/aten/src/ATen/native/cuda/Loss.cu:250: nll_loss_forward_reduce_cuda_kernel_2d: ... Assertion `t >= 0 && t < n_classes` failed.
    Pattern(
        id="assert-label",
        regex=r"Assertion [`']t >= 0 && t < n_classes[`'] failed",
        meaning=t("A label lies outside 0 .. num_labels-1."),
        advice=t(
            "Compare the labels' smallest and largest value with num_labels; labels must start at 0, -100 is ignored."
        ),
        confirms=("label-out-of-range",),
        hides=("device-assert", "cuda-error-late"),
    ),
    # .../Indexing.cu:1236: indexSelectSmallIndex: block: ... Assertion `srcIndex < srcSelectDimSize` failed.
    Pattern(
        id="assert-index",
        regex=r"Assertion [`'](?:srcIndex < srcSelectDimSize|-sizes\[i\] <= index && index < sizes\[i\] && \"index out of bounds\"|ind >= 0 && ind < ind_dim_size.*?|idx_dim >= 0 && idx_dim < index_size.*?)[`'] failed",
        meaning=t(
            "An index is larger than the table it looks into: a token id beyond the embedding, a position beyond max_position_embeddings, or a wrong gather."
        ),
        advice=t(
            "Compare the tokenizer's size with the embedding's rows; truncate to the model's maximum length."
        ),
        confirms=("token-id-out-of-vocab",),
        hides=("device-assert", "cuda-error-late"),
    ),
    # RuntimeError: CUDA error: device-side assert triggered
    Pattern(
        id="device-assert",
        regex=r"device-side assert triggered",
        meaning=t(
            "A kernel found an index out of range (a label or a token id). The lines just above with 'Assertion' say which; the Python line may be late."
        ),
        advice=t(
            "Run one batch on the CPU: it names the value. Restart the process, its CUDA context is lost."
        ),
        confirms=("label-out-of-range", "token-id-out-of-vocab"),
        hides=("cuda-error-late",),
    ),
    # IndexError: Target 2 is out of bounds.
    Pattern(
        id="target-out-of-bounds",
        regex=r"Target (?P<label>-?\d+) is out of bounds",
        meaning=t("Label {label} does not exist for this number of labels.", label="?"),
        advice=t("Set num_labels to the largest label plus one, or map the labels to 0 .. n-1."),
        confirms=("label-out-of-range",),
    ),
    # IndexError: index out of range in self
    Pattern(
        id="index-out-of-range",
        regex=r"index out of range in self",
        meaning=t(
            "An embedding was asked for a row it does not have: a token id beyond the vocabulary, or a text longer than the position table."
        ),
        advice=t(
            "model.resize_token_embeddings(len(tokenizer)) after adding tokens; truncation=True with max_length."
        ),
        confirms=("token-id-out-of-vocab",),
    ),
    # ValueError: Attempting to unscale FP16 gradients.
    Pattern(
        id="unscale-fp16",
        regex=r"Attempting to unscale FP16 gradients",
        meaning=t(
            "The weights themselves are fp16: a GradScaler needs fp32 weights, autocast makes the fp16."
        ),
        advice=t(
            "Load the model in fp32 (dtype=torch.float32; transformers 5 loads the file's own type), and keep autocast."
        ),
        confirms=("fp16-params-with-gradscaler",),
    ),
    # RuntimeError: unscale_() has already been called on this optimizer since the last update().
    Pattern(
        id="unscale-twice",
        regex=r"unscale_\(\) has already been called on this optimizer",
        meaning=t("unscale_ was called twice before scaler.update()."),
        advice=t("Once per optimizer step: after the last micro-batch's backward, before clipping."),
        confirms=("unscale-twice",),
    ),
    # AssertionError: No inf checks were recorded for this optimizer.
    Pattern(
        id="no-inf-checks",
        regex=r"No inf checks were recorded for this optimizer",
        meaning=t(
            "The scaler saw no gradients: nothing was backpropagated since the last step, or the optimizer holds other parameters than the model."
        ),
        advice=t(
            "Build the optimizer from the model's own parameters (after moving it), and step only after a backward."
        ),
        confirms=("optimizer-before-cuda",),
    ),
    # RuntimeError: Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!
    Pattern(
        id="two-devices",
        regex=r"Expected all tensors to be on the same device|Input type \(torch\.(?:cuda\.)?\w+\) and weight type|should be the same or input should be a MKLDNN",
        meaning=t("Some tensors are on the card and some on the CPU (or of another type)."),
        advice=t("Move model and every input of the batch to one device: batch = {name: value.to(device)}."),
    ),
    # RuntimeError: expected scalar type Half but found Float   |   mat1 and mat2 must have the same dtype, but got Half and Float
    Pattern(
        id="two-dtypes",
        regex=r"expected scalar type \w+ but found \w+|(?:mat1 and mat2 must|expected m(?:at)?1 and m(?:at)?2 to) have the same dtype|Found dtype \w+ but expected \w+",
        meaning=t(
            "Two tensors of different types meet: a part of the model was cast by hand, or runs outside autocast."
        ),
        advice=t("Do not call .half() on the model; let autocast choose, or load everything in bf16."),
        confirms=("fp16-params-with-gradscaler",),
    ),
    # RuntimeError: element 0 of tensors does not require grad and does not have a grad_fn
    Pattern(
        id="no-grad-fn",
        regex=r"element 0 of tensors does not require grad and does not have a grad_fn|None of the inputs have requires_grad=True",
        meaning=t(
            "No gradient can flow: everything is frozen, or re-entrant checkpointing cut the graph because the inputs need no gradient."
        ),
        advice=t(
            "gradient_checkpointing_kwargs={'use_reentrant': False}, or model.enable_input_require_grads() with frozen embeddings (LoRA)."
        ),
        confirms=("reentrant-checkpoint-frozen-inputs",),
    ),
    # RuntimeError: Trying to backward through the graph a second time
    Pattern(
        id="backward-twice",
        regex=r"Trying to backward through the graph a second time",
        meaning=t("A loss (or something it hangs on) was kept across steps and backpropagated again."),
        advice=t(
            "Sum losses for logging with .item() or .detach(); carry hidden states over with .detach()."
        ),
    ),
    # RuntimeError: one of the variables needed for gradient computation has been modified by an inplace operation
    Pattern(
        id="inplace",
        regex=r"one of the variables needed for gradient computation has been modified by an inplace operation",
        meaning=t("A tensor that backward still needs was changed in place."),
        advice=t(
            "Replace `x += y` by `x = x + y` near the place that torch.autograd.set_detect_anomaly(True) names."
        ),
    ),
    # RuntimeError: Function 'LogSoftmaxBackward0' returned nan values in its 0th output.
    Pattern(
        id="anomaly-nan",
        regex=r"Function '(?P<function>\w+)' returned nan values",
        meaning=t("Anomaly detection found the first NaN in {function}.", function="?"),
        advice=t(
            "Lower the learning rate, clip gradients, and use bf16 in place of fp16 for models pretrained in bf16."
        ),
        confirms=("fp16-on-bf16-pretrained", "learning-rate-too-high"),
    ),
    # {'loss': 0.0, 'grad_norm': nan, 'learning_rate': ...}   |   loss: nan   |   Loss nan   LearningRate 0.001
    Pattern(
        id="loss-nan",
        regex=r"(?P<name>\w{0,40}(?:[Ll]oss|grad_norm))'?(?:[ \t]*[:=][ \t]*|[ \t]+)'?nan\b",
        cleared_by=r"(?<![\w.])['\"]?{name}['\"]?(?:[ \t]*[:=][ \t]*|[ \t]+)['\"]?-?\d",
        meaning=_LOSS_NAN,
        advice=_BEFORE_NAN,
        confirms=("fp16-on-bf16-pretrained", "learning-rate-too-high"),
    ),
    # "eval_loss": NaN,
    Pattern(
        id="state-loss-nan",
        regex=r"\"(?P<name>\w{0,40}(?:[Ll]oss|grad_norm))\": NaN\b",
        cleared_by=r"\"{name}\": -?\d",
        meaning=_LOSS_NAN,
        advice=_BEFORE_NAN,
        confirms=("fp16-on-bf16-pretrained", "learning-rate-too-high"),
    ),
    # RuntimeError: Deterministic behavior was enabled ... you must set an environment variable ... CUBLAS_WORKSPACE_CONFIG=:4096:8
    Pattern(
        id="cublas-workspace",
        regex=r"CUBLAS_WORKSPACE_CONFIG=:4096:8",
        meaning=t("Deterministic algorithms are on, and cuBLAS needs its workspace fixed for that."),
        advice=t("`export CUBLAS_WORKSPACE_CONFIG=:4096:8` before Python starts."),
        confirms=("cublas-workspace-unset",),
    ),
    # RuntimeError: scatter_add_cuda_kernel does not have a deterministic implementation
    Pattern(
        id="no-deterministic",
        regex=r"(?P<op>\w+) does not have a deterministic implementation",
        meaning=t("{op} has no deterministic form on the GPU.", op="?"),
        advice=t("torch.use_deterministic_algorithms(True, warn_only=True), or replace that operation."),
    ),
    # RuntimeError: The size of tensor a (600) must match the size of tensor b (512) at non-singleton dimension 1   |   The expanded size of the tensor (811) must match the existing size (514) at non-singleton dimension 1
    Pattern(
        id="too-long-text",
        regex=r"The size of tensor a \((?P<length>\d+)\) must match the size of tensor b \((?P<limit>512|514|1024|2048)\)|The expanded size of the tensor \((?P<length2>\d+)\) must match the existing size \((?P<limit2>512|514|1024|2048)\)|sequence length is longer than the specified maximum sequence length",
        meaning=t("A text is longer than the model's positions."),
        advice=t("truncation=True, max_length=512 (or the model's limit) in the tokenizer call."),
        cleared_by=r"[Ll]oss'?[ \t]*[:=|][ \t]*\d|'train_runtime'",
        confirms=("token-id-out-of-vocab",),
    ),
    # ValueError: Asking to pad but the tokenizer does not have a padding token.
    Pattern(
        id="no-pad-token",
        regex=r"Asking to pad but the tokenizer does not have a padding token|Cannot handle batch sizes > 1 if no padding token is defined",
        meaning=t("This tokenizer (GPT-like) has no padding token."),
        advice=t("tokenizer.pad_token = tokenizer.eos_token, and model.config.pad_token_id to match."),
    ),
    # torch.onnx.errors.UnsupportedOperatorError: Exporting the operator 'aten::fft_fft2' to ONNX opset version 14 is not supported.
    Pattern(
        id="onnx-operator",
        regex=r"Exporting the operator '(?P<operator>[\w:]+)' to ONNX opset version (?P<opset>\d+) is not supported",
        meaning=t("ONNX opset {opset} has no form of {operator}.", opset="?", operator="?"),
        advice=t(
            "Raise opset_version (17 or more), export with attn_implementation='eager', or use the dynamo exporter."
        ),
    ),
)
