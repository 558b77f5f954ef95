"""What SLURM's variables say of a step: which rank, of how many, where they meet; as several releases and ways to start set them."""

from __future__ import annotations

import pytest

from doctor.slurm import hosts_of, slurm_task, tasks_per_node
from doctor.start_errors import LaunchError
from doctor.together import Together, together_in_step
from runner.rank_env import RankPlace, rank_place

STEP = {
    "SLURM_JOB_ID": "4711", "SLURM_STEP_ID": "0", "SLURM_STEP_NUM_TASKS": "5", "SLURM_PROCID": "3", "SLURM_LOCALID": "0",
    "SLURM_NODEID": "1", "SLURM_STEP_NODELIST": "gpu[01-02]", "SLURM_STEP_TASKS_PER_NODE": "3,2",
}  # fmt: skip
HETEROGENEOUS = {
    **STEP, "SLURM_HET_SIZE": "2", "SLURM_STEP_NUM_TASKS": "6", "SLURM_PROCID": "4", "SLURM_NODEID": "2",
    "SLURM_STEP_NODELIST": "big[7-8]", "SLURM_STEP_TASKS_PER_NODE": "2(x3)", "SLURM_JOB_NODELIST_HET_GROUP_0": "gpu09",
    "SLURM_JOB_NODELIST_HET_GROUP_1": "big[7-8]",
}  # fmt: skip


def without(*names: str) -> dict[str, str]:
    return {name: value for name, value in STEP.items() if name not in names}


TASKS: dict[str, tuple[dict[str, str], tuple[int, int, int, int, str]]] = {
    "uneven tasks a node": (STEP, (3, 5, 0, 2, "gpu01")),
    "a job's variables beside the step's, for more tasks": (
        {**STEP, "SLURM_NTASKS": "64", "SLURM_JOB_NODELIST": "gpu[01-08]", "SLURM_TASKS_PER_NODE": "8(x8)"}, (3, 5, 0, 2, "gpu01")),
    "no tasks a node: from --ntasks-per-node": (
        {**without("SLURM_STEP_TASKS_PER_NODE"), "SLURM_STEP_NUM_TASKS": "8", "SLURM_NTASKS_PER_NODE": "4", "SLURM_LOCALID": "3"},
        (3, 8, 3, 4, "gpu01")),
    "no tasks a node and no --ntasks-per-node: shared out over the nodes": (
        {**without("SLURM_STEP_TASKS_PER_NODE"), "SLURM_STEP_NUM_TASKS": "8", "SLURM_STEP_NUM_NODES": "2"}, (3, 8, 0, 4, "gpu01")),
    "names of older releases": (
        {"SLURM_JOBID": "4711", "SLURM_STEP_ID": "1", "SLURM_NPROCS": "4", "SLURM_PROCID": "1", "SLURM_LOCALID": "1",
         "SLURM_NODELIST": "n3,n1", "SLURM_TASKS_PER_NODE": "2(x2)"}, (1, 4, 1, 2, "n3")),
    "one node without brackets": (
        {**STEP, "SLURM_STEP_NODELIST": "login-1", "SLURM_STEP_TASKS_PER_NODE": "5", "SLURM_NODEID": "0", "SLURM_LOCALID": "3"},
        (3, 5, 3, 5, "login-1")),
    "two components of a heterogeneous job: numbers over both, nodes of the second": (HETEROGENEOUS, (4, 6, 0, 2, "gpu09")),
    "the same, as it was called before 20.02": (
        {name.replace("HET", "PACK"): value for name, value in HETEROGENEOUS.items()}, (4, 6, 0, 2, "gpu09")),
    "a step in one component of a heterogeneous job": (
        {**STEP, "SLURM_HET_SIZE": "2", "SLURM_JOB_NODELIST_HET_GROUP_0": "login1", "SLURM_JOB_NODELIST_HET_GROUP_1": "gpu[01-02]"},
        (3, 5, 0, 2, "gpu01")),
    "a meeting place that somebody chose": ({**HETEROGENEOUS, "MASTER_ADDR": "10.0.0.9"}, (4, 6, 0, 2, "10.0.0.9")),
}  # fmt: skip


@pytest.mark.parametrize(("environ", "wanted"), TASKS.values(), ids=TASKS.keys())
def test_a_task_of_srun_is_a_rank(environ: dict[str, str], wanted: tuple[int, int, int, int, str]) -> None:
    task = slurm_task(environ)
    assert task is not None
    assert (task.rank, task.size, task.local_rank, task.local_size, task.host) == wanted
    rank, size, local_rank, local_size, _ = wanted
    assert rank_place(task.variables) == RankPlace(
        rank=rank, size=size, local_rank=local_rank, local_size=local_size, shares_run=True
    )


def test_all_tasks_of_a_step_meet_at_one_port_and_another_steps_at_another() -> None:
    ports = [slurm_task({**STEP, "SLURM_PROCID": str(rank)}) for rank in range(5)]
    assert len({task.port for task in ports if task}) == 1 and all(ports)
    other = slurm_task({**STEP, "SLURM_STEP_ID": "1"})
    assert other is not None and ports[0] is not None and other.port != ports[0].port
    chosen = slurm_task({**STEP, "MASTER_PORT": "29501"})
    assert chosen is not None and chosen.port == 29501


def test_a_requeued_job_meets_elsewhere_than_before() -> None:
    """Its job and step have the numbers of before, and what was left there then is no word of today's first task."""
    first, again = slurm_task(STEP), slurm_task({**STEP, "SLURM_RESTART_COUNT": "2"})
    assert first is not None and again is not None
    assert (first.step, again.step) == ("4711.0", "4711.0-2")


BOUND = {"SLURM_GPUS_PER_TASK": "1", "CUDA_VISIBLE_DEVICES": "0"}
CARDS: dict[str, tuple[dict[str, str], int]] = {
    "all of the node's": ({"CUDA_VISIBLE_DEVICES": "0,1,2"}, 1),
    "one a task, and that one alone is seen": (BOUND, 0),
    "one a task by its resources": ({"SLURM_TRES_PER_TASK": "gres:gpu:1", "CUDA_VISIBLE_DEVICES": "0"}, 0),
    "one a task, not bound": ({**BOUND, "SLURM_GPU_BIND": "none", "CUDA_VISIBLE_DEVICES": "0,1"}, 1),
    "fewer than tasks, and nobody bound them": ({"CUDA_VISIBLE_DEVICES": "0"}, 1),
}  # fmt: skip


@pytest.mark.parametrize(("more", "card"), CARDS.values(), ids=CARDS.keys())
def test_the_card_of_a_task(more: dict[str, str], card: int) -> None:
    task = slurm_task({**STEP, "SLURM_PROCID": "4", "SLURM_LOCALID": "1", **more})
    assert task is not None and task.local_size == 2
    assert rank_place(task.variables).card == card


NONE: dict[str, dict[str, str]] = {
    "a batch script: no step": without("SLURM_STEP_ID"),
    "an sbatch script's own variables": {
        "SLURM_JOB_ID": "4711", "SLURM_NTASKS": "8", "SLURM_PROCID": "0", "SLURM_LOCALID": "0", "SLURM_NODEID": "0",
        "SLURM_JOB_NODELIST": "gpu[01-02]", "SLURM_TASKS_PER_NODE": "4(x2)"},
    "a shell of salloc: a step of one task in a job of eight": {
        **STEP, "SLURM_STEP_ID": "4294967290", "SLURM_STEP_NUM_TASKS": "1", "SLURM_NTASKS": "8", "SLURM_PROCID": "0"},
    "no rank": without("SLURM_PROCID"),
    "no job": without("SLURM_JOB_ID"),
    "nothing": {},
}  # fmt: skip


@pytest.mark.parametrize("environ", NONE.values(), ids=NONE.keys())
def test_what_is_no_task_of_several_is_none(environ: dict[str, str]) -> None:
    assert slurm_task(environ) is None


def test_a_first_node_that_nobody_can_know_is_asked_for() -> None:
    with pytest.raises(LaunchError) as refused:
        slurm_task({name: value for name, value in HETEROGENEOUS.items() if not name.endswith("GROUP_0")})
    assert "3 nodes and lists 2" in str(refused.value) and "MASTER_ADDR" in str(refused.value)


HOSTS: dict[str, list[str]] = {
    "gpu[01-03,7],login1": ["gpu01", "gpu02", "gpu03", "gpu7", "login1"],
    "gpu7": ["gpu7"],
    "n1,n2": ["n1", "n2"],
    "node-1": ["node-1"],
    "a-b-[003,005]": ["a-b-003", "a-b-005"],
    "node[9-11]": ["node9", "node10", "node11"],
    "node[08-10]": ["node08", "node09", "node10"],
    "rack[0-1]n[1-2]": ["rack0n1", "rack0n2", "rack1n1", "rack1n2"],
    "gpu[1-2]-ib": ["gpu1-ib", "gpu2-ib"],
    "a[1,3-4]b,c": ["a1b", "a3b", "a4b", "c"],
    "[1-2]": ["1", "2"],
}


@pytest.mark.parametrize(("nodes", "hosts"), HOSTS.items(), ids=HOSTS.keys())
def test_a_list_of_nodes_is_read_as_slurm_writes_it(nodes: str, hosts: list[str]) -> None:
    assert hosts_of(nodes) == hosts


def test_a_list_without_end_ends() -> None:
    assert len(hosts_of("n[0-99999999999]")) == 100_000


@pytest.mark.parametrize(
    ("text", "each"), [("2(x3),1", [2, 2, 2, 1]), ("4", [4]), ("8(x2)", [8, 8]), ("", [])]
)
def test_tasks_a_node(text: str, each: list[int]) -> None:
    assert tasks_per_node(text) == each


def test_a_task_a_node_with_processes_of_its_own_is_a_machine() -> None:
    step = slurm_task(
        {**STEP, "SLURM_STEP_NUM_TASKS": "2", "SLURM_PROCID": "1", "SLURM_STEP_TASKS_PER_NODE": "1(x2)"}
    )
    assert step is not None
    wanted = Together(nproc=8, nnodes=2, node_rank=1, master=f"gpu01:{step.port}")
    assert together_in_step("gpu", step, cards=8) == wanted
    several = slurm_task(STEP)
    assert several is not None
    with pytest.raises(LaunchError, match="--ntasks-per-node=1"):
        together_in_step("2", several, cards=0)
