"""Patterns of starting ranks: variables that the launcher sets, backends that do not fit, a rank that is late or gone."""

from __future__ import annotations

from doctor.explain.match import Pattern
from doctor.model import t

PATTERNS: tuple[Pattern, ...] = (
    # ValueError: Error initializing torch.distributed using env:// rendezvous: environment variable RANK expected, but not set   |   KeyError: 'LOCAL_RANK'
    Pattern(
        id="rank-variables-missing",
        regex=r"environment variable (?P<name>RANK|WORLD_SIZE|MASTER_ADDR|MASTER_PORT) expected, but not set|KeyError: '(?P<name2>LOCAL_RANK|RANK|WORLD_SIZE|MASTER_ADDR)'",
        meaning=t("The script is written for a launcher, which sets {name}{name2} for each process, and was started with plain python.", name="", name2=""),
        advice=t("`torchrun --nproc_per_node 1 SCRIPT` (the number of cards for 1), or `accelerate launch SCRIPT`."),
    ),
    # train.py: error: unrecognized arguments: --local-rank=0   |   error: unrecognized arguments: --local_rank=1
    Pattern(
        id="local-rank-argument",
        regex=r"unrecognized arguments: [^\n]*--local[-_]rank",
        meaning=t("torch.distributed.launch passes --local-rank (with a hyphen since torch 2.0), and the script does not take it in this form."),
        advice=t("Start with torchrun, and read int(os.environ['LOCAL_RANK']) in the script; or add_argument('--local-rank', '--local_rank', type=int, default=0)."),
        hides=("child-failed",),
    ),
    # ModuleNotFoundError: No module named 'mpi4py'
    Pattern(
        id="deepspeed-without-launcher",
        regex=r"No module named 'mpi4py'",
        meaning=t("mpi4py is not installed. DeepSpeed asks for it when it finds no launcher's variables, and then it is the launcher that is missing."),
        advice=t("`deepspeed SCRIPT ...`, `torchrun` or `accelerate launch` in place of python; on one card `RANK=0 WORLD_SIZE=1 LOCAL_RANK=0 MASTER_ADDR=127.0.0.1 MASTER_PORT=29500` before python does as well. Only code of your own that imports it needs `python -m pip install mpi4py`."),
        hides=("module-not-found",),
    ),
    # ValueError: ProcessGroupNCCL is only supported with GPUs, no GPUs found!
    Pattern(
        id="nccl-without-gpu",
        regex=r"ProcessGroupNCCL is only supported with GPUs, no GPUs found",
        meaning=t("NCCL was asked for and torch sees no card."),
        advice=t("`doctor check` says why there is none; a run without cards takes backend='gloo'."),
        confirms=("no-gpu-visible", "torch-cpu-only-build", "driver-too-old-for-torch-cuda", "cuda-visible-devices-invalid"),
    ),
    # RuntimeError: Distributed package doesn't have NCCL built in
    Pattern(
        id="torch-without-nccl",
        regex=r"Distributed package doesn't have NCCL built in",
        meaning=t("This torch has no NCCL: the builds for Windows and macOS and those without CUDA never have it."),
        advice=t("backend='gloo' there (USE_LIBUV=0 under Windows); on Linux install torch's CUDA build. One card needs no process group at all."),
        confirms=("torch-cpu-only-build",),
    ),
    # RuntimeError: No backend type associated with device type cpu   |   RuntimeError: Tensors must be CUDA and dense
    Pattern(
        id="collective-on-cpu",
        regex=r"No backend type associated with device type (?P<device>\w+)|Tensors must be CUDA and dense",
        meaning=t("A tensor on the CPU went into a collective of NCCL, which knows only the cards."),
        advice=t("Move it to the card first, or init_process_group('cpu:gloo,cuda:nccl'). Optimizer offload and CPU checkpoints need that second form."),
    ),
    # torch.distributed.DistBackendError: [1] is setting up NCCL communicator and retrieving ncclUniqueId from [0] via c10d key-value store by key '0', but store->get('0') got error: Connection reset by peer
    Pattern(
        id="first-rank-gone",
        regex=r"is setting up NCCL communicator and retrieving ncclUniqueId from \[(?P<rank>\d+)\]",
        meaning=t("This rank waited for rank {rank}, which ended or hung before NCCL was set up: its own error is the cause.", rank="0"),
        advice=t("Read rank {rank}'s output (torchrun --log-dir keeps one file a rank). If it only took long (a download, preparing data): ddp_timeout, or prepare on one rank before the start.", rank="0"),
        hides=("nccl-error", "rendezvous", "child-failed"),
    ),
    # RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by peer [127.0.1.1]:28361
    Pattern(
        id="gloo-peer-gone",
        regex=r"gloo/transport/tcp/\w+\.cc:\d+\] (?P<what>Connection closed by peer|Read error|Connection reset|Timed out|writev)[^\n]*",
        meaning=t("Another rank closed the connection ({what}): it ended first, and its own error is the cause.", what="?"),
        advice=t("Look for the first traceback among all ranks' outputs; this one only follows."),
        hides=("child-failed",),
        general=True,
    ),
    # RuntimeError: Timed out initializing process group in store based barrier on rank: 0, for key: store_based_barrier_key:1 (world_size=2, worker_count=1, timeout=0:30:00)
    Pattern(
        id="ranks-missing",
        regex=r"Timed out initializing process group in store based barrier[^\n]*?world_size=(?P<wanted>\d+), (?:worker_count|num_workers_joined)=(?P<came>\d+)|Timed out after \d+ seconds waiting for clients\. (?P<came2>\d+)/(?P<wanted2>\d+) clients joined",
        meaning=t("Only {came}{came2} of {wanted}{wanted2} processes came: the others were not started, died at once, or look for another address.", came="", came2="", wanted="", wanted2=""),
        advice=t("Start all of them (each node its own torchrun with its --node-rank and the same --master-addr); the missing ones' outputs say why."),
        confirms=("rendezvous-variables-left-over",),
        hides=("rendezvous", "child-failed"),
    ),
    # RuntimeError: Detected mismatch between collectives on ranks. Rank 0 is running collective: ALLREDUCE
    Pattern(
        id="collectives-differ",
        regex=r"Detected mismatch between collectives on ranks",
        meaning=t("The ranks did not do the same thing in the same order: one saves, evaluates or skips a batch that the others do not."),
        advice=t("Nothing that talks to the other ranks inside `if rank == 0:` (state_dict of a sharded model, evaluate, barrier); equal numbers of batches on all ranks (drop_last, join)."),
    ),
    # RuntimeError: CUDA error: peer access is not supported between these two devices   |   NCCL WARN Cuda failure 'peer access is not supported between these two devices'
    Pattern(
        id="no-peer-access",
        regex=r"peer access is not supported between these two devices",
        meaning=t("The two cards cannot read each other's memory (GeForce, cards on different sockets, virtual machines)."),
        advice=t("`export NCCL_P2P_DISABLE=1` before the start; data then goes over host memory, which needs room in /dev/shm."),
        confirms=("nccl-p2p-hang-risk", "shm-too-small"),
        hides=("nccl-error", "cuda-error-late"),
    ),
    # RuntimeError: CUDA error: peer mapping resources exhausted
    Pattern(
        id="peer-mappings",
        regex=r"peer mapping resources exhausted",
        meaning=t("One process reaches more cards than CUDA joins to one (8 peers)."),
        advice=t("One process a card with `torchrun --nproc_per_node N` in place of DataParallel or device_map over all; or CUDA_VISIBLE_DEVICES with at most 8."),
        hides=("cuda-error-late",),
    ),
    # RuntimeError: use_libuv was requested but PyTorch was build without libuv support
    Pattern(
        id="no-libuv",
        regex=r"use_libuv was requested but PyTorch was buil[dt] without libuv",
        meaning=t("torch's build for Windows has no libuv, which torchrun asks for by default."),
        advice=t("`set USE_LIBUV=0` before the start, or Linux (WSL)."),
    ),
    # ValueError: Error: Trying to use more GPUs than available
    Pattern(
        id="too-many-processes",
        regex=r"Trying to use more GPUs than available|You set `--num_processes=(?P<wanted>\d+)`[^\n]*only|ValueError: num_processes[^\n]*greater than the number of",
        meaning=t("More processes are started than there are cards."),
        advice=t("`nvidia-smi -L | wc -l` processes; accelerate keeps an old number in its configuration: `accelerate config`, or --num_processes."),
        confirms=("fewer-gpus-than-rented", "cuda-visible-devices-invalid"),
    ),
)  # fmt: skip
