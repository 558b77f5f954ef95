"""The variables that count only when set before Python starts, for a command of the user's own. Pure.

Each is set only where the user has not set it; set or left, the reason is kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath

from doctor.machine_facts import usable_cores
from doctor.model import Facts, Torch
from doctor.visible_gpus import visible_gpus
from runner.decisions import Decision
from runner.text import Text, t

ALLOCATOR_NAMES = ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF")
# torchrun --nproc_per_node=8   |   --nproc-per-node 8   |   accelerate launch --num_processes 2   |   deepspeed --num_gpus 4
_PROCESSES = re.compile(r"^--?(?:nproc[-_]per[-_]node|num[-_]processes|num[-_]gpus)(?:=(?P<count>.+))?$")
_PYTHON = re.compile(r"^python[\d.]*$")

Chosen = tuple[str, str, Text]
"""A variable, its value, and why."""


def settle_environment(
    argv: Sequence[str], facts: Facts, environ: Mapping[str, str]
) -> tuple[dict[str, str], tuple[Decision, ...]]:
    """Return the variables to set and a decision for each, those that the user had set among them."""
    variables: dict[str, str] = {}
    decisions: list[Decision] = []
    for name, value, why in wished(argv, facts):
        names = ALLOCATOR_NAMES if name in ALLOCATOR_NAMES else (name,)
        set_by_user = next((one for one in names if one in environ), None)
        if set_by_user is not None:
            decisions.append(
                Decision(name=set_by_user, value=environ[set_by_user], why=t("set by you: left as it is"))
            )
            continue
        variables[name] = value
        decisions.append(Decision(name=name, value=value, why=why))
    return variables, tuple(decisions)


def wished(argv: Sequence[str], facts: Facts) -> Iterator[Chosen]:
    """Yield what would be set if the user had set nothing."""
    yield "PYTHONHASHSEED", "0", t("the order of sets of strings is then the same in every start")
    yield "PYTHONUNBUFFERED", "1", t("what the script prints is in the log at once, also when it is killed")
    yield from _threads(argv, facts)
    yield (
        "TOKENIZERS_PARALLELISM", "false",
        t("forked loader workers can hang on the tokenizer's threads; set it to true yourself where tokenising takes the time"),
    )  # fmt: skip
    torch = facts.torch.value if facts.torch.status == "ok" else None
    if torch is not None and torch.cuda:
        if not _has_vllm(facts):
            yield from _allocator(torch)
        yield (
            "CUBLAS_WORKSPACE_CONFIG", ":4096:8",
            t("torch.use_deterministic_algorithms(True) needs it; it costs 24 MiB of the card"),
        )  # fmt: skip


def _threads(argv: Sequence[str], facts: Facts) -> Iterator[Chosen]:
    cores, (processes, how) = usable_cores(facts), processes_of(argv, len(visible_gpus(facts)))
    threads = str(max(1, int(cores) // processes))
    if processes > 1:
        why = t("{cores} {cores:core|cores} usable here (affinity and cgroup quota), for {count} {count:process|processes} ({how})",
                cores=f"{cores:g}", count=processes, how=how)  # fmt: skip
    else:
        why = t("{cores} {cores:core|cores} usable here (affinity and cgroup quota)", cores=f"{cores:g}")
    yield "OMP_NUM_THREADS", threads, why
    yield "MKL_NUM_THREADS", threads, why


def processes_of(argv: Sequence[str], gpus: int) -> tuple[int, str]:
    """Return how many training processes a command starts on this machine, and what says so.

    A shell script may start one a GPU, and nobody can see that from outside: threads are then shared as if it did.
    """
    for index, word in enumerate(argv):
        match = _PROCESSES.match(word)
        if match is None:
            continue
        count = match["count"] or (argv[index + 1] if index + 1 < len(argv) else "")
        if count.isdecimal():
            return max(1, int(count)), word if match["count"] else f"{word} {count}"
        return max(1, gpus), f"{word} {count}"  # --nproc_per_node gpu, auto
    if is_python(argv) and not _starts_many(argv):
        return 1, ""
    return max(1, gpus), "one a GPU"


def _starts_many(argv: Sequence[str]) -> bool:
    # python -m torch.distributed.run train.py   |   python -m accelerate.commands.launch train.py
    modules = {argv[index + 1] for index, word in enumerate(argv[:-1]) if word == "-m"}
    return bool(modules & {"torch.distributed.run", "torch.distributed.launch", "accelerate.commands.launch"})


def is_python(argv: Sequence[str]) -> bool:
    return bool(_PYTHON.match(PurePath(argv[0]).name))


def _has_vllm(facts: Facts) -> bool:
    """Before 0.20.1 it refuses expandable segments around its memory pool; a script that serves with it would break."""
    packages = facts.packages.value if facts.packages.status == "ok" else None
    return packages is not None and packages.version("vllm") is not None


def _allocator(torch: Torch) -> Iterator[Chosen]:
    release = re.match(r"(\d+)\.(\d+)", torch.version)  # 2.6.0+cu124
    if release is None or (int(release[1]), int(release[2])) < (2, 1):
        return  # an unknown key is an error there
    yield (
        "PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True",
        t("less memory lost between pieces; torch {version} reads it under this name", version=torch.version),
    )  # fmt: skip
