"""Patterns of several processes: NCCL, rendezvous, ports, ranks that die."""

from __future__ import annotations

from doctor.explain.match import Pattern
from doctor.model import t

PATTERNS: tuple[Pattern, ...] = (
    # [Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=12, OpType=ALLREDUCE, ...) ran for 1800051 milliseconds
    Pattern(
        id="nccl-timeout",
        regex=r"Watchdog caught collective operation timeout|NCCL.*(?:timed out|timeout)|Some NCCL operations have failed or timed out",
        meaning=t(
            "One rank waited for the others in a collective until the time-out: another rank is slower, died, or does something else (evaluation, saving, a different number of batches)."
        ),
        advice=t(
            "See what every rank is doing with `doctor stacks PID`; on GeForce cards without P2P try NCCL_P2P_DISABLE=1."
        ),
        confirms=("nccl-p2p-hang-risk", "gpu-hardware-fault", "shm-too-small"),
    ),
    # torch.distributed.DistBackendError: NCCL error in: ... unhandled system error (run with NCCL_DEBUG=INFO for details)
    Pattern(
        id="nccl-error",
        regex=r"NCCL error in|ncclSystemError|ncclUnhandledCudaError|ncclInternalError|unhandled (?:system|cuda) error",
        meaning=t("NCCL failed: the network interface, shared memory (/dev/shm) or a card."),
        advice=t(
            "Run with NCCL_DEBUG=INFO and read the first WARN line; check /dev/shm and NCCL_SOCKET_IFNAME."
        ),
        confirms=(
            "nccl-interface-missing",
            "shm-too-small",
            "memlock-too-small",
            "nccl-p2p-hang-risk",
            "gpu-hardware-fault",
        ),
    ),
    # Error while creating shared memory segment /dev/shm/nccl-6W2pUe (size 9637888)   |   Error: failed to extend /dev/shm/nccl-EuOnGV to 33030532 bytes, error: No space left on device (28)
    Pattern(
        id="nccl-shared-memory",
        regex=r"Error while creating shared memory segment (?P<path>\S*/dev/shm/nccl-\S*)|failed to extend (?P<path2>/dev/shm/nccl-\S+)|Call to (?:posix_fallocate|ftruncate) failed: No space left on device",
        meaning=t(
            "/dev/shm is too small for NCCL, which exchanges between the cards of one machine through it."
        ),
        advice=t(
            "Restart the container with --shm-size=16g or --ipc=host; where you cannot, NCCL_SHM_DISABLE=1 (slower: it takes the network then). `df -h /dev/shm` shows the size; files of dead runs may be deleted."
        ),
        confirms=("shm-too-small",),
        hides=("nccl-error", "disk-full"),
    ),
    # NCCL WARN Bootstrap : no socket interface found
    Pattern(
        id="nccl-no-interface",
        regex=r"Bootstrap : no socket interface found",
        meaning=t("NCCL found no network interface of the name that NCCL_SOCKET_IFNAME gives."),
        advice=t("`unset NCCL_SOCKET_IFNAME`, or set it to one of `ls /sys/class/net`."),
        confirms=("nccl-interface-missing",),
        hides=("nccl-error",),
    ),
    # The server socket has failed to listen on any local network address. ... EADDRINUSE / Address already in use   |   OSError: [WinError 10048] 通常每个套接字地址(协议/网络地址/端口)只允许使用一次。
    Pattern(
        id="port-in-use",
        regex=r"EADDRINUSE|Address already in use|地址已在使用|\[WinError 10048\]",
        meaning=t(
            "The port is taken: an earlier run is still alive, or another one uses the same MASTER_PORT."
        ),
        advice=t(
            "`ss -ltnp` shows who listens; start with another port (torchrun --master-port 0 picks a free one)."
        ),
        confirms=("rendezvous-variables-left-over",),
    ),
    # RuntimeError: Expected to have finished reduction in the prior iteration before starting a new one.
    Pattern(
        id="ddp-unused",
        regex=r"Expected to have finished reduction in the prior iteration before starting a new one",
        meaning=t("DDP waited for gradients of parameters that this forward did not use."),
        advice=t(
            "Freeze the unused parameters (requires_grad_(False)), or find_unused_parameters=True (slower)."
        ),
        confirms=("ddp-unused-parameters",),
    ),
    # torch.distributed.elastic.rendezvous.api.RendezvousTimeoutError / Connection refused / The client socket has timed out
    Pattern(
        id="rendezvous",
        regex=r"Rendezvous(?:Timeout|Connection)Error|Error: The client socket has (?:timed out|failed to connect)|DistNetworkError|DistStoreError: Timed out",
        meaning=t(
            "The processes did not find each other: wrong MASTER_ADDR or port, a firewall, or a process that died before."
        ),
        advice=t(
            "Read the first rank's error; on one machine unset MASTER_ADDR and start with torchrun --standalone."
        ),
        confirms=("rendezvous-variables-left-over", "nccl-interface-missing"),
    ),
    # torch.distributed.elastic.multiprocessing.errors.ChildFailedError
    Pattern(
        id="child-failed",
        regex=r"ChildFailedError",
        meaning=t(
            "torchrun reports that a rank ended badly. This is not the error itself: it stands further up, in that rank's own output."
        ),
        advice=t("Search upwards for the first traceback; torchrun --log-dir keeps one file a rank."),
        general=True,
    ),
    # NotImplementedError: Using RTX 4000 series doesn't support faster communication broadband via P2P or IB.
    Pattern(
        id="geforce-without-p2p",
        regex=r"Using RTX .{0,40}series doesn't support faster communication",
        meaning=t(
            "accelerate refuses several GeForce cards with this driver until NCCL is told not to use direct copies between them."
        ),
        advice=t(
            "`export NCCL_P2P_DISABLE=1 NCCL_IB_DISABLE=1` before the start, also for a run on one of the cards; `accelerate launch` sets both itself."
        ),
        confirms=("nccl-p2p-hang-risk",),
    ),
    # RuntimeError: Expected to mark a variable ready only once. This error is caused by one of the following reasons
    Pattern(
        id="ddp-ready-twice",
        regex=r"Expected to mark a variable ready only once",
        meaning=t(
            "DDP got a parameter's gradient twice in one step: mostly re-entrant gradient checkpointing (with LoRA above all), or a module that is used twice."
        ),
        advice=t(
            "gradient_checkpointing_kwargs={'use_reentrant': False}, and ddp_find_unused_parameters=False."
        ),
        confirms=("reentrant-checkpoint-frozen-inputs", "ddp-unused-parameters"),
    ),
    # ValueError: You can't train a model that has been loaded with `device_map='auto'` in any distributed mode.
    Pattern(
        id="device-map-in-ranks",
        regex=r"loaded with `device_map='auto'` in any distributed mode|loaded in 8-bit or 4-bit precision on a different device than the one",
        meaning=t(
            "device_map spreads one model over the cards, and several processes each want a whole one on their own card."
        ),
        advice=t(
            "Under torchrun or accelerate launch leave device_map out (4 or 8 bits: device_map={'': int(os.environ['LOCAL_RANK'])}); or start one process with plain python."
        ),
    ),
    # OSError: [Errno 99] Cannot assign requested address   |   [c10d] The server socket has failed to bind to 10.0.0.3:29500 (errno: 99 - Cannot assign requested address).
    Pattern(
        id="address-not-ours",
        regex=r"Cannot assign requested address|无法指定被请求的地址",
        meaning=t(
            "A program wants to listen on an address that is none of this machine's: the address that the platform shows outside is not one inside the container."
        ),
        advice=t(
            "Servers: 0.0.0.0 (or 127.0.0.1 behind an ssh tunnel). Several machines: MASTER_ADDR is one that `hostname -I` shows on the first of them."
        ),
        confirms=("rendezvous-variables-left-over",),
    ),
)
