"""One rank of a fleet check, in the examined interpreter: joins the others, times its work, hands its snapshot to rank 0.

Started by path under torchrun or mpirun, or with their variables, with one JSON argument. Rank 0 writes one JSON line a member. Gloo, so that
no card and no NCCL is needed to find out what is wrong with them. Runs on Python 3.6.
"""

import datetime
import importlib
import json
import os
import sys
import time
import traceback
from typing import Any, Dict, List, Tuple

SIZE = 1024
REPEATS = 5


def place(environ: Any) -> Tuple[int, int, Dict[str, str]]:
    """Return rank, world size, and the rendezvous variables that are missing, as torchrun or mpirun says them."""
    rank = environ.get("RANK", environ.get("OMPI_COMM_WORLD_RANK"))
    world = environ.get("WORLD_SIZE", environ.get("OMPI_COMM_WORLD_SIZE"))
    if rank is None or world is None:
        raise RuntimeError(
            "neither RANK and WORLD_SIZE nor OMPI_COMM_WORLD_RANK and OMPI_COMM_WORLD_SIZE are set"
        )
    usual = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29400"}
    return int(rank), int(world), {name: value for name, value in usual.items() if name not in environ}


def best(function: Any) -> float:
    """Return the seconds of the median of a few calls, the first left out."""
    function()
    took = []
    for _ in range(REPEATS):
        begun = time.perf_counter()
        function()
        took.append(time.perf_counter() - begun)
    return sorted(took)[len(took) // 2]


def measures(torch: Any) -> Dict[str, float]:
    """Return the seconds of one product: on this rank's card where there is one, on the CPU."""
    found = {}
    a = torch.ones(SIZE, SIZE)
    found["matmul_cpu"] = best(lambda: a @ a)
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
            rounds = []
            for _ in range(REPEATS):
                begun = time.perf_counter()
                dist.recv(message, 0)
                dist.send(message, 0)
                rounds.append(time.perf_counter() - begun)
            took = sorted(rounds)[len(rounds) // 2]
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


def gather(request: Dict[str, Any]) -> List[Dict[str, Any]]:
    """Join, measure, and return every member on rank 0 (an empty list on the others)."""
    rank, world, missing = place(os.environ)
    os.environ.update(missing)
    torch = importlib.import_module("torch")
    dist = importlib.import_module("torch.distributed")
    limit = datetime.timedelta(seconds=float(request["limit_s"]))
    dist.init_process_group("gloo", rank=rank, world_size=world, timeout=limit)
    with open(request["snapshot"], encoding="utf-8") as file:
        snapshot = file.read()
    torch.set_num_threads(1)
    own = measures(torch)
    value = torch.ones(1 << 18)
    dist.barrier()
    own["all_reduce"] = round(best(lambda: dist.all_reduce(value)), 6)
    own_link = links(dist, torch, rank, world)
    if rank:
        own["link_to_rank_0"] = own_link
    clock = clock_ahead(dist, torch, rank, world)
    member = {"name": "rank %d" % rank, "snapshot": snapshot, "measures": own, "clock_s": clock}
    everyone = [None] * world if rank == 0 else None  # type: Any
    dist.gather_object(member, everyone, dst=0)
    dist.barrier()
    dist.destroy_process_group()
    return everyone or []


def main(argument: str) -> int:
    """Write one JSON line a member on rank 0; a failure is one line on stdout with the library's own words."""
    request = json.loads(argument)
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    try:
        members = gather(request)
    except Exception as error:  # whatever the library raises is the answer
        words = "".join(traceback.format_exception_only(type(error), error)).strip()
        out.write((json.dumps({"error": words[:2000]}) + "\n").encode("ascii"))
        return 1
    with open(request["out"], "w", encoding="ascii") as file:
        file.writelines(json.dumps(one) + "\n" for one in members)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
