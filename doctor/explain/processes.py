"""Patterns of processes: ended by a signal, started the wrong way, or without the lock they wait for."""

from __future__ import annotations

from doctor.explain.match import Pattern
from doctor.model import t


def _ended_with(signal: int) -> str:
    """Return the pattern of a status that names ``signal``, as Python writes it (-11) and as shells do (139)."""
    # exitcode  : -11 (pid: 4242)   |   exit code: 139   |   exits with return code = -11
    return "|".join(
        rf"{words}[ \t]*[:=]?[ \t]*(?:-{signal}|{128 + signal})\b"
        for words in ("exitcode", "exit code", "return code")
    )


def _chinese(*words: str) -> str:
    """Return the pattern of an end as a shell under a Chinese locale writes it, with the bar to the next branch."""
    # 段错误 (核心已转储)   |   train.sh: 行 3:  4242 段错误               (核心已转储) python train.py
    return "".join(rf"(?:^|\d[ \t]+){word}(?:[ \t]*\((?:核心已转储|吐核)\)|[ \t\r]*$)|" for word in words)


PATTERNS: tuple[Pattern, ...] = (
    # torch.distributed.elastic.multiprocessing.api.SignalException: Process 1292490 got signal: 1   |   Received 1 death signal, shutting down workers
    Pattern(
        id="hang-up",
        regex=r"SignalException: Process \d+ got signal: 1\b|Received 1 death signal|closing signal SIGHUP|^Hangup\b",
        meaning=t("The terminal went away (SIGHUP): the SSH connection closed, and the run with it."),
        advice=t(
            "Start it inside tmux or screen (`tmux new -s train`, leave with Ctrl-b d), or with `doctor run --detach`; then resume from the last checkpoint."
        ),
        confirms=("session-ends-with-ssh",),
        hides=("child-failed", "terminated"),
    ),
    # torch.distributed.elastic.multiprocessing.api.SignalException: Process 4242 got signal: 15   |   exitcode  : -15 (pid: 4242)   |   Terminated   |   已终止
    Pattern(
        id="terminated",
        regex=r"SignalException: Process \d+ got signal: 15\b|Received 15 death signal|^Terminated$|" + _chinese("已终止") + _ended_with(15),
        meaning=t(
            "The process was asked to stop (SIGTERM): by a scheduler or the platform, by a person, or by the launcher because another rank failed first."
        ),
        advice=t("With several ranks, look for the first error above; else for a time limit or a preemption of the job."),
    ),
    # Segmentation fault (core dumped)   |   段错误 (核心已转储)   |   Fatal Python error: Segmentation fault   |   exitcode  : -11 (pid: 4242)   |   Signal 11 (SIGSEGV) received by PID 4242
    Pattern(
        id="segmentation-fault",
        regex=r"Segmentation fault(?: \(core dumped\))?[ \t\r]*$|Fatal Python error: Segmentation fault|[Ss]ignal 11 \(SIGSEGV\)|" + _chinese("段错误") + _ended_with(11),
        meaning=t(
            "The process crashed in native code (SIGSEGV): usually a compiled package that does not fit torch, two copies of one library, or a broken install. Python has no traceback of it."
        ),
        advice=t(
            "Run once with `python -X faulthandler SCRIPT`: the last line names the package. Reinstall that one for your torch."
        ),
        confirms=(
            "extension-torch-abi-mismatch",
            "flash-attn-torch-abi-mismatch",
            "torchvision-torch-mismatch",
            "ld-library-path-shadows-bundled-cuda",
            "torch-install-broken",
            "numpy2-torch-abi",
        ),
        hides=("child-failed",),
    ),
    # Fatal Python error: none_dealloc: deallocating None: bug likely caused by a refcount error in a C extension
    Pattern(
        id="fatal-python",
        regex=r"Fatal Python error: (?P<what>(?!Segmentation fault|Bus error|Aborted)[^\n]{3,120})",
        meaning=t("Python itself stopped ({what}): a compiled extension damaged its memory, or the interpreter was started in a broken environment (PYTHONHOME, init_...).", what="?"),
        advice=t("The last Python frames above name the extension; update it (and what it is compiled against), resume from the last checkpoint. With 'init_': `unset PYTHONHOME PYTHONPATH`."),
        general=True,
    ),
    # Floating point exception (core dumped)   |   浮点数例外 (核心已转储)   |   failed (exitcode: -8) local_rank: 0 (pid: 69053) of binary: /root/miniconda3/bin/python
    Pattern(
        id="floating-point-exception",
        regex=r"Floating point exception(?: \(core dumped\))?[ \t\r]*$|[Ss]ignal 8 \(SIGFPE\)|" + _chinese("浮点数例外", "浮点异常") + _ended_with(8),
        meaning=t(
            "The process crashed in a division in native code (SIGFPE): a library that does not know this card or this CPU, never your own arithmetic in Python."
        ),
        advice=t(
            "Run once with `python -X faulthandler SCRIPT` to see in which call; update the library that owns it (on a new card: torch with its nvidia-* wheels)."
        ),
        confirms=("nvidia-wheel-version-drift", "ld-library-path-shadows-bundled-cuda"),
        hides=("child-failed",),
    ),
    # Illegal instruction (core dumped)   |   非法指令 (核心已转储)   |   exitcode  : -4 (pid: 4242)
    Pattern(
        id="illegal-instruction",
        regex=r"Illegal instruction(?: \(core dumped\))?[ \t\r]*$|[Ss]ignal 4 \(SIGILL\)|" + _chinese("非法指令") + _ended_with(4),
        meaning=t("A package was compiled for a newer CPU than this one, or than this virtual machine shows."),
        advice=t("`python -X faulthandler SCRIPT` names the package; install its generic build, or build it on this machine."),
        hides=("child-failed",),
    ),
    # Aborted (core dumped)   |   已放弃 (核心已转储)   |   exitcode  : -6 (pid: 4242)   |   Signal 6 (SIGABRT) received by PID 4242
    Pattern(
        id="aborted",
        regex=r"Aborted \(core dumped\)[ \t\r]*$|^Aborted$|[Ss]ignal 6 \(SIGABRT\)|" + _chinese("已放弃", "已中止") + _ended_with(6),
        meaning=t(
            "The process ended itself (SIGABRT) after an error in native code: a CUDA error in a thread, a failed assertion, a NCCL watchdog."
        ),
        advice=t("The reason stands above, often after `what():` or `terminate called after throwing`."),
        hides=("child-failed",),
        general=True,
    ),
    # RuntimeError: Cannot re-initialize CUDA in forked subprocess. To use CUDA with multiprocessing, you must use the 'spawn' start method
    Pattern(
        id="cuda-in-fork",
        regex=r"Cannot re-initialize CUDA in forked subprocess",
        meaning=t("CUDA was used before the worker processes were forked, and a forked process cannot use it again."),
        advice=t(
            "Keep tensors of the Dataset and of `map` functions on the CPU and move each batch afterwards; else multiprocessing.set_start_method('spawn') under `if __name__ == '__main__':`. vLLM: VLLM_WORKER_MULTIPROC_METHOD=spawn."
        ),
    ),
    # An attempt has been made to start a new process before the current process has finished its bootstrapping phase.   |   File "D:\anaconda3\lib\multiprocessing\popen_spawn_win32.py", line 93, in __init__     reduction.dump(process_obj, to_child) BrokenPipeError: [Errno 32] Broken pipe
    Pattern(
        id="main-guard-missing",
        regex=r"current process has finished its bootstrapping phase|popen_spawn_win32\.py\"[^\n]*(?:\n[^\n]*){0,3}?BrokenPipeError",
        meaning=t("Worker processes import the script anew, and it starts them again: the `__main__` guard is missing."),
        advice=t("Put what starts the training under `if __name__ == '__main__':`; num_workers=0 does without worker processes."),
        confirms=("workers-start-by-forkserver",),
    ),
    # AttributeError: Can't pickle local object 'main.<locals>.collate'   |   TypeError: cannot pickle '_thread.lock' object
    Pattern(
        id="cannot-pickle",
        regex=r"Can't (?:pickle|get) local object '(?P<name>[^'\n]+)'|[Cc]annot pickle '(?P<type>[^'\n]+)' object",
        meaning=t("Something that is handed to worker processes cannot be copied into them: {name}{type}.", name="", type=""),
        advice=t(
            "Define it at the top of the module (no lambda, no function inside a function), open files and connections inside the worker, or num_workers=0."
        ),
        confirms=("workers-start-by-forkserver",),
    ),
    # RuntimeError: DataLoader timed out after 60 seconds
    Pattern(
        id="loader-timeout",
        regex=r"DataLoader timed out after (?P<seconds>\d+) seconds",
        meaning=t("No batch came within {seconds} s: a worker waits for a disk, a lock or memory.", seconds="?"),
        advice=t("`doctor stacks PID` shows where the workers wait; run once with num_workers=0."),
        confirms=("data-on-network-mount", "data-on-slow-disk", "shm-too-small"),
    ),
    # bash: llamafactory-cli: command not found   |   bash: llamafactory-cli: 未找到命令   |   zsh: command not found: torchrun   |   'llamafactory-cli' 不是内部或外部命令，也不是可运行的程序   |   'torchrun' is not recognized as an internal or external command
    Pattern(
        id="command-not-found",
        regex=r"(?<![\w.\-])(?!(?:nvcc|nvidia-smi|sudo|conda): )(?P<name>[\w.\-]+): command not found|(?<![\w.\-])(?!(?:nvcc|nvidia-smi|sudo|conda)[:：])(?P<name5>[\w.\-]+)[:：] ?未找到命令|zsh: command not found: (?P<name6>[\w.\-]+)|'(?P<name2>[\w.\-]+)' 不是内部或外部命令|'(?P<name3>[\w.\-]+)' is not recognized as an internal or external command|无法将“(?P<name4>[\w.\-]+)”项识别为",
        meaning=t("The shell does not find {name}{name2}{name3}{name4}{name5}{name6}: it is not installed in this environment, or the environment is not activated.", name="", name2="", name3="", name4="", name5="", name6=""),
        advice=t(
            "`conda activate NAME` (or `source VENV/bin/activate`) first; a Python package's command also starts as `python -m MODULE`."
        ),
        confirms=("needed-package-missing",),
    ),
    # bash: sudo: command not found
    Pattern(
        id="no-sudo",
        regex=r"\bsudo: command not found|\bsudo[:：] ?未找到命令",
        meaning=t("This image has no sudo: in a rented container you are root already."),
        advice=t("The same command without `sudo`."),
    ),
    # bash: conda: command not found
    Pattern(
        id="no-conda",
        regex=r"\bconda: command not found|\bconda[:：] ?未找到命令",
        meaning=t("This shell has not loaded conda, or it lies where PATH does not lead."),
        advice=t("`source /root/miniconda3/etc/profile.d/conda.sh` (AutoDL; elsewhere ~/miniconda3 or /opt/conda), then `conda init` once for later shells."),
    ),
    # Error: Failed to suspend process / Permission Denied: Try running again with elevated permissions
    Pattern(
        id="pyspy-permission",
        regex=r"Permission Denied: Try running again with elevated permissions|Failed to suspend process|SYS_PTRACE",
        meaning=t("py-spy may not read that process here."),
        advice=t("Use `py-spy ... --nonblocking`, run it as the same user, or ask for --cap-add SYS_PTRACE."),
        confirms=("pyspy-needs-ptrace",),
    ),
    # EOFError: EOF when reading a line
    Pattern(
        id="nobody-to-answer",
        regex=r"EOFError: EOF when reading a line",
        meaning=t("The program asks a question (input()), and nobody can answer: it runs under nohup, in a job, or as a worker."),
        advice=t("Give the answer as an option or a variable (wandb: WANDB_MODE, trust_remote_code=True, a yes option), or run it in tmux, where there is a terminal."),
    ),
    # [1]+  Stopped                 python train.py   |   [1]+  已停止               python train.py
    Pattern(
        id="stopped-job",
        regex=r"^\[\d+\][+-]?[ \t]+Stopped\b|^\[\d+\][+-]?[ \t]+已停止[ \t]",
        meaning=t("The program is only halted (Ctrl-Z, or a background job that wanted the terminal): it goes no further and keeps its memory, the card's too."),
        advice=t("`fg` goes on with it, `bg` in the background, `kill %1` ends it (the number in brackets); Ctrl-C is what ends a program."),
        confirms=("vram-held-by-process",),
    ),
    # -bash: fork: retry: Resource temporarily unavailable   |   -bash: fork: 资源暂时不可用   |   RuntimeError: can't start new thread   |   OpenBLAS blas_thread_init: pthread_create failed for thread 31 of 64
    Pattern(
        id="too-many-threads",
        regex=r"fork: (?:retry: )?Resource temporarily unavailable|fork: (?:retry: )?资源暂时不可用|can't start new thread|pthread_create failed for thread|libgomp: Thread creation failed",
        meaning=t("No more processes or threads may be started: your limit (ulimit -u) or the container's (pids.max) is reached, often by libraries that each take one thread for every core of the host."),
        advice=t("`export OMP_NUM_THREADS=4 OPENBLAS_NUM_THREADS=4 MKL_NUM_THREADS=4`, fewer loader workers; `ps -eLf | wc -l` and `cat /sys/fs/cgroup/pids.max` show how near it is. What an ended run left behind is ended with kill."),
        confirms=("thread-count-above-cpus", "cpu-quota-below-host-count"),
    ),
)  # fmt: skip
