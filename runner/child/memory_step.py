"""The training step whose memory is asked for: model, optimizer and batch from a configuration alone.

Shared by the trace with fake tensors and by real steps, so that both answer for the same thing. Works under
FakeTensorMode; nothing is downloaded, weights are whatever the memory holds or zeros.
"""

import contextlib
import importlib
from typing import Any, Callable, Dict, List

BLOCK_8BIT = 256
"""Values that share a scale in an 8-bit optimizer's state (bitsandbytes), which is left in fp32 below 4,096 values."""
SMALLEST_8BIT = 4096
LANGUAGE_TASKS = ("causal-lm", "masked-lm")


def make_config(transformers: Any, request: Dict[str, Any], attention: str) -> Any:
    """Return the configuration with the task's head, without keys that only name files or types."""
    settings = dict(request["config"])
    kind = settings.pop("model_type")
    for name in ("architectures", "torch_dtype", "dtype", "transformers_version", "auto_map"):
        settings.pop(name, None)
    task = request["task"]
    if task not in LANGUAGE_TASKS:
        problem = {"classification": "single_label_classification", "regression": "regression"}
        settings["num_labels"] = request["num_labels"]
        settings["problem_type"] = problem.get(task, "multi_label_classification")
    config = transformers.AutoConfig.for_model(kind, **settings)
    if attention == "sdpa" and request["device"] == "cuda":
        drop_no_attention(config)
    padding = getattr(config, "pad_token_id", None)
    if (
        padding is None or not 0 <= padding < config.vocab_size
    ):  # a default of the class for another vocabulary
        config.pad_token_id = 0
    config.use_cache = False
    return config


def drop_no_attention(config: Any) -> None:
    """With SDPA on CUDA the probabilities never exist; the CPU's kernel makes them as soon as they are dropped."""
    for name, value in list(vars(config).items()):
        if isinstance(value, (int, float)) and "drop" in name and ("attention" in name or "attn" in name):
            setattr(config, name, 0.0)


def make_model(torch: Any, transformers: Any, request: Dict[str, Any]) -> Any:
    """Return the model of a configuration with the task's head, in training mode. Initialisers are left out."""
    heads = {"causal-lm": "AutoModelForCausalLM", "masked-lm": "AutoModelForMaskedLM"}
    auto = getattr(transformers, heads.get(request["task"], "AutoModelForSequenceClassification"))
    usual = torch.get_default_dtype()
    with without_initialisers():
        torch.set_default_dtype(torch.bfloat16 if request["precision"] == "bf16-pure" else torch.float32)
        try:
            model = from_config(auto, transformers, request)
        finally:
            torch.set_default_dtype(usual)
    model.tie_weights()  # what is left out with the initialisers too
    model.train()
    if request["gradient_checkpointing"]:
        model.gradient_checkpointing_enable({"use_reentrant": False})
    return model


def from_config(auto: Any, transformers: Any, request: Dict[str, Any]) -> Any:
    """An architecture without SDPA says so when it is built: what it has is eager (DeBERTa-v2)."""
    if request["attention"] != "eager":
        with contextlib.suppress(ValueError, ImportError):
            return auto.from_config(make_config(transformers, request, "sdpa"), attn_implementation="sdpa")
    return auto.from_config(make_config(transformers, request, "eager"), attn_implementation="eager")


def without_initialisers() -> Any:
    """Some initialisers ask tensors for their values, which fake ones do not have (ModernBERT, ViT)."""
    for module in ("transformers.initialization", "transformers.modeling_utils"):
        with contextlib.suppress(ImportError, AttributeError):
            return importlib.import_module(module).no_init_weights()
    return contextlib.nullcontext()


class SizesOnly:
    """An optimizer of which only the sizes are real. This one's states lie in the host's memory: here it has none."""

    def __init__(self, parameters: List[Any]) -> None:
        self.parameters = parameters

    def step(self) -> None:
        """The update is made on the host."""

    def zero_grad(self) -> None:
        for parameter in self.parameters:
            parameter.grad = None


class EightBit(SizesOnly):
    """AdamW whose moments are bytes with a scale a block; the update needs no copies."""

    def __init__(self, torch: Any, parameters: List[Any]) -> None:
        super().__init__(parameters)
        self.torch = torch
        self.state: List[Any] = []

    def step(self) -> None:
        if self.state:
            return
        for parameter in self.parameters:
            if parameter.numel() < SMALLEST_8BIT:
                self.state += [self.torch.zeros_like(parameter, dtype=self.torch.float32) for _ in range(2)]
            else:
                self.state += [self.torch.zeros_like(parameter, dtype=self.torch.uint8) for _ in range(2)]
                blocks = -(-parameter.numel() // BLOCK_8BIT)
                self.state += [self.torch.zeros(blocks, dtype=self.torch.float32) for _ in range(2)]


def make_optimizer(torch: Any, model: Any, request: Dict[str, Any]) -> Any:
    parameters = [one for one in model.parameters() if one.requires_grad]
    if request["device"] == "cuda" and (request.get("offload") or request.get("offload_parameters")):
        return SizesOnly(parameters)
    optim = torch.optim
    makers: Dict[str, Callable[[], Any]] = {
        "adamw": lambda: optim.AdamW(parameters, fused=True),
        "adamw-foreach": lambda: optim.AdamW(parameters, foreach=True),
        "adamw-loop": lambda: optim.AdamW(parameters, foreach=False),
        "adamw-8bit": lambda: EightBit(torch, parameters),
        "adafactor": lambda: optim.Adafactor(parameters, foreach=False),
        "sgd": lambda: optim.SGD(parameters, lr=0.1, foreach=False),
        "sgd-momentum": lambda: optim.SGD(parameters, lr=0.1, momentum=0.9, foreach=False),
    }
    return makers[request["optimizer"]]()


def make_batch(torch: Any, request: Dict[str, Any], size: int) -> Dict[str, Any]:
    """Return ids, a mask with padding in it (the worst case: a full mask may be left out) and labels."""
    length = request["sequence_length"]
    ids = torch.ones(size, length, dtype=torch.long)
    mask = torch.ones(size, length, dtype=torch.long)
    mask[:, -1] = 0
    if request["task"] in LANGUAGE_TASKS:
        labels = ids.clone()
    elif request["task"] == "classification":
        labels = torch.zeros(size, dtype=torch.long)
    else:
        labels = torch.zeros(size, request["num_labels"])
    return {"input_ids": ids, "attention_mask": mask, "labels": labels}
