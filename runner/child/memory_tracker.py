"""Bytes of all storages that are alive, followed through a training step: when they were most, and in which layer.

A step is cut into segments: one for each layer's forward and backward, one for what lies before, between and behind.
"""

import contextlib
import importlib
import weakref
from typing import Any, Callable, Dict, Iterator, List, Tuple

ALLOCATION_ROUNDING_BYTES = 512
"""CUDA's caching allocator hands out multiples of this (c10/cuda/CUDACachingAllocator, kMinBlockSize)."""
OUTSIDE = -1
"""In place of a layer's number: before the first, behind the last."""


class Segment:
    """A stretch of a step: what was alive when it began, and the most there was in it."""

    def __init__(self, phase: str, layer: int, entry_bytes: int) -> None:
        self.phase, self.layer = phase, layer
        self.entry_bytes = self.peak_bytes = entry_bytes


class Tracker:
    """Counts storages as operators return them and as they go."""

    def __init__(self, rounding: int) -> None:
        self.rounding = rounding
        self.live_bytes = 0
        self.after_forward_bytes = 0
        self.segments = [Segment("build", OUTSIDE, 0)]
        self._known: Dict[int, Any] = {}

    @property
    def phase(self) -> str:
        return self.segments[-1].phase

    def see(self, value: Any) -> None:
        """Count the storages in what an operator returned."""
        if isinstance(value, (list, tuple)):
            for item in value:
                self.see(item)
        elif hasattr(value, "untyped_storage"):
            storage = value.untyped_storage()
            key = storage._cdata
            if key not in self._known:
                size = self._rounded(storage)
                self._known[key] = weakref.ref(storage, self._forgetting(key, size))
                self.live_bytes += size
                segment = self.segments[-1]
                segment.peak_bytes = max(segment.peak_bytes, self.live_bytes)

    def disown(self, tensor: Any) -> None:
        """Count a tensor no longer, as long as it lives: it lies elsewhere."""
        storage = tensor.untyped_storage()
        key = storage._cdata
        if key in self._known:
            self.live_bytes -= self._rounded(storage)
            self._known[key] = weakref.ref(storage, self._forgetting(key, 0))

    def _rounded(self, storage: Any) -> int:
        return int(-(-storage.nbytes() // self.rounding) * self.rounding)

    def _forgetting(self, key: int, size: int) -> Callable[[Any], None]:
        def forget(_: Any) -> None:
            self._known.pop(key, None)
            self.live_bytes -= size

        return forget

    def begin(self, phase: str, layer: int = OUTSIDE) -> None:
        self.segments.append(Segment(phase, layer, self.live_bytes))

    def rows(self) -> List[Tuple[str, int, int, int]]:
        """Return phase, layer, entry and peak of each segment after the model was built."""
        return [
            (one.phase, one.layer, one.entry_bytes, one.peak_bytes)
            for one in self.segments
            if one.phase != "build"
        ]


def tracking(torch: Any, tracker: Tracker) -> Any:
    """Return the mode that shows every operator's result to ``tracker``."""
    base: Any = importlib.import_module("torch.utils._python_dispatch").TorchDispatchMode

    class Mode(base):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            result = func(*args, **(kwargs or {}))
            tracker.see(result)
            return result

    return Mode()


def watch_layers(tracker: Tracker, model: Any) -> int:
    """Have the longest list of layers begin a segment each, forward and backward; return how many they are.

    A layer's backward begins when the gradient of its output is there: a hook on that tensor, which keeps nothing alive.
    """
    lists = [one for one in model.modules() if type(one).__name__ == "ModuleList" and len(one) > 0]
    layers = max(lists, key=len) if lists else []
    last = len(layers) - 1

    def enter(index: int, arguments: Any) -> None:
        if tracker.phase == "forward":  # under checkpointing it is entered once more, in the backward
            tracker.begin("forward", index)
            if index == 0:
                on_gradient(arguments, OUTSIDE)

    def leave(index: int, output: Any) -> None:
        if tracker.phase == "forward":
            on_gradient(output, index)
            if index == last:
                tracker.begin("forward")

    def on_gradient(value: Any, layer: int) -> None:
        tensor = value[0] if isinstance(value, (list, tuple)) and value else value
        if getattr(tensor, "requires_grad", False):
            tensor.register_hook(lambda _: tracker.begin("backward", layer))

    for index, layer in enumerate(layers):
        layer.register_forward_pre_hook(lambda _, arguments, index=index: enter(index, arguments))
        layer.register_forward_hook(lambda _, __, output, index=index: leave(index, output))
    return len(layers)


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
