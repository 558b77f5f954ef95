"""Peak memory of a training run, by walking two of its steps with fake tensors: every storage is counted, none exists.

Started by path in the examined interpreter with one JSON argument; prints JSON lines. Nothing is downloaded and no GPU
is needed: the tensors are fake *CPU* tensors (a fake cuda device aborts on a CPU build of torch), and what CUDA does
otherwise is put in by hand. Two updates, since the optimizer's state exists only from the second forward on. With
``mode`` ``real`` the same steps run with real tensors at a small batch, for models that cannot be walked.
"""

import contextlib
import importlib
import json
import sys
import time
import traceback
import weakref
from typing import Any, Callable, Dict, Iterator, List, Optional

ALLOCATION_ROUNDING_BYTES = 512
"""CUDA's caching allocator hands out multiples of this (c10/cuda/CUDACachingAllocator, kMinBlockSize)."""
BLOCK_8BIT = 256
"""Values that share a scale in an 8-bit optimizer's state (bitsandbytes), which is left in fp32 below 4,096 values."""
SMALLEST_8BIT = 4096


class Tracker:
    """Bytes of all storages that are alive, and the most there were in each phase."""

    def __init__(self, rounding: int) -> None:
        self.rounding = rounding
        self.live_bytes = 0
        self.after_forward_bytes = 0
        self.phase = "build"
        self.peaks: Dict[str, int] = {}
        self._known: Dict[int, Any] = {}

    def see(self, value: Any) -> None:
        """Count the storages in what an operator returned."""
        if isinstance(value, (list, tuple)):
            for item in value:
                self.see(item)
        elif hasattr(value, "untyped_storage"):
            storage = value.untyped_storage()
            key = storage._cdata
            if key not in self._known:
                size = -(-storage.nbytes() // self.rounding) * self.rounding
                self._known[key] = weakref.ref(storage, self._forgetting(key, size))
                self.live_bytes += size
                if self.live_bytes > self.peaks.get(self.phase, 0):
                    self.peaks[self.phase] = self.live_bytes

    def _forgetting(self, key: int, size: int) -> Callable[[Any], None]:
        def forget(_: Any) -> None:
            self._known.pop(key, None)
            self.live_bytes -= size

        return forget

    def begin(self, phase: str) -> None:
        self.phase = phase
        self.peaks[phase] = max(self.peaks.get(phase, 0), self.live_bytes)


def tracking(torch: Any, tracker: Tracker) -> Any:
    """Return the mode that shows every operator's result to ``tracker``."""
    base: Any = importlib.import_module("torch.utils._python_dispatch").TorchDispatchMode

    class Mode(base):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            result = func(*args, **(kwargs or {}))
            tracker.see(result)
            return result

    return Mode()


@contextlib.contextmanager
def as_on_cuda(torch: Any, low: bool) -> Iterator[None]:
    """Put in what CUDA does otherwise than the CPU: a byte mask for dropout, and fp32 results under autocast.

    On CUDA dropout keeps one byte a value, on the CPU a factor of the input's type; CUDA's autocast takes softmax and
    layer norm in fp32, the CPU's does not.
    """
    functional = torch.nn.functional
    kept = {name: getattr(functional, name) for name in ("dropout", "layer_norm", "softmax")}

    def dropout(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:  # noqa: A002
        return torch.native_dropout(input, p, True)[0] if training and p > 0 else input

    def layer_norm(input: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: A002
        return kept["layer_norm"](
            input.float() if torch.is_autocast_enabled("cpu") else input, *args, **kwargs
        )

    def softmax(input: Any, dim: Any = None, _stacklevel: int = 3, dtype: Any = None) -> Any:  # noqa: A002
        low_now = torch.is_autocast_enabled("cpu") and dtype is None
        return kept["softmax"](input, dim=dim, dtype=torch.float32 if low_now else dtype)

    functional.dropout = dropout
    if low:
        functional.layer_norm, functional.softmax = layer_norm, softmax
    try:
        yield
    finally:
        for name, function in kept.items():
            setattr(functional, name, function)


def make_config(transformers: Any, request: Dict[str, Any], attention: str) -> Any:
    """Return the configuration with the task's head, without keys that only name files or types."""
    settings = dict(request["config"])
    kind = settings.pop("model_type")
    for name in ("architectures", "torch_dtype", "dtype", "transformers_version", "auto_map"):
        settings.pop(name, None)
    task = request["task"]
    if task not in ("causal-lm", "masked-lm"):
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


def add_lora(torch: Any, model: Any, rank: int) -> None:
    """Freeze all but the head, and add two thin matrices to each projection of queries and values (peft's default)."""
    names = (
        "query",
        "value",
        "q_proj",
        "v_proj",
        "q_lin",
        "v_lin",
        "query_proj",
        "value_proj",
        "c_attn",
        "Wqkv",
    )
    heads = ("classifier", "score", "pooler", "pre_classifier")
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(name.split(".")[0] in heads)
    for module in list(model.modules()):
        for name, layer in list(module.named_children()):
            if name in names and getattr(layer, "weight", None) is not None:
                wide = layer.weight.shape
                rows, out = (wide[0], wide[1]) if type(layer).__name__ == "Conv1D" else (wide[1], wide[0])
                setattr(module, name, lora_layer(torch, layer, rows, out, rank))
    if hasattr(model, "enable_input_require_grads"):
        model.enable_input_require_grads()  # what peft asks for too: checkpointing needs an input that has a gradient


def lora_layer(torch: Any, base: Any, rows: int, out: int, rank: int) -> Any:
    class Lora(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.base = base
            self.down = torch.nn.Linear(rows, rank, bias=False)
            self.up = torch.nn.Linear(rank, out, bias=False)

        def forward(self, x: Any) -> Any:
            return self.base(x) + self.up(self.down(x)) * 2.0

    return Lora()


class EightBit:
    """AdamW whose moments are bytes with a scale a block; the update needs no copies. Only its sizes are real."""

    def __init__(self, torch: Any, parameters: List[Any]) -> None:
        self.torch, self.parameters = torch, parameters
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

    def zero_grad(self) -> None:
        for parameter in self.parameters:
            parameter.grad = None


def make_optimizer(torch: Any, model: Any, kind: str) -> Any:
    parameters = [one for one in model.parameters() if one.requires_grad]
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
    return makers[kind]()


def make_batch(torch: Any, request: Dict[str, Any], size: int) -> Dict[str, Any]:
    """Return ids, a mask with padding in it (the worst case: a full mask may be left out) and labels."""
    length = request["sequence_length"]
    ids = torch.ones(size, length, dtype=torch.long)
    mask = torch.ones(size, length, dtype=torch.long)
    mask[:, -1] = 0
    if request["task"] in ("causal-lm", "masked-lm"):
        labels = ids.clone()
    elif request["task"] == "classification":
        labels = torch.zeros(size, dtype=torch.long)
    else:
        labels = torch.zeros(size, request["num_labels"])
    return {"input_ids": ids, "attention_mask": mask, "labels": labels}


def steps(torch: Any, tracker: Tracker, request: Dict[str, Any], model: Any, batch: Dict[str, Any]) -> Any:
    """Take two updates, telling the tracker which phase has begun; return the optimizer with its state.

    The first is there for the optimizer's state, which it makes from the gradients' sizes alone: they are put in
    their place, and no forward is walked for them.
    """
    optimizer = make_optimizer(torch, model, request["optimizer"])
    low = request["precision"] in ("bf16", "fp16")
    tracker.begin("optimizer")
    for parameter in model.parameters():
        if parameter.requires_grad:
            parameter.grad = torch.zeros_like(parameter)
    optimizer.step()
    optimizer.zero_grad()
    for _ in range(2 if request["accumulation"] > 1 else 1):
        tracker.begin("forward")
        with torch.autocast("cpu", dtype=torch.bfloat16) if low else contextlib.nullcontext():
            loss = model(**batch).loss
        tracker.after_forward_bytes = tracker.live_bytes
        tracker.begin("backward")
        loss.backward()
        del loss
    tracker.begin("optimizer")
    optimizer.step()
    optimizer.zero_grad()
    return optimizer


def layer_growth(tracker: Tracker, model: Any) -> Callable[[], List[int]]:
    """Watch the longest list of equal layers; return what gives the bytes that each left behind in its forward."""
    lists = [one for one in model.modules() if type(one).__name__ == "ModuleList" and len(one) > 0]
    layers = max(lists, key=len) if lists else []
    before: Dict[int, int] = {}
    grown: Dict[int, int] = {}

    def enter(index: int) -> None:
        before.setdefault(index, tracker.live_bytes)

    def leave(index: int) -> None:
        grown.setdefault(index, tracker.live_bytes - before[index])

    for index, layer in enumerate(layers):
        layer.register_forward_pre_hook(lambda *_, index=index: enter(index))
        layer.register_forward_hook(lambda *_, index=index: leave(index))
    return lambda: [grown[index] for index in sorted(grown)]


def refuse_what_does_not_fit(model: Any) -> None:
    """A real step needs weights, gradients and moments here; half of what is available is ours to take.

    Raises:
        MemoryError: it would need more.
    """
    with open("/proc/meminfo") as file:
        available = next(int(line.split()[1]) for line in file if line.startswith("MemAvailable")) << 10
    needed = 5 * sum(one.nbytes for one in model.parameters())
    if needed > available // 2:
        raise MemoryError("a real step of this model takes about %d MB here" % (needed >> 20))


def trace(request: Dict[str, Any], size: int) -> Dict[str, Any]:
    """Return the peaks of one batch size, by phase, with the parts that stand still."""
    torch = importlib.import_module("torch")
    transformers = importlib.import_module("transformers")
    on_cuda, real = request["device"] == "cuda", request["mode"] == "real"
    tracker = Tracker(ALLOCATION_ROUNDING_BYTES if on_cuda else 1)
    low = request["precision"] in ("bf16", "fp16")
    fake = contextlib.nullcontext() if real else importlib.import_module("torch._subclasses").FakeTensorMode()
    kernels = as_on_cuda(torch, low) if on_cuda else contextlib.nullcontext()
    with fake, tracking(torch, tracker), kernels:
        model = make_model(torch, transformers, request)
        if real:
            refuse_what_does_not_fit(model)
        if request["lora_rank"]:
            add_lora(torch, model, request["lora_rank"])
        grown = layer_growth(tracker, model)
        optimizer = steps(torch, tracker, request, model, make_batch(torch, request, size))
        after_step = tracker.live_bytes
        del optimizer
        weights = {one.untyped_storage()._cdata: one for one in model.parameters()}
        return {
            "batch": size,
            "peak_bytes": max(peak for phase, peak in tracker.peaks.items() if phase != "build"),
            "phases": {phase: peak for phase, peak in tracker.peaks.items() if phase != "build"},
            "after_forward_bytes": tracker.after_forward_bytes,
            "after_step_bytes": after_step,
            "weights_bytes": sum(one.nbytes for one in weights.values()),
            "gradients_bytes": sum(one.nbytes for one in weights.values() if one.requires_grad),
            "parameters": sum(one.numel() for one in weights.values()),
            "trainable": sum(one.numel() for one in weights.values() if one.requires_grad),
            "layers_bytes": grown(),
            "attention": getattr(model.config, "_attn_implementation", "") or "",
        }


def tell(**line: Any) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


def main(argument: str) -> int:
    """Trace every batch size asked for; a failure is one JSON line, with the error's own words."""
    request: Dict[str, Any] = json.loads(argument)
    begun = time.perf_counter()
    try:
        quiet(importlib.import_module("transformers"))
        importlib.import_module("torch").set_num_threads(1 if request["mode"] == "fake" else 2)
        tell(imported_s=round(time.perf_counter() - begun, 2))
        for size in request["batch_sizes"]:
            begun = time.perf_counter()
            found = trace(request, size)
            tell(took_s=round(time.perf_counter() - begun, 2), **found)
    except Exception as error:  # whatever a library raises is the answer
        words = "".join(traceback.format_exception_only(type(error), error)).strip()
        tell(error=words[:2000], where=last_frame(error))
        return 1
    return 0


def quiet(transformers: Any) -> None:
    transformers.utils.logging.set_verbosity_error()


def last_frame(error: BaseException) -> Optional[str]:
    frames = traceback.extract_tb(error.__traceback__)
    return "%s:%s" % (frames[-1].filename, frames[-1].lineno) if frames else None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
