"""Patterns of schedulers around a run: SLURM and Ray."""

from __future__ import annotations

from doctor.explain.match import Pattern
from doctor.model import t

PATTERNS: tuple[Pattern, ...] = (
    # slurmstepd: error: Detected 1 oom_kill event in StepId=4242.batch. Some of the step tasks have been OOM Killed.
    Pattern(
        id="slurm-oom",
        regex=r"slurmstepd: error: Detected \d+ oom[_-]kill event|Some of the step tasks have been OOM Killed|oom_kill event in StepId",
        meaning=t("SLURM killed the job because it used more host memory than it had asked for; the card's memory plays no part."),
        advice=t("More with --mem (or --mem-per-gpu), fewer loader workers; `sacct -j JOB -o MaxRSS,ReqMem` shows both."),
        confirms=("process-killed-for-memory", "cgroup-memory-below-host"),
        hides=("exit-137",),
    ),
    # slurmstepd: error: *** JOB 4242 ON node01 CANCELLED AT 2025-05-05T12:00:00 DUE TO TIME LIMIT ***
    Pattern(
        id="slurm-time",
        regex=r"CANCELLED AT \S+ DUE TO TIME LIMIT",
        meaning=t("The job's time was up, and SLURM ended it."),
        advice=t("Resume from the last checkpoint; more --time, or --signal=B:USR1@120 so that a checkpoint is written before the end."),
        hides=("terminated",),
    ),
    # slurmstepd: error: *** JOB 4242 ON node01 CANCELLED AT 2025-05-05T12:00:00 DUE TO PREEMPTION ***
    Pattern(
        id="slurm-preempted",
        regex=r"CANCELLED AT \S+ DUE TO (?:PREEMPTION|NODE FAILURE|NODE_FAIL)",
        meaning=t("SLURM took the node away: another job went first, or the node failed. The program is not to blame."),
        advice=t("--requeue with a run that resumes from its last checkpoint, or a partition that is not taken away."),
        hides=("terminated",),
    ),
    # sbatch: error: Batch job submission failed: Requested node configuration is not available
    Pattern(
        id="slurm-refused",
        regex=r"(?:sbatch|srun|salloc): error: (?:Batch job submission failed|Unable to allocate resources|Unable to create step[^\n:]*): (?P<why>[^\n]{1,120})",
        meaning=t("SLURM refuses the job as asked for: {why}.", why="?"),
        advice=t("`sinfo -o '%P %G %c %m %l'` shows what each partition has; `sacctmgr show assoc user=$USER` which accounts are yours. Cards are asked for with --gres=gpu:N."),
    ),
    # sbatch: fatal: Could not establish a configuration source   |   sbatch: error: Batch job submission failed: Unable to contact slurm controller (connect failure)
    Pattern(
        id="slurm-no-controller",
        regex=r"Could not establish a configuration source|Unable to contact slurm controller",
        meaning=t("SLURM's commands find no cluster: this machine is not part of one (a container, a rented instance), or its controller is down."),
        advice=t("On the cluster's login node it works; without SLURM start the script itself: `bash SCRIPT`, whose #SBATCH lines are then comments."),
        hides=("slurm-refused",),
    ),
    # slurmstepd: error: couldn't chdir to `/root/burst-buffer': No such file or directory: going to /tmp instead
    Pattern(
        id="slurm-folder",
        regex=r"couldn't chdir to [`'](?P<folder>[^'\n]+)': (?P<why>No such file or directory|Permission denied)",
        meaning=t("The node does not have the folder {folder} that the job was sent from, so the job runs in /tmp and finds none of its files.", folder="?"),
        advice=t("Submit from a folder that all nodes share (the cluster's home or scratch), or --chdir=FOLDER."),
    ),
    # slurmstepd: error: execve(): /tmp/slurmd/job2997814/slurm_script: No such file or directory
    Pattern(
        id="slurm-program",
        regex=r"slurmstepd: error: execve\(\): (?P<file>\S+): (?P<why>No such file or directory|Permission denied|Exec format error)",
        meaning=t("The node cannot start {file} ({why}): the interpreter in its #! line or the program is not on that node, the line ends are Windows', or the node's own disk is full or lost.", file="?", why="?"),
        advice=t("`srun -w NODE ls -l PROGRAM` looks there; if only one node says it, leave it out with --exclude=NODE and tell the administrators."),
    ),
    # ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory.
    Pattern(
        id="ray-memory",
        regex=r"Task was killed due to the node running low on memory|were killed due to memory pressure \(OOM\)",
        meaning=t("Ray ended a worker because the host memory was nearly used up; the card's memory plays no part."),
        advice=t("Fewer workers or smaller replay and rollout batches, optimizer offload off, or more host memory; the table under the message shows which processes held it."),
        confirms=("cgroup-memory-below-host",),
        hides=("ray-worker-died",),
    ),
    # ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task.
    Pattern(
        id="ray-worker-died",
        regex=r"The actor died unexpectedly before finishing this task|The actor is dead because its worker process has died|A worker died or was killed while executing a task|WorkerCrashedError",
        meaning=t("A ray worker process ended without a Python error, and ray does not know why: killed for host memory, or a crash in native code."),
        advice=t("`doctor check` reads the kernel's kills. Then the worker's own last lines: `ls -t /tmp/ray/session_latest/logs/worker-*err | head`, read from the end; /dev/shm and host memory first."),
        confirms=("process-killed-for-memory", "cgroup-memory-below-host", "shm-too-small"),
    ),
    # ValueError: Total available GPUs 1 is less than total desired GPUs 8
    Pattern(
        id="ray-too-few-gpus",
        regex=r"Total available GPUs (?P<have>[\d.]+) is less than total desired GPUs (?P<want>[\d.]+)|The number of required GPUs exceeds the total number of available GPUs",
        meaning=t("More cards are asked for than ray or vLLM sees here."),
        advice=t("The number of cards in the configuration (n_gpus_per_node, --tensor-parallel-size) down to what `nvidia-smi -L` lists; `ray stop --force` ends a ray of an earlier run that still counts."),
        confirms=("fewer-gpus-than-rented", "cuda-visible-devices-invalid"),
    ),
)  # fmt: skip
