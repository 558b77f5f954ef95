"""Real training steps at the batch sizes asked for, one after another, and the most memory that each took.

Started by path in the examined interpreter with one JSON argument: a request as for the trace, ``limit_bytes`` (0: what
the device has) and ``oom_code`` (the path of our out-of-memory code). Then reads a batch size a line and answers each with
a JSON line. Random weights of the right shape: nothing is downloaded, nothing is read of a run, nothing is kept.

On a CPU each size has a process of its own, forked before torch has started a thread: what an earlier size left in the
heap would count for the next, and one that is killed takes nobody along.
"""

import contextlib
import gc
import importlib
import json
import os
import signal
import sys
import time
import traceback
from typing import TYPE_CHECKING, Any, Callable, Dict

if TYPE_CHECKING or __package__:
    from runner.child import memory_guard
    from runner.child.by_path import load_by_path
    from runner.child.memory_attention import as_the_runner_attends
    from runner.child.memory_step import make_batch, make_model, make_optimizer
    from runner.child.memory_trained import settle_trained
else:
    import memory_guard
    from by_path import load_by_path
    from memory_attention import as_the_runner_attends
    from memory_step import make_batch, make_model, make_optimizer
    from memory_trained import settle_trained

UPDATES = 2
"""The optimizer's state exists from the second on."""
WARM = {"model_type": "bert", "hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 64,
        "vocab_size": 100}  # fmt: skip
Row = Dict[str, Any]


class Bench:
    """A model and its optimizer on a device."""

    def __init__(self, torch: Any, transformers: Any, request: Row) -> None:
        self.torch, self.request, self.device = torch, request, request["device"]
        self.model = make_model(torch, transformers, request)
        settle_trained(torch, self.model, request)
        with torch.no_grad():
            for parameter in self.model.parameters():
                parameter.normal_(0.0, 0.02)  # pages that nobody wrote to would not count
        self.model.to(self.device)
        self.optimizer = make_optimizer(torch, self.model, request)

    def update(self, size: int) -> None:
        request, torch = self.request, self.torch
        batch = {name: one.to(self.device) for name, one in make_batch(torch, request, size).items()}
        low = {"bf16": torch.bfloat16, "fp16": torch.float16}.get(request["precision"])
        for _ in range(2 if request["accumulation"] > 1 else 1):
            with as_the_runner_attends(torch, self.device):
                with torch.autocast(self.device, dtype=low) if low else contextlib.nullcontext():
                    loss = self.model(**batch).loss
                loss.backward()
            del loss
        self.optimizer.step()
        self.optimizer.zero_grad()

    def forget(self) -> None:
        self.optimizer.zero_grad()
        gc.collect()


class OnCuda:
    """A GPU: torch's own count of its tensors, and what its allocator reserved. One model serves every size."""

    def __init__(self, torch: Any, transformers: Any, request: Row, is_out_of_memory: Callable[[BaseException], bool]) -> None:  # fmt: skip
        self.cuda, self.name, self._is_out_of_memory = (
            torch.cuda,
            torch.cuda.get_device_name(0),
            is_out_of_memory,
        )
        Bench(torch, transformers, warm(request)).update(1)
        free, total = self.cuda.mem_get_info(0)
        self.limit_bytes = min(request["limit_bytes"] or free, free)
        self.cuda.set_per_process_memory_fraction(self.limit_bytes / total, 0)  # others keep what they have
        self.bench = Bench(torch, transformers, request)

    def answer(self, size: int) -> None:
        self.cuda.empty_cache()
        self.cuda.reset_peak_memory_stats()
        tell(**measure(self.bench, self._peak, size, self._is_out_of_memory))

    def _peak(self) -> Row:
        self.cuda.synchronize()
        return {"peak_bytes": self.cuda.max_memory_allocated(), "process_bytes": self.cuda.max_memory_reserved()}  # fmt: skip


class OnCpu:
    """The CPU: the high-water mark of a process, and how much of it came after the model was begun."""

    def __init__(self, torch: Any, transformers: Any, request: Row, is_out_of_memory: Callable[[BaseException], bool]) -> None:  # fmt: skip
        self.name, self.limit_bytes = "CPU", request["limit_bytes"]
        self._torch, self._transformers, self._request = torch, transformers, request
        self._is_out_of_memory = is_out_of_memory

    def answer(self, size: int) -> None:
        """Measure in a fork; where that was ended for memory, say so in its place."""
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                code = told_of(lambda: tell(**self._measured(size)), self._is_out_of_memory)
            finally:
                os._exit(code)
        _, status = os.waitpid(pid, 0)
        if os.WIFSIGNALED(status) and os.WTERMSIG(status) != signal.SIGKILL:
            tell(error="signal %d" % os.WTERMSIG(status), short=False)
        elif os.WIFSIGNALED(status):
            tell(batch=size, fits=False, why="killed by the kernel (SIGKILL)")
        elif os.WEXITSTATUS(status) == memory_guard.EXIT_OVER_LIMIT:
            tell(batch=size, fits=False, why="it held more than the limit")

    def _measured(self, size: int) -> Row:
        self._torch.set_num_threads(len(os.sched_getaffinity(0)))
        Bench(self._torch, self._transformers, warm(self._request)).update(1)
        gc.collect()
        memory_guard.give_back()
        base = memory_guard.status_bytes("VmRSS")
        memory_guard.begin_anew()
        if self.limit_bytes:
            memory_guard.fence(max(1, self.limit_bytes - base))

        def peak() -> Row:
            most = memory_guard.status_bytes("VmHWM")
            return {"peak_bytes": most - base, "process_bytes": most}

        try:
            bench = Bench(self._torch, self._transformers, self._request)
        except (RuntimeError, MemoryError) as error:
            if not self._is_out_of_memory(error):
                raise
            return {"batch": size, "fits": False, "why": first_line(error)}
        return measure(bench, peak, size, self._is_out_of_memory)


def warm(request: Row) -> Row:
    """Return a small request, taken first so that what libraries load on first use does not count as the model's."""
    return dict(request, config=WARM, task="classification", sequence_length=16, lora_rank=0, freeze=[])


def measure(bench: Bench, peak: Callable[[], Row], size: int, is_out_of_memory: Callable[[BaseException], bool]) -> Row:  # fmt: skip
    """Return what ``size`` took, or that memory was short, in the words of whoever said so."""
    begun, trouble = time.perf_counter(), ""
    try:
        for _ in range(UPDATES):
            bench.update(size)
        found: Row = {"fits": True, **peak()}
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        trouble = first_line(error)
    # Past the except block the error, its frames and their tensors are gone, and their memory with them.
    if trouble:
        found = {"fits": False, "why": trouble}
    bench.forget()
    return {"batch": size, "seconds": round((time.perf_counter() - begun) / UPDATES, 4), **found}


def first_line(error: BaseException) -> str:
    return str(error).partition("\n")[0][:300] or type(error).__name__


def out_of_memory_code(path: str) -> Callable[[BaseException], bool]:
    """Load the runner's own code for telling an out-of-memory from other errors, alone."""
    found: Callable[[BaseException], bool] = load_by_path(path).is_out_of_memory
    return found


def tell(**line: Any) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


def told_of(act: Callable[[], None], is_out_of_memory: Callable[[BaseException], bool]) -> int:
    """Do ``act``; whatever a library raises in it is told. Return an exit status."""
    try:
        act()
    except Exception as error:
        words = "".join(traceback.format_exception_only(type(error), error)).strip()
        tell(error=words[:2000], short=is_out_of_memory(error))
        return 1
    return 0


def serve(request: Row, is_out_of_memory: Callable[[BaseException], bool]) -> None:
    """Load the libraries, say so, and answer until nobody asks any more."""
    transformers = importlib.import_module("transformers")
    transformers.utils.logging.set_verbosity_error()
    torch = importlib.import_module("torch")
    kind: Any = OnCuda if request["device"] == "cuda" else OnCpu
    device = kind(torch, transformers, request, is_out_of_memory)
    tell(ready=True, limit_bytes=device.limit_bytes, device=device.name, torch=torch.__version__)
    for line in sys.stdin:
        device.answer(int(line))


def main(argument: str) -> int:
    request: Row = json.loads(argument)
    is_out_of_memory = out_of_memory_code(request["oom_code"])
    return told_of(lambda: serve(request, is_out_of_memory), is_out_of_memory)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
