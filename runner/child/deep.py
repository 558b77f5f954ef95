"""Tries torch for real, in the examined interpreter: imports, one product and one backward on each device, two processes.

Started by path with one JSON argument, alone in its own session; needs nothing of this house and runs on Python 3.6.
Every step is announced before it begins and answered after it, one JSON line each, so that a crash or a hang costs
only the step it happened in: whoever reads the lines knows which one that was.
"""

import faulthandler
import importlib
import importlib.util
import json
import os
import subprocess
import sys
import time
import traceback
import warnings
from typing import Any, Callable, Dict, List, Optional, Tuple

DETAIL_CHARACTERS = 2000
SIZE = 512
"""Rows and columns of the products: a few MB on the card, enough to use its real kernels."""
MOST_CARDS = 16
ROUND_TRIP_LIMIT_S = 30.0


class Deep:
    """The steps of one process. ``done`` names those that an earlier process took, with how they ended."""

    def __init__(self, request: Dict[str, Any], out: Any) -> None:
        self.out = out
        self.done = {(name, subject): status for name, subject, status in request.get("done", [])}
        self.torch: Any = None
        self.end = time.monotonic() + float(request["limit_s"])

    def tell(self, **line: Any) -> None:
        self.out.write((json.dumps(line) + "\n").encode("ascii"))

    def step(self, name: str, subject: str, function: Callable[[], Optional[str]]) -> bool:
        """Take one step unless it was taken before; return whether it went well."""
        if (name, subject) in self.done:
            return bool(self.done[name, subject] == "ok")
        if any(what == subject and status in self._spoil(subject) for (_, what), status in self.done.items()):
            return False
        self.tell(begin=[name, subject])
        begun = time.perf_counter()
        status, detail = "ok", ""  # type: Tuple[str, str]
        try:
            detail = function() or ""
        except (Exception, SystemExit) as error:  # whatever a library raises is the answer
            status = "failed"
            detail = "".join(traceback.format_exception_only(type(error), error)).strip()
        seconds = round(time.perf_counter() - begun, 4)
        self.done[name, subject] = status
        self.tell(end=[name, subject], status=status, seconds=seconds, detail=detail[:DETAIL_CHARACTERS])
        return status == "ok"

    def _spoil(self, subject: str) -> Tuple[str, ...]:
        """Return how an earlier step must have ended for this subject not to be tried any further."""
        return ("crashed", "failed") if subject.startswith("cuda:") else ("crashed",)

    def run(self) -> None:
        if self._is_there("torch") and self.step("import", "torch", self._import_torch):
            self.torch = importlib.import_module("torch")
            self._use("cpu")
            if self.step("see-gpus", "torch.cuda", self._see_gpus):
                for index in range(self._cards()):
                    self._use("cuda:%d" % index)
        for name in ("accelerate", "transformers"):
            if self._is_there(name):
                self.step("import", name, lambda name=name: import_whole(name))  # type: ignore[misc]
        if self.torch is not None:
            self._between_processes()

    def _is_there(self, name: str) -> bool:
        try:
            found = importlib.util.find_spec(name) is not None
        except (ImportError, ValueError):
            found = True  # something is there, and it is broken: importing it will say how
        if not found:
            self.tell(missing=name)
        return found

    def _import_torch(self) -> str:
        torch = importlib.import_module("torch")
        version = getattr(torch, "version", None)
        self.tell(
            facts={
                "torch_version": str(getattr(torch, "__version__", "")),
                "torch_cuda": str(getattr(version, "cuda", None) or ""),
            }
        )
        return str(getattr(torch, "__version__", ""))

    def _cards(self) -> int:
        if not self.torch.cuda.is_available():
            return 0
        return min(MOST_CARDS, int(self.torch.cuda.device_count()))

    def _see_gpus(self) -> str:
        torch = self.torch
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            available = bool(torch.cuda.is_available())
            count = int(torch.cuda.device_count()) if available else 0
        said = " ".join(" ".join(str(item.message).split()) for item in caught)
        self.tell(facts={"cuda_available": available, "device_count": count})
        if available or not (torch.version.cuda or getattr(torch.version, "hip", None)):
            return said
        if not said:
            torch.cuda.init()  # raises, with the reason
        raise RuntimeError(said or "torch.cuda.is_available() is False")

    # ------------------------------------------------------------------------------------------ one device
    def _use(self, device: str) -> None:
        torch = self.torch
        steps: List[Tuple[str, Callable[[], str]]] = [
            ("matmul", lambda: self._product(device, torch.float32, 0.01)),
            ("backward", lambda: self._backward(device)),
        ]
        if device != "cpu":
            steps.insert(0, ("start", lambda: self._start(device)))
            steps.append(("fp16", lambda: self._product(device, torch.float16, 0.05)))
            steps.append(("bf16", lambda: self._product(device, torch.bfloat16, 0.05)))
        for name, function in steps:
            before = len(self.done)
            if not self.step(name, device, function):
                if device != "cpu" and len(self.done) > before:
                    self._leave_a_broken_context(device)
                return

    def _leave_a_broken_context(self, device: str) -> None:
        """Some CUDA errors spoil every later call of the process: then another process must try the other cards.

        A copy needs no kernel: where only the kernel was missing, it works.
        """
        try:
            self.torch.ones(1).to(device).cpu()
        except Exception:
            self.tell(again=True)
            os._exit(0)

    def _start(self, device: str) -> str:
        torch, index = self.torch, int(device.rpartition(":")[2])
        torch.zeros(1, device=device).item()
        properties = torch.cuda.get_device_properties(index)
        card = {
            "index": index,
            "name": str(properties.name),
            "compute_capability": "%d.%d" % (properties.major, properties.minor),
            "memory_total_bytes": int(properties.total_memory),
        }  # type: Dict[str, Any]
        if hasattr(torch.cuda, "mem_get_info"):
            card["memory_free_bytes"] = int(torch.cuda.mem_get_info(index)[0])
        self.tell(device=card)
        return str(properties.name)

    def _random(self) -> Any:
        generator = self.torch.Generator()
        generator.manual_seed(0)
        return self.torch.rand(SIZE, SIZE, generator=generator)

    def _product(self, device: str, dtype: Any, tolerance: float) -> str:
        """Multiply on ``device`` and hold the result against the same product in float64 on the CPU."""
        left, right = self._random(), self._random().t()
        wanted = left.double() @ right.double()
        found = (left.to(device).to(dtype) @ right.to(device).to(dtype)).cpu().double()
        return self._compared(found, wanted, tolerance)

    def _compared(self, found: Any, wanted: Any, tolerance: float) -> str:
        worst = float((found - wanted).abs().max())
        if not worst <= tolerance * float(wanted.abs().max()):
            raise ArithmeticError("the result is wrong: it differs from the exact one by %r" % worst)
        return ""

    def _backward(self, device: str) -> str:
        torch = self.torch
        gradients = []
        for where, dtype in ((device, torch.float32), ("cpu", torch.float64)):
            weight = self._random().to(dtype).to(where).requires_grad_(True)
            ((self._random().to(dtype).to(where) @ weight) ** 2).mean().backward()
            gradients.append(weight.grad.cpu().double())
        return self._compared(gradients[0], gradients[1], 0.01)

    # ------------------------------------------------------------------------------------------ several processes
    def _between_processes(self) -> None:
        try:
            distributed = importlib.import_module("torch.distributed")
        except Exception:
            return self.tell(missing="torch.distributed")
        if not distributed.is_available():
            return self.tell(missing="torch.distributed")
        cards = self._cards() if self.done.get(("see-gpus", "torch.cuda"), "ok") == "ok" else 0
        nccl = cards >= 2 and distributed.is_nccl_available()
        backend, world = ("nccl", min(8, cards)) if nccl else ("gloo", 2)
        self.tell(facts={"backend": backend, "ranks": world})
        limit = max(3.0, min(ROUND_TRIP_LIMIT_S, self.end - time.monotonic() - 1.0))
        if ("round-trip", backend) not in self.done:
            self.tell(begin=["round-trip", backend])
            begun = time.perf_counter()
            status, detail = round_trip(backend, world, limit)
            took = round(time.perf_counter() - begun, 4)
            self.tell(end=["round-trip", backend], status=status, seconds=took, detail=detail)


def import_whole(name: str) -> str:
    """Import ``name`` and what people import of it: transformers loads its parts only when they are asked for."""
    module = importlib.import_module(name)
    for part in ("Trainer", "AutoModelForSequenceClassification", "Accelerator"):
        if part in dir(module):
            getattr(module, part)
    return str(getattr(module, "__version__", ""))


def round_trip(backend: str, world: int, limit_s: float) -> Tuple[str, str]:
    """Let round_trip.py start ``world`` processes that add up a tensor; return how that ended and what was said."""
    program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "round_trip.py")
    request = {"mode": "all", "backend": backend, "world": world, "limit_s": limit_s}
    argv = [sys.executable, "-B", program, json.dumps(request)]
    child = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    answer, _ = child.communicate()
    try:
        told = json.loads(answer.decode("utf-8", "replace").splitlines()[-1])
    except (IndexError, ValueError):
        return "failed", "round_trip.py ended with %d" % child.returncode
    return str(told["status"]), str(told["detail"])[:DETAIL_CHARACTERS]


def main() -> None:
    # The folder of this file is first on the path of a script; nothing in it may be taken for a library.
    sys.path[:] = [entry for entry in sys.path if entry != os.path.dirname(os.path.abspath(__file__))]
    request = json.loads(sys.argv[1])
    # What libraries print must not stand between our lines.
    out = os.fdopen(os.dup(1), "wb", 0)
    os.dup2(2, 1)
    faulthandler.enable()
    faulthandler.dump_traceback_later(max(0.5, float(request["limit_s"])))
    Deep(request, out).run()
    out.write(b'{"finished": true}\n')
    os._exit(0)  # a library that crashes while Python ends is no fault of the steps


if __name__ == "__main__":
    main()
