"""Patterns of memory: the card's, the host's, shared memory, and killed processes."""

from __future__ import annotations

from doctor.explain.match import Pattern
from doctor.model import t

_MAKE_ROOM = t(
    "Smaller micro-batch with accumulation, then gradient checkpointing, then bf16; look first whether another process holds the memory."
)
_WHO_HOLDS_IT = (
    "vram-held-by-process",
    "orphan-process-holds-vram",
    "vram-mostly-used",
    "allocator-fragmentation",
)

PATTERNS: tuple[Pattern, ...] = (
    # torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 23.65 GiB of which ...
    Pattern(
        id="cuda-oom",
        regex=r"CUDA out of memory\. Tried to allocate (?P<tried>[\d.]+ \w+)",
        meaning=t("The card's memory did not suffice for {tried} more.", tried="?"),
        advice=_MAKE_ROOM,
        confirms=_WHO_HOLDS_IT,
        hides=("cuda-oom-bare", "cuda-oom-unsaid"),
    ),
    # torch.cuda.OutOfMemoryError: CUDA out of memory   |   RuntimeError: CUDA out of memory.   |   RuntimeError: cuda runtime error (2) : out of memory at /pytorch/aten/src/THC/generic/THCStorage.cu:58
    Pattern(
        id="cuda-oom-unsaid",
        regex=r"(?:CUDA|Cuda|cuda|HIP) out of memory|cuda runtime error \(2\)|torch(?:\.cuda)?\.OutOfMemoryError",
        meaning=t("The card's memory did not suffice; the line does not say for how much."),
        advice=_MAKE_ROOM,
        confirms=_WHO_HOLDS_IT,
        hides=("cuda-error-late",),
    ),
    # RuntimeError: CUDA error: out of memory
    Pattern(
        id="cuda-oom-bare",
        regex=r"CUDA error: out of memory|cudaErrorMemoryAllocation|CUDA_ERROR_OUT_OF_MEMORY",
        meaning=t(
            "The card's memory was full before torch's own allocator could ask for it: usually another process holds it."
        ),
        advice=t("See who holds it (`doctor check`), and free it; a card in exclusive mode answers so too."),
        confirms=(
            "vram-held-by-process",
            "orphan-process-holds-vram",
            "gpu-processes-hidden-by-pid-namespace",
            "vram-mostly-used",
        ),
        hides=("cuda-error-late",),
    ),
    # RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`
    Pattern(
        id="cublas-alloc",
        regex=r"CUBLAS_STATUS_ALLOC_FAILED|CUDNN_STATUS_ALLOC_FAILED",
        meaning=t(
            "A CUDA library found no memory left for its workspace: an out-of-memory under another name."
        ),
        advice=t("Free memory on the card, or halve the micro-batch."),
        confirms=("vram-held-by-process", "orphan-process-holds-vram", "vram-mostly-used"),
        hides=("cuda-error-late",),
    ),
    # Of the allocated memory 61.00 GiB is allocated by PyTorch, and 14.00 GiB is reserved by PyTorch but unallocated.
    Pattern(
        id="fragmentation-hint",
        regex=r"(?<![\d.])(?P<rest>[\d.]+ [KMG]iB) is reserved by PyTorch but unallocated",
        meaning=t(
            "{rest} of the card is held by torch's allocator and not in use; a large share of it means fragmentation.",
            rest="?",
        ),
        advice=t(
            "If that is several GiB, set expandable_segments:True in the allocator variable of your torch version (`doctor check` names it)."
        ),
        confirms=("allocator-fragmentation",),
    ),
    # RuntimeError: DataLoader worker (pid 4242) is killed by signal: Bus error. It is possible that dataloader's workers are out of shared memory.
    Pattern(
        id="shm-bus-error",
        regex=r"killed by signal: Bus error|out of shared memory|unable to (?:open|write to) (?:shared memory object|file </torch_)|^Bus error|^总线错误|exitcode[ \t]*[:=]?[ \t]*(?:-7|135)\b|exit code[ \t]*[:=]?[ \t]*(?:-7|135)\b|[Ss]ignal 7 \(SIGBUS\)",
        meaning=t(
            "/dev/shm is full: loader workers hand batches over through it, and containers get 64 MB by default."
        ),
        advice=t(
            "Restart the container with --shm-size or --ipc=host; else num_workers=0, or torch.multiprocessing.set_sharing_strategy('file_system')."
        ),
        confirms=("shm-too-small",),
        hides=("worker-killed", "worker-exited", "child-failed"),
    ),
    # RuntimeError: DataLoader worker (pid 4242) is killed by signal: Killed.
    Pattern(
        id="worker-killed",
        regex=r"DataLoader worker \(pid (?P<pid>\d+)\) is killed by signal: (?P<signal>Killed|Segmentation fault|Terminated|Aborted)",
        meaning=t(
            "Loader worker {pid} was ended by a signal ({signal}). Killed nearly always means: out of host memory.",
            pid="?",
            signal="?",
        ),
        advice=t(
            "Fewer workers, or a data set that is not copied into each (Arrow or memmap in place of Python lists); look at the memory limit of the container, not of the host."
        ),
        confirms=("cgroup-memory-below-host", "process-killed-for-memory"),
        hides=("worker-exited",),
    ),
    # RuntimeError: DataLoader worker (pid(s) 4242) exited unexpectedly
    Pattern(
        id="worker-exited",
        regex=r"DataLoader worker \(pid\(s\) (?P<pids>[\d, ]+)\) exited unexpectedly",
        meaning=t(
            "Loader workers ({pids}) died without a word: killed for memory, or a crash in native code.",
            pids="?",
        ),
        advice=t("Run once with num_workers=0 to see the true error."),
        confirms=("cgroup-memory-below-host", "process-killed-for-memory", "shm-too-small"),
    ),
    # exit code 137   |   exitcode  : -9 (pid: 4242)   |   exits with return code = -9   |   died with <Signals.SIGKILL: 9>.   |   Killed   |    4%|4         | 13/300 [00:10<03:55,  1.22it/s]Killed   |   已杀死   |   run.sh: line 12: 23456 Killed                  python train.py
    Pattern(
        id="exit-137",
        regex=r"exit(?:ed with)?[ _]?(?:code|status)[ \t]*[:=]?[ \t]*(?:137|-9)\b|return(?:ed)? code ?[=:]? ?-9\b|<Signals\.SIGKILL: 9>|\bOOMKilled\b|(?:^|\])Killed$|^zsh: killed|: line \d+:[ \t]+\d+ Killed\b|^已杀死[ \t\r]*$|\d[ \t]+已杀死[ \t]|[Ss]ignal 9 \(SIGKILL\)",
        meaning=t(
            "The process was killed from outside (SIGKILL): by the kernel for memory, by the platform, or by a person."
        ),
        advice=t(
            "Compare the memory limit of the container with what the run needs; a counter of such kills is read by `doctor check`."
        ),
        confirms=("process-killed-for-memory", "cgroup-memory-below-host"),
    ),
    # Memory cgroup out of memory: Killed process 4242 (python) total-vm:...
    Pattern(
        id="kernel-oom",
        regex=r"(?:Memory cgroup out of memory|Out of memory): Killed process (?P<pid>\d+) \((?P<name>[^)]*)\)",
        meaning=t("The kernel killed {name} ({pid}) because memory ran out.", name="?", pid="?"),
        advice=t(
            "Less memory per worker or fewer workers; the container's limit counts, not the host's memory."
        ),
        confirms=("cgroup-memory-below-host", "process-killed-for-memory"),
        hides=("exit-137",),
    ),
    # RuntimeError: [enforce fail at alloc_cpu.cpp:118] . DefaultCPUAllocator: can't allocate memory: you tried to allocate 4096000000 bytes.
    Pattern(
        id="cpu-oom",
        regex=r"DefaultCPUAllocator: (?:can't allocate memory|not enough memory): you tried to allocate (?P<bytes>\d+) bytes|OSError: \[Errno 12\] Cannot allocate memory|^MemoryError|无法分配内存|Unable to allocate [\d.]+ [GT]iB for an array",
        meaning=t("Host memory ran out."),
        advice=t("Stream or memory-map the data, use fewer workers, or rent more memory."),
        confirms=("cgroup-memory-below-host",),
    ),
    # OSError: [Errno 24] Too many open files
    Pattern(
        id="too-many-files",
        regex=r"Too many open files|received 0 items of ancdata",
        meaning=t("The limit on open files is used up; loader workers pass batches as files."),
        advice=t(
            "`ulimit -n 65535` before the run, or torch.multiprocessing.set_sharing_strategy('file_system')."
        ),
        confirms=("open-files-limit-low",),
        hides=("shm-bus-error",),
    ),
    # RuntimeError: No executable batch size found, reached zero.
    Pattern(
        id="no-batch-fits",
        regex=r"No executable batch size found, reached zero",
        meaning=t(
            "The batch was halved down to nothing: not one sample fits the card's memory, or each try failed for another reason that looks like memory."
        ),
        advice=t(
            "Set the batch to 1 with auto_find_batch_size=False to see the true error; then shorter sequences, gradient checkpointing, LoRA or 4 bits."
        ),
        confirms=_WHO_HOLDS_IT,
    ),
)
