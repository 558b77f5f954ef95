"""One rank of a fleet check, in the examined interpreter: joins the others, times its work, hands its snapshot to rank 0.

Started by path under torchrun or mpirun, or with their variables, with one JSON argument. Rank 0 writes one JSON line a member. Gloo, so that
no card and no NCCL is needed to find out what is wrong with them. Runs on Python 3.6.
"""

import datetime
import importlib
import json
import os
import socket
import sys
import time
import traceback
from typing import TYPE_CHECKING, Any, Dict, List, Tuple

if TYPE_CHECKING or __package__:
    from runner.child.fleet_measures import best, clock_ahead, links, measures
else:  # started by path: its folder comes first
    from fleet_measures import best, clock_ahead, links, measures


class NotAll(Exception):  # noqa: N818 - it is what it says
    """Some ranks did not come."""

    def __init__(self, missing: List[int]) -> None:
        self.missing = missing
        Exception.__init__(self, "did not come: rank %s" % ", ".join(map(str, missing)))


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


def meeting(dist: Any, rank: int, world: int, limit: Any) -> Any:
    """Return the store over which the ranks meet, once all are there; None: this torch has none that can be asked.

    Raises:
        NotAll: some did not come in time.
    """
    # Under torchrun its agent keeps the store.
    owns = rank == 0 and os.environ.get("TORCHELASTIC_USE_AGENT_STORE") != "True"
    host, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    try:
        raw = dist.TCPStore(host, port, world, owns, limit, False)
    except TypeError:
        return None
    except Exception:
        if rank == 0:
            raise
        raise NotAll([0]) from None
    store = dist.PrefixStore("doctor-fleet", raw)
    store.set("rank-%d" % rank, "here")
    if rank == 0:
        missing = missing_ranks(store, world, limit)
        store.set("missing", json.dumps(missing))
        if missing:
            time.sleep(1)  # the others read it here
    else:
        raw.set_timeout(limit + datetime.timedelta(seconds=10))
        missing = json.loads(store.get("missing").decode("ascii"))
    if missing:
        raise NotAll(missing)
    return store


def missing_ranks(store: Any, world: int, limit: Any) -> List[int]:
    """Return the ranks that do not come in time."""
    end = time.time() + limit.total_seconds()
    missing = []
    for rank in range(world):
        try:
            store.wait(["rank-%d" % rank], datetime.timedelta(seconds=max(0.01, end - time.time())))
        except Exception:  # of another kind in each torch
            missing.append(rank)
    return missing


def gather(request: Dict[str, Any]) -> List[Dict[str, Any]]:
    """Join, measure, and return every member on rank 0 (an empty list on the others)."""
    rank, world, missing = place(os.environ)
    os.environ.update(missing)
    torch = importlib.import_module("torch")
    dist = importlib.import_module("torch.distributed")
    limit = datetime.timedelta(seconds=float(request["limit_s"]))
    store = meeting(dist, rank, world, limit)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=world, timeout=limit)
    with open(request["snapshot"], encoding="utf-8") as file:
        snapshot = file.read()
    torch.set_num_threads(1)
    own = measures(torch, request["folder"])
    value = torch.ones(1 << 18)
    dist.barrier()
    own["all_reduce"] = round(best(lambda: dist.all_reduce(value)), 6)
    own_link = links(dist, torch, rank, world)
    if rank:
        own["link_to_rank_0"] = own_link
    clock = clock_ahead(dist, torch, rank, world)
    member = {
        "name": "rank %d" % rank,
        "host": socket.gethostname(),
        "snapshot": snapshot,
        "measures": own,
        "clock_s": clock,
    }
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
    except NotAll as error:
        out.write((json.dumps({"missing": error.missing}) + "\n").encode("ascii"))
        return 1
    except Exception as error:  # whatever the library raises is the answer
        words = "".join(traceback.format_exception_only(type(error), error)).strip()
        out.write((json.dumps({"error": words[:2000]}) + "\n").encode("ascii"))
        return 1
    with open(request["out"], "w", encoding="ascii") as file:
        file.writelines(json.dumps(one) + "\n" for one in members)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
