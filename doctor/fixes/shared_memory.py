"""/dev/shm made larger where this container may do that; else what to tell whoever starts it. Pure."""

from __future__ import annotations

from doctor.fixes import fix
from doctor.model import Finding, Fix, Run, Snapshot, Storage, Text, t

_SYS_ADMIN = 1 << 21
_WANTED_BYTES = 8 << 30


@fix("shm-too-small")
def remount(finding: Finding, snapshot: Snapshot) -> Fix | Text:
    host, container = snapshot.facts.host.value, snapshot.facts.container.value
    storage = snapshot.facts.storage.value or Storage()
    mount = next((item for item in storage.mounts if item.path == "/dev/shm"), None)
    capabilities = host.capabilities_effective if host else None
    if mount is None or not mount.size_bytes or not capabilities or not capabilities & _SYS_ADMIN:
        return t(
            "/dev/shm is mounted by whoever starts the container (--shm-size=8g), and may not be changed from inside. For the provider: please start this instance with --shm-size=8g or --ipc=host. Until then: num_workers=0, or torch.multiprocessing.set_sharing_strategy(\"file_system\")."
        )  # fmt: skip
    limit = (container.memory_limit_bytes if container else None) or (
        host.memory_total_bytes if host else None
    )
    wanted = min(_WANTED_BYTES, limit // 2) if limit else _WANTED_BYTES
    if wanted <= mount.size_bytes:
        return t("half of this machine's memory is less than what /dev/shm has already: use fewer workers")
    return Fix(
        id=finding.id,
        subject=finding.subject,
        title=t("make /dev/shm {size} MB until the next start", size=wanted >> 20),
        steps=(
            Run(
                argv=("mount", "-o", f"remount,size={wanted}", "/dev/shm"),
                undo=("mount", "-o", f"remount,size={mount.size_bytes}", "/dev/shm"),
            ),
        ),
        touches=("storage",),
        risk=t("what is put there counts as memory of the container"),
    )
