"""Patterns of conda and apt: environments that cannot be solved, licences, locks, lists that are too old."""

from __future__ import annotations

from doctor.explain.match import Pattern
from doctor.model import t

PATTERNS: tuple[Pattern, ...] = (
    # LibMambaUnsatisfiableError: Encountered problems while solving:   |   UnsatisfiableError: The following specifications were found
    Pattern(
        id="conda-unsatisfiable",
        regex=r"LibMambaUnsatisfiableError|UnsatisfiableError: The following|Could not solve for environment specs",
        meaning=t("conda found no set of versions that fits what was asked for beside what is installed; the list under it names what excludes what."),
        advice=t("A new environment with everything in one command (`conda create -n NAME python=3.11 ...`), one channel (conda-forge), and torch from pip: PyTorch's own conda channel has had no releases since 2.5."),
        confirms=("python-version-no-wheel",),
    ),
    # PackagesNotFoundError: The following packages are not available from current channels:
    Pattern(
        id="conda-not-found",
        regex=r"PackagesNotFoundError|nothing provides requested (?P<name>[\w.-]+)",
        meaning=t("The channels asked have no such package, or not that version or build."),
        advice=t("`-c conda-forge` (or nvidia for CUDA's); what is only on PyPI comes with `python -m pip install` inside the environment."),
    ),
    # ResolvePackageNotFound:   - libcxx==14.0.6=h9765a3e_0
    Pattern(
        id="conda-foreign-builds",
        regex=r"ResolvePackageNotFound",
        meaning=t("The environment file names exact builds (=h9765a3e_0) that are not there for this system: it was exported on another one (macOS, Windows), or they were withdrawn."),
        advice=t("Take the builds off (`sed -E 's/^( *- [^=]+=+[^=]+)=[^=]+$/\\1/' environment.yml`), drop what only the other system has (libcxx, vs2015_runtime), or write only what you need; `conda env export --from-history` gives such a file."),
    ),
    # CondaEnvException: Pip failed
    Pattern(
        id="conda-pip-failed",
        regex=r"CondaEnvException: Pip failed",
        meaning=t("conda made the environment, and pip failed on its part of the file. This is not the error itself: it stands above, after 'Pip subprocess error'."),
        advice=t("Read pip's own lines. The environment is there: `conda activate NAME`, mend the list, `python -m pip install -r FILE`."),
        general=True,
    ),
    # CondaToSNonInteractiveError: Terms of Service have not been accepted for the following channels. Please accept or remove them before proceeding:
    Pattern(
        id="conda-terms",
        regex=r"CondaToSNonInteractiveError|Terms of Service have not been accepted for the following channels",
        meaning=t("Since 2025 conda asks for consent to the terms of Anaconda's own channels, and nobody could answer here."),
        advice=t("`conda tos accept --override-channels --channel URL` for each channel listed, or do without them: `conda create -n NAME --override-channels -c conda-forge python=3.11`."),
    ),
    # EnvironmentNameNotFound: Could not find conda environment: llama
    Pattern(
        id="conda-no-environment",
        regex=r"Could not find conda environment: (?P<name>\S+)|EnvironmentLocationNotFound: Not a conda environment: (?P<path>\S+)",
        meaning=t("conda knows no environment {name}{path}: it has another name, or belongs to another conda or user.", name="", path=""),
        advice=t("`conda env list` shows those there are, with their folders; `conda activate /PATH` takes a folder too."),
    ),
    # CondaHTTPError: HTTP 000 CONNECTION FAILED for url <https://...>
    Pattern(
        id="conda-http",
        regex=r"CondaHTTPError|CondaSSLError|Download error \(\d+\)",
        meaning=t("conda cannot reach its channel: no way out, a proxy, or a mirror that has no such folder any more."),
        advice=t("`conda config --show channels default_channels` shows where it asks; `conda clean -i` and another mirror, or pip with a mirror."),
        confirms=("platform-proxy-on", "platform-proxy-there"),
    ),
    # EnvironmentNotWritableError: The current user does not have write permissions to the target environment.
    Pattern(
        id="conda-not-writable",
        regex=r"EnvironmentNotWritableError|NotWritableError: The current user does not have write permissions",
        meaning=t("This conda belongs to another user, and its base cannot be changed."),
        advice=t("`conda create -p ~/envs/NAME python=3.11 && conda activate ~/envs/NAME`."),
    ),
    # E: Could not get lock /var/lib/dpkg/lock-frontend. It is held by process 1342 (unattended-upgr)   |   E: 无法获得锁 /var/lib/dpkg/lock-frontend。锁正由进程 1342（unattended-upgr）持有
    Pattern(
        id="apt-lock",
        regex=r"Could not get lock /var/lib/(?:dpkg|apt)|Unable to acquire the dpkg frontend lock|无法获得锁 ?/var/lib/",
        meaning=t("Another apt is at work: on a fresh machine mostly the automatic upgrades of its first minutes."),
        advice=t("Wait until it ends (`ps aux | grep -E 'apt|dpkg|unattended'`); do not delete the lock while it runs."),
    ),
    # E: Unable to locate package libaio-dev   |   E: 无法定位软件包 tmux   |   E: Package 'python3.9-venv' has no installation candidate
    Pattern(
        id="apt-no-package",
        regex=r"E: Unable to locate package (?P<name>\S+)|E: 无法定位软件包 (?P<name3>\S+)|E: Package '?(?P<name2>[\w.+-]+)'? has no installation candidate",
        meaning=t("apt knows no {name}{name2}{name3}: an image comes without lists, or this release does not have it.", name="", name2="", name3=""),
        advice=t("`apt-get update` first. A Python that the release lacks comes from conda or uv."),
    ),
    # E: dpkg was interrupted, you must manually run 'sudo dpkg --configure -a' to correct the problem.
    Pattern(
        id="dpkg-interrupted",
        regex=r"dpkg was interrupted, you must manually run",
        meaning=t("An installation was cut off half way."),
        advice=t("`dpkg --configure -a && apt-get -f install -y`; look at the free disk first (`df -h /`)."),
        confirms=("disk-nearly-full",),
    ),
    # E: Failed to fetch http://archive.../libssl3_3.0.2.deb  404  Not Found [IP: 185.125.190.36 80]
    Pattern(
        id="apt-404",
        regex=r"E: Failed to fetch \S+ +404 +Not Found",
        meaning=t("apt's lists are older than the archive: that file has been replaced by a newer one."),
        advice=t("`apt-get update`, then again. A release whose time is over has moved to old-releases."),
    ),
    # E: The repository 'https://... InRelease' is not signed.
    Pattern(
        id="apt-key",
        regex=r"E: The repository '[^'\n]+' is not signed",
        meaning=t("apt does not trust a package source because its key is missing or was changed (NVIDIA changed its own in 2022)."),
        advice=t("Disable that source if you do not need it (in /etc/apt/sources.list.d), or install its keyring (NVIDIA: the cuda-keyring package)."),
    ),
    # E: Release file for http://... is not valid yet (invalid for another 5h 12min 3s).
    Pattern(
        id="apt-clock",
        regex=r"E: Release file for \S+ is not valid yet",
        meaning=t("This machine's clock is behind."),
        advice=t("`date -u`; set it (`timedatectl set-ntp true`), in a container the host's must be right."),
        confirms=("clock-wrong",),
    ),
    # Temporary failure in name resolution   |   Could not resolve host: github.com   |   Temporary failure resolving 'archive.ubuntu.com'
    Pattern(
        id="no-name-resolution",
        regex=r"Temporary failure in name resolution|Could not resolve host: (?P<host>\S+)|Temporary failure resolving|Name or service not known|getaddrinfo failed",
        meaning=t("No host name can be looked up: this machine has no way out, its DNS does not answer, or the name is mistyped."),
        advice=t("`getent hosts github.com; cat /etc/resolv.conf`. Compute nodes of a cluster often have no network: download on the login node, then HF_HUB_OFFLINE=1. A container: restart it, or --dns 1.1.1.1."),
        confirms=("platform-proxy-there", "hub-offline"),
        hides=("hub-unreachable",),
    ),
    # InvalidArchiveError("Error with archive /root/miniconda3/pkgs/pytorch-2.1.2.tar.bz2.  You probably need to delete and re-download or re-create this file.")
    Pattern(
        id="conda-archive-broken",
        regex=r"InvalidArchiveError|ChecksumMismatchError|CorruptedPackageError|SafetyError: The package for",
        meaning=t("A package in conda's store is not whole: a download that was cut, or a disk that was full."),
        advice=t("`df -h` first, then `conda clean --packages --tarballs -y` and the command again; from another mirror if it repeats."),
        confirms=("disk-nearly-full",),
    ),
)  # fmt: skip
