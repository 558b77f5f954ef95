"""Peak memory of a training run, by walking two of its steps with fake tensors: every storage is counted, none exists.

Started by path in the examined interpreter with one JSON argument; prints JSON lines. Nothing is downloaded and no GPU
is needed: the tensors are fake *CPU* tensors (a fake cuda device aborts on a CPU build of torch), and what CUDA does
otherwise is put in by hand. Two updates, since the optimizer's state exists only from the second forward on. A deep
model of like layers is walked with three and with four of them. With ``mode`` ``real`` the same steps run with real
tensors at a small batch, for models that cannot be walked.
"""

import contextlib
import gc
import importlib
import json
import os
import sys
import time
import traceback
from typing import TYPE_CHECKING, Any, Dict, List, Optional

if TYPE_CHECKING or __package__:
    from runner.child import memory_imports
    from runner.child import memory_layers as layers_alike
    from runner.child.by_path import load_by_path
    from runner.child.memory_attention import as_the_runner_attends
    from runner.child.memory_step import SizesOnly, make_batch, make_config, make_model, make_optimizer
    from runner.child.memory_tracker import (
        ALLOCATION_ROUNDING_BYTES,
        Tracker,
        as_on_cuda,
        tracking,
        watch_layers,
    )
    from runner.child.memory_trained import settle_trained
else:
    import memory_imports
    import memory_layers as layers_alike
    from by_path import load_by_path
    from memory_attention import as_the_runner_attends
    from memory_step import SizesOnly, make_batch, make_config, make_model, make_optimizer
    from memory_tracker import ALLOCATION_ROUNDING_BYTES, Tracker, as_on_cuda, tracking, watch_layers
    from memory_trained import settle_trained


def steps(torch: Any, tracker: Tracker, request: Dict[str, Any], model: Any, batch: Dict[str, Any]) -> Any:
    """Take two updates, telling the tracker which phase has begun; return the optimizer with its state.

    The first is there for the optimizer's state, which it makes from the gradients' sizes alone: they are put in
    their place, and no forward is walked for them.
    """
    optimizer = make_optimizer(torch, model, request)
    low = request["precision"] in ("bf16", "fp16")
    tracker.begin("optimizer")
    for parameter in model.parameters() if not isinstance(optimizer, SizesOnly) else ():
        if parameter.requires_grad:
            parameter.grad = torch.zeros_like(parameter)
    optimizer.step()
    optimizer.zero_grad()
    for _ in range(2 if request["accumulation"] > 1 else 1):
        tracker.begin("forward")
        with as_the_runner_attends(torch, request["device"]):
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
    """Return the peaks of one batch size, by phase, with the parts that stand still.

    Of a deep model of like layers, from two shallow ones; ``whole`` in the request walks every layer, and so do rules that
    name layers by their numbers.
    """
    if request["mode"] == "fake" and not request.get("whole") and not request.get("freeze"):
        transformers = importlib.import_module("transformers")
        kind = request["config"].get("model_type", "")
        count = getattr(make_config(transformers, request, "eager"), layers_alike.ALIKE.get(kind, ""), 0)
        shallow = layers_alike.shallow_configs(request["config"], count)
        rows = [walk(dict(request, config=config), size) for config in shallow]
        found = layers_alike.extended(rows[0], rows[1], count) if rows else None
        if found is not None:
            return found
    return walk(request, size)


def walk(request: Dict[str, Any], size: int) -> Dict[str, Any]:
    """Walk two steps of the model as it is."""
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
        settle_trained(torch, model, request)
        if request.get("offload_parameters") and on_cuda:
            put_on_host(torch, tracker, model, request["offload_code"])
        layers = watch_layers(tracker, model)
        optimizer = steps(torch, tracker, request, model, make_batch(torch, request, size))
        after_step = tracker.live_bytes
        del optimizer
        row = {"batch": size, "layers": layers, "after_step_bytes": after_step, **told(tracker, model)}
        return (
            dict(row, weights_bytes=0, gradients_bytes=0)
            if request.get("offload_parameters") and on_cuda
            else row
        )


def put_on_host(torch: Any, tracker: Tracker, model: Any, code: str) -> None:
    """Have the runner's own code (``runner/offload.py``) stream the parameters, and count them and their gradients no longer."""
    load_by_path(code).stream_parameters(model, torch.device("cpu"))
    for parameter in model.parameters():
        tracker.disown(parameter)
        if parameter.requires_grad:
            parameter.register_post_accumulate_grad_hook(lambda one: tracker.disown(one.grad))


def told(tracker: Tracker, model: Any) -> Dict[str, Any]:
    """Return what the tracker saw, and the model's own sizes."""
    weights = {one.untyped_storage()._cdata: one for one in model.parameters()}
    trained = [one for one in weights.values() if one.requires_grad]
    rows = tracker.rows()
    phases: Dict[str, int] = {}
    for phase, _, _, peak in rows:
        phases[phase] = max(phases.get(phase, 0), peak)
    return {
        "peak_bytes": max(phases.values()),
        "phases": phases,
        "after_forward_bytes": tracker.after_forward_bytes,
        "weights_bytes": sum(one.nbytes for one in weights.values()),
        "gradients_bytes": sum(one.nbytes for one in trained),
        "parameters": sum(one.numel() for one in weights.values()),
        "trainable": sum(one.numel() for one in trained),
        "layers_bytes": layer_growth(rows),
        "segments": rows,
        "attention": getattr(model.config, "_attn_implementation", "") or "",
    }


def layer_growth(rows: List[layers_alike.Row]) -> List[int]:
    """Return the bytes that each layer left behind in the first forward."""
    grown: List[int] = []
    for index, (phase, layer, entry, _) in enumerate(rows):
        if phase == "forward" and layer == len(grown):
            grown.append(rows[index + 1][2] - entry)
    return grown


def tell(**line: Any) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


def main(argument: str) -> int:
    """Trace every batch size asked for; a failure is one JSON line, with the error's own words."""
    request: Dict[str, Any] = json.loads(argument)
    begun = time.perf_counter()
    gc.disable()  # while modules are made: they stay, and looking for cycles among them is a tenth of the time
    try:
        quiet(importlib.import_module("transformers"))
        if request.get("lean"):
            memory_imports.leave_compiler_out()
            memory_imports.leave_other_processes_out()
        importlib.import_module("torch").set_num_threads(1 if request["mode"] == "fake" else 2)
        tell(imported_s=round(time.perf_counter() - begun, 2))
        gc.enable()
        for size in request["batch_sizes"]:
            begun = time.perf_counter()
            found = trace(request, size)
            found.pop("segments")
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
    os._exit(main(sys.argv[1]))  # all is told; taking hundreds of modules apart would be a tenth of the time
