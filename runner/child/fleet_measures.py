"""What a rank of a fleet check times: products, a file, the way to rank 0, and how far its clock is off. Runs on Python 3.6."""

import os
import socket
import time
from typing import Any, Dict

SIZE = 1024
REPEATS = 5
PRODUCTS = 4
"""On the CPU at a time: about the tenth of a second in which a limit on CPU time takes hold."""
WRITTEN = 8 << 20


def best(function: Any) -> float:
    """Return the seconds of the fastest of a few calls, the first left out: what others do there meanwhile only adds."""
    function()
    took = []
    for _ in range(REPEATS):
        begun = time.perf_counter()
        function()
        took.append(time.perf_counter() - begun)
    return min(took)


def write_to(folder: str) -> None:
    """Write and sync a file and remove it again."""
    path = os.path.join(folder, ".doctor-fleet-%s-%d" % (socket.gethostname(), os.getpid()))
    try:
        with open(path, "wb") as file:
            file.write(os.urandom(1 << 20) * (WRITTEN >> 20))
            file.flush()
            os.fsync(file.fileno())
    finally:
        if os.path.exists(path):
            os.remove(path)


def measures(torch: Any, folder: str) -> Dict[str, float]:
    """Return the seconds of products on the CPU and on this rank's card, where there is one, and of a file written in ``folder``."""
    found = {}
    a = torch.ones(SIZE, SIZE)
    found["matmul_cpu"] = best(lambda: [a @ a for _ in range(PRODUCTS)])
    try:
        found["disk_write"] = best(lambda: write_to(folder))
    except OSError:  # nothing can be written there: `doctor check` says so
        found.pop("disk_write", None)
    if torch.cuda.is_available():
        device = (
            int(os.environ.get("LOCAL_RANK", os.environ.get("OMPI_COMM_WORLD_LOCAL_RANK", "0")))
            % torch.cuda.device_count()
        )
        b = torch.ones(4 * SIZE, 4 * SIZE, device="cuda:%d" % device, dtype=torch.float16)

        def on_card() -> None:
            b @ b
            torch.cuda.synchronize(device)

        found["matmul_gpu"] = best(on_card)
    return {name: round(value, 6) for name, value in found.items()}


def links(dist: Any, torch: Any, rank: int, world: int) -> float:
    """Return the seconds a message of 4 MB takes from rank 0 to this rank and back; 0 for rank 0 itself."""
    message = torch.zeros(1 << 20)
    took = 0.0
    for other in range(1, world):
        dist.barrier()
        if rank == 0:
            for _ in range(REPEATS):
                dist.send(message, other)
                dist.recv(message, other)
        elif rank == other:
            rounds = []  # the first one finds the connection
            for _ in range(REPEATS):
                begun = time.perf_counter()
                dist.recv(message, 0)
                dist.send(message, 0)
                rounds.append(time.perf_counter() - begun)
            took = min(rounds)
    dist.barrier()
    return round(took, 6)


def clock_ahead(dist: Any, torch: Any, rank: int, world: int) -> float:
    """Return how many seconds this rank's clock is ahead of rank 0's, half a round trip taken off."""
    ahead = 0.0
    for other in range(1, world):
        if rank == 0:
            ping = torch.zeros(1, dtype=torch.float64)
            dist.recv(ping, other)
            dist.send(torch.tensor([time.time()], dtype=torch.float64), other)
        elif rank == other:
            begun = time.time()
            dist.send(torch.zeros(1, dtype=torch.float64), 0)
            answer = torch.zeros(1, dtype=torch.float64)
            dist.recv(answer, 0)
            ahead = (begun + time.time()) / 2 - float(answer[0])
    return round(ahead, 3)
