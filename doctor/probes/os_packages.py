"""The system packages that a training environment stands on, out of dpkg's own file. rpm's database is not read."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from doctor.model import Text, t
from doctor.probes.gaps import reason_of
from runner.strings import printable

if TYPE_CHECKING:
    from doctor.probes import Context

STATUS_LIMIT_BYTES = 32 << 20
# libc6, libstdc++6, libgomp1, cuda-toolkit-12-4, libcudnn9-cuda-12, libnccl2, nvidia-utils-550, openmpi-bin, ...
_MATTERS = re.compile(
    r"(libc6|libstdc\+\+6|libgomp1|libnuma1|libibverbs1|librdmacm1|g\+\+|gcc|ninja-build|git-lfs|ffmpeg|libgl1|libsndfile1"
    r"|openmpi-bin|libopenmpi\d*|(?:cuda|libcudnn|libnccl|libcublas|nvidia|libnvidia)[\w.+-]*)$"
)


def read_os_packages(context: Context, unread: dict[str, Text]) -> dict[str, str]:
    """Return name -> version; ``unread["os_packages"]`` says why where the list could not be had."""
    path = "/var/lib/dpkg/status"
    try:
        text = context.read(path, STATUS_LIMIT_BYTES)
    except OSError as error:
        unread["os_packages"] = t("{path} could not be read: {error}", path=path, error=reason_of(error))
        return {}
    return parse_dpkg(text)


def parse_dpkg(text: str) -> dict[str, str]:
    """Return the installed packages of a dpkg status file that matter."""
    found = {}
    for block in text.split("\n\n"):
        # Package: libc6
        name = block.partition("\n")[0].removeprefix("Package: ")
        if not _MATTERS.match(name) or "\nStatus: install ok installed" not in block:
            continue
        version = re.search(r"^Version: (\S+)$", block, re.MULTILINE)
        found[printable(name)] = printable(version[1]) if version else ""
    return found
