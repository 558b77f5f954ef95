"""Patterns of containers that do not start: no runtime for the card, no driver on the host, an image for a newer one."""

from __future__ import annotations

from doctor.explain.match import Pattern
from doctor.model import t

PATTERNS: tuple[Pattern, ...] = (
    # nvidia-container-cli: requirement error: unsatisfied condition: cuda>=12.8, please update your driver to a newer version, or use an earlier cuda container: unknown
    Pattern(
        id="image-newer-than-driver",
        regex=r"requirement error: unsatisfied condition: cuda *>= *(?P<cuda>\d+\.\d+)",
        meaning=t("The image wants CUDA {cuda}, the host's driver serves an older one, and so the container is not started.", cuda="?"),
        advice=t("Take the image's tag for an older CUDA (`nvidia-smi` on the host prints at its top right which one the driver serves), or a host with a newer driver."),
    ),
    # docker: Error response from daemon: could not select device driver "" with capabilities: [[gpu]].   |   unknown or invalid runtime name: nvidia
    Pattern(
        id="docker-without-gpus",
        regex=r"could not select device driver \"[^\"\n]*\" with capabilities|[Uu]nknown (?:or invalid )?runtime (?:name|specified):? nvidia",
        meaning=t("Docker on this host knows no runtime for NVIDIA cards."),
        advice=t("On the host: `apt-get install -y nvidia-container-toolkit && nvidia-ctk runtime configure --runtime=docker && systemctl restart docker` (after adding NVIDIA's package source). A Docker from snap does not find it."),
    ),
    # Error response from daemon: Get "https://registry-1.docker.io/v2/": net/http: request canceled while waiting for connection (Client.Timeout exceeded while awaiting headers)
    Pattern(
        id="docker-registry",
        regex=r"(?:Get|Head) \"https?://(?P<host>registry-1\.docker\.io|auth\.docker\.io|ghcr\.io|nvcr\.io|quay\.io)[^\"\n]*\": (?!unauthorized|denied)",
        meaning=t("The image registry {host} cannot be reached from here.", host="?"),
        advice=t("A registry mirror or a proxy for the Docker daemon, not for the shell: \"registry-mirrors\" in /etc/docker/daemon.json, then `systemctl restart docker`. Cloud providers give their customers one; `docker info` shows what is set."),
    ),
    # fork/exec /usr/bin/nvidia-container-runtime: permission denied: unknown   |   exec: "nvidia-container-runtime-hook": executable file not found in $PATH
    Pattern(
        id="nvidia-runtime-broken",
        regex=r"fork/exec \S*nvidia-container-\w+: (?P<why>permission denied|no such file or directory)|exec: \"nvidia-container-[\w-]+\": executable file not found",
        meaning=t("Docker knows NVIDIA's runtime by name and cannot start it: its program is missing, half installed or may not be run."),
        advice=t("On the host: `apt-get install --reinstall -y nvidia-container-toolkit && nvidia-ctk runtime configure --runtime=docker && systemctl restart docker`. A host without a card: leave --runtime=nvidia and --gpus out."),
        hides=("container-command-missing",),
    ),
    # [FATAL tini (7)] exec /app/docker/entrypoint.sh failed: No such file or directory   |   exec: "/start.sh": stat /start.sh: no such file or directory   |   exec: "python": executable file not found in $PATH
    Pattern(
        id="container-command-missing",
        regex=r"exec (?P<file>/\S+) failed: No such file or directory|exec: \"(?P<file2>[^\"\n]+)\": (?:stat [^\n]*no such file|executable file not found)|exec /\S+: no such file or directory",
        meaning=t("The container's start command {file}{file2} is not in it: a volume is mounted over the folder where the image keeps it, the command was overridden, or the script has Windows line ends.", file="", file2=""),
        advice=t("Mount the volume elsewhere (/workspace, not the image's own folder), and leave the template's start command empty so that the image's own is taken."),
    ),
    # nvidia-container-cli: initialization error: load library failed: libnvidia-ml.so.1: cannot open shared object file   |   nvidia-container-cli: initialization error: nvml error: driver not loaded
    Pattern(
        id="host-without-driver",
        regex=r"nvidia-container-cli: initialization error: (?:load library failed: libnvidia-ml|nvml error: driver not loaded|WSL environment detected but no adapters|driver error)",
        meaning=t("The host itself has no working NVIDIA driver, so it has none to hand into the container."),
        advice=t("`nvidia-smi` must work on the host first. Under Windows: an up-to-date NVIDIA driver in Windows (none inside WSL) and WSL 2 (`wsl --update`). A rented host: take another one."),
        confirms=("no-gpu-visible",),
    ),
)  # fmt: skip
