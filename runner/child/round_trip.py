"""Whether processes find each other and add up a tensor: NCCL between cards, gloo between two processes on the CPU.

Started by path with one JSON argument. ``mode`` ``all`` starts the ranks, ends them in time, and prints one JSON line;
``mode`` ``rank`` is one of them. Runs on Python 3.6.
"""

import importlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from typing import Any, Dict, List, Optional, Tuple

LOG_TAIL_BYTES = 20000
WAIT_AFTER_FAILURE_S = 3.0


def round_trip(backend: str, world: int, limit_s: float) -> Tuple[str, str]:
    """Start ``world`` processes that add up a tensor together; return how that ended and what the first to fail said."""
    command = [sys.executable, "-B", "-X", "faulthandler", os.path.abspath(__file__)]
    folder = tempfile.mkdtemp(prefix="doctor-deep-")
    ranks = []  # type: List[Any]
    environ = dict(os.environ)
    environ.setdefault("NCCL_DEBUG", "WARN")
    try:
        for rank in range(world):
            request = {"mode": "rank", "rank": rank, "world": world, "backend": backend, "limit_s": limit_s}
            request["store"] = os.path.join(folder, "store")
            with open(os.path.join(folder, "rank-%d" % rank), "wb") as log:
                argv = [*command, json.dumps(request)]
                ranks.append(
                    subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environ)
                )
        end = time.monotonic() + limit_s
        while any(one.poll() is None for one in ranks) and time.monotonic() < end:
            if any(one.poll() for one in ranks):
                end = min(
                    end, time.monotonic() + WAIT_AFTER_FAILURE_S
                )  # one failed: the others would wait for it in vain
            time.sleep(0.05)
        return _outcome([one.poll() for one in ranks], folder)
    finally:
        for one in ranks:
            if one.poll() is None:
                one.kill()
                one.wait()
        shutil.rmtree(folder, ignore_errors=True)


def _outcome(codes: List[Optional[int]], folder: str) -> Tuple[str, str]:
    logs = [_tail(os.path.join(folder, "rank-%d" % rank)) for rank in range(len(codes))]
    for rank, code in enumerate(codes):
        if code:
            lines = [line for line in logs[rank].splitlines() if line.strip()]
            status = "crashed" if code < 0 else "failed"
            words = lines[-1].strip() if lines and code > 0 else "signal %d" % -code
            return status, "rank %d: %s%s" % (rank, words, _warned(logs))
    if all(code == 0 for code in codes):
        took = [line.split()[1] for log in logs for line in log.splitlines() if line.startswith("added ")]
        return "ok", "%s s" % max(took, key=float) if took else ""
    joined = sum("\njoined\n" in "\n" + log for log in logs)
    return "timed-out", "%d of %d processes had joined%s" % (joined, len(codes), _warned(logs))


def _warned(logs: List[str]) -> str:
    """Return NCCL's own reason: the first of its warnings, in brackets; empty when it gave none."""
    # host:4121:4130 [0] NCCL WARN Call to posix_fallocate failed : No space left on device
    for line in "\n".join(logs).splitlines():
        if "NCCL WARN " in line:
            return " (NCCL WARN %s)" % line.partition("NCCL WARN ")[2].strip()
    return ""


def _tail(path: str) -> str:
    with open(path, "rb") as file:
        file.seek(max(0, os.path.getsize(path) - LOG_TAIL_BYTES))
        return file.read().decode("utf-8", "replace")


def be_rank(request: Dict[str, Any]) -> None:
    """One of the processes of a round trip. The rendezvous is a file: no port, no name of this host."""
    from datetime import timedelta

    torch = importlib.import_module("torch")
    distributed = importlib.import_module("torch.distributed")
    rank, world, backend = request["rank"], request["world"], request["backend"]
    device = "cuda:%d" % rank if backend == "nccl" else "cpu"
    if backend == "nccl":
        torch.cuda.set_device(rank)
    distributed.init_process_group(
        backend,
        init_method="file://" + request["store"],
        rank=rank,
        world_size=world,
        timeout=timedelta(seconds=request["limit_s"]),
    )
    print("\njoined", flush=True)
    for _ in range(2):  # the second one is timed: the first also opens the connections
        begun = time.perf_counter()
        tensor = torch.full((1 << 20,), float(rank + 1), device=device)
        distributed.all_reduce(tensor)
        total = float(tensor[-1].item())
        seconds = time.perf_counter() - begun
    if total != world * (world + 1) / 2:
        raise ArithmeticError("the sum is wrong: %r" % total)
    distributed.barrier()
    distributed.destroy_process_group()
    print("\nadded %.4f" % seconds, flush=True)


def main() -> None:
    sys.path[:] = [entry for entry in sys.path if entry != os.path.dirname(os.path.abspath(__file__))]
    request = json.loads(sys.argv[1])
    if request["mode"] == "rank":
        be_rank(request)
        return
    try:
        status, detail = round_trip(request["backend"], request["world"], request["limit_s"])
    except OSError as error:  # no room for the logs, no more processes allowed
        status, detail = "failed", str(error)
    print(json.dumps({"status": status, "detail": detail}), flush=True)


if __name__ == "__main__":
    main()
