"""What a Python stack is busy with (waiting for data, evaluating, saving ...), told by well-known functions. Pure.

A stack is a sequence of ``(function, file, line)``, outermost first, files as py-spy shortens them
(``torch/utils/data/dataloader.py``, ``train.py``).
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence

Place = tuple[str, str, int]
"""Function, file, line."""

ORDER = ("saving", "evaluation", "data", "ranks", "logging", "optimizer", "backward", "forward")
"""A stack with functions of several phases belongs to the first: what evaluation waits for is evaluation's."""

# `eval` alone would match nn.Module.eval; a function of the user's own may be called anything: it is then not seen.
_EVALUATES = re.compile(
    r"_?(run_)?(evaluate|evaluation|validate|validation|eval)(_loop|_epoch|_model|_one_epoch|_dataset|_step)?"
)
_SAVES = {
    "torch/serialization.py": {"save", "_save", "_legacy_save"},
    "safetensors/torch.py": {"save_file", "save_model", "save"},
}
_SAVES_ANYWHERE = {"save_pretrained", "save_checkpoint", "_save_checkpoint", "save_model", "save_state"}
_COLLECTIVES = {
    "all_reduce", "all_gather", "all_gather_into_tensor", "all_gather_object", "reduce_scatter_tensor", "reduce_scatter",
    "broadcast", "broadcast_object_list", "barrier", "monitored_barrier", "all_to_all", "all_to_all_single", "gather",
    "scatter", "recv", "send", "reduce", "reduce_scatter_tensor_coalesced", "all_gather_coalesced", "batch_isend_irecv",
    "scatter_object_list", "gather_object", "wait_for_everyone", "wait_tensor", "foreach_all_gather", "foreach_reduce",
    "wait_for_unshard",
}  # fmt: skip
# forward (torch/nn/parallel/distributed.py:1661)   pre_backward (torch/distributed/fsdp/_fully_shard/_fsdp_param_group.py:576)
_DATA_PARALLEL = (
    "torch/nn/parallel/distributed.py", "torch/distributed/fsdp/", "torch/distributed/distributed_c10d.py", "torch/distributed/c10d_logger.py",
    "deepspeed/runtime/", "deepspeed/comm/",
)  # fmt: skip
_LOGS = {
    "logging/__init__.py": {"emit", "flush", "handle"},
    "tqdm/std.py": {"refresh", "display", "update", "fp_write", "print_status"},
    "torch/utils/tensorboard/writer.py": {"add_scalar", "add_histogram", "flush"},
}
_LIBRARIES = frozenset(
    [
        "torch",
        "torchvision",
        "torchaudio",
        "transformers",
        "datasets",
        "accelerate",
        "numpy",
        "PIL",
        "tokenizers",
        "pandas",
        "pyarrow",
        "safetensors",
        "lightning",
        "pytorch_lightning",
        "tqdm",
        "wandb",
        "tensorboard",
        "cv2",
        "scipy",
        "sklearn",
        "fsspec",
        "huggingface_hub",
        "runner",
        "evaluate",
        "peft",
        "deepspeed",
        "triton",
    ]
)


def phase_of_place(function: str, file: str) -> str:
    """Return the phase that a function shows by itself, "" where it shows none."""
    # from Python 3.11 on with its class: _BaseDataLoaderIter.__next__
    function = function.rpartition(".")[2]
    if function in _SAVES.get(file, ()) or function in _SAVES_ANYWHERE:
        return "saving"
    if not file.startswith("torch/") and _EVALUATES.fullmatch(function):
        return "evaluation"
    # __next__ (torch/utils/data/dataloader.py:733)    fetch (torch/utils/data/_utils/fetch.py:54)
    if file.startswith("torch/utils/data/") and function in (
        "__next__",
        "_next_data",
        "fetch",
        "_try_get_data",
    ):
        return "data"
    if function in _COLLECTIVES and file.startswith(("torch/distributed/", "accelerate/", "deepspeed/comm/")):
        return "ranks"
    if function in _LOGS.get(file, ()) or (file.startswith("wandb/") and function == "log"):
        return "logging"
    return _of_step(function, file)


def _of_step(function: str, file: str) -> str:
    if file.startswith("torch/optim/") and function in ("step", "clip_grad_norm_", "wrapper"):
        return "optimizer"
    # _engine_run_backward (torch/autograd/graph.py:869)
    if file.startswith("torch/autograd/") and function in ("backward", "_engine_run_backward"):
        return "backward"
    if file == "torch/nn/modules/module.py" and function in ("_call_impl", "_wrapped_call_impl"):
        return "forward"
    return ""


def phase_of(stack: Sequence[Place]) -> str:
    """Return what a stack is busy with, "" where none of its functions tells."""
    found = {phase_of_place(function, file) for function, file, _ in stack}
    return next((phase for phase in ORDER if phase in found), "")


def is_exchange(stack: Sequence[Place]) -> bool:
    """Return whether a stack, of any thread, stands in a collective: a hook of autograd's runs beside the main thread."""
    return any(phase_of_place(function, file) == "ranks" for function, file, _ in stack)


def is_data_parallel(stack: Sequence[Place]) -> bool:
    """Return whether a stack goes through training by several processes (not merely their launcher)."""
    return any(file.startswith(_DATA_PARALLEL) for _, file, _ in stack)


def is_library(file: str) -> bool:
    """Return whether a file is Python's or a known library's, and so not where a user would change something."""
    if file.startswith("<") or "site-packages/" in file or "/lib/python3" in file:
        return True
    first = file.partition("/")[0].removesuffix(".py")
    return first in _LIBRARIES or first in sys.stdlib_module_names


def own_place(stack: Sequence[Place]) -> Place | None:
    """Return the innermost place of a stack that is the user's own code; None: it is all libraries."""
    return next((place for place in reversed(stack) if not is_library(place[1])), None)


def waits_for_work(stack: Sequence[Place]) -> bool:
    """Return whether a loader's worker only waits to be given the next batch to load."""
    # get (multiprocessing/queues.py:113) called by _worker_loop (torch/utils/data/_utils/worker.py:275)
    files = [file for _, file, _ in stack]
    return "multiprocessing/queues.py" in files and not any("/fetch.py" in file for file in files)


_NETWORK = ("ssl.py", "socket.py", "http/client.py", "urllib/request.py")


def is_network(file: str) -> bool:
    """Return whether a function of this file, on top of a stack, waits for the other end of a connection."""
    return file.endswith(_NETWORK) or file.startswith(
        ("urllib3/", "httpcore/", "httpx/", "aiohttp/", "requests/", "botocore/")
    )
