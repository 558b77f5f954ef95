"""Which disk a data set is read from fastest: by what the platform promises, the kind of disk, and what was measured. Pure."""

from __future__ import annotations

from pathlib import Path

from doctor.checks.storage import is_network, left
from doctor.model import Mount, Snapshot, Storage, Text, t
from doctor.stage_copy import StageError
from doctor.staging import SPARE_SHARE
from doctor.tables.platforms import disk_of


def choose_disk(storage: Storage, platform: str, source: str, size: int) -> tuple[Mount | None, Text]:
    """Return the fastest disk with room for ``size`` bytes, and why it; None: where the data lies is as good as any.

    Of equals not the system's own disk: filling that one hurts most.
    """
    home = storage.mount(source)
    fits = [
        mount
        for mount in storage.mounts
        if not is_network(mount) and not mount.read_only and not mount.error and mount.path not in ("/dev/shm", "/boot", "/boot/efi")
        and mount.fstype not in ("tmpfs", "ramfs", "squashfs", "iso9660") and (left(mount) or 0) >= size * SPARE_SHARE
    ]  # fmt: skip
    best = max(
        fits, key=lambda mount: (*_speed(mount, platform), mount.path != "/", left(mount) or 0), default=None
    )
    if best is None:
        return None, t("no local disk has room for {size} MB", size=size >> 20)
    if home is not None and (home is best or (not is_network(home) and _speed(home, platform) >= _speed(best, platform))):  # fmt: skip
        return None, t("{path} lies on {mount} already, and no disk with room is known to be faster", path=source, mount=home.path)  # fmt: skip
    return best, t("{mount} is the fastest disk that has room", mount=best.path)


def _speed(mount: Mount, platform: str) -> tuple[int, float]:
    """Rank a disk by what is known of it: what its platform promises, then what was measured."""
    row = disk_of(platform, mount.path) if platform else None
    promised = {"fast": 2, "varies": 1, "slow": -1}.get(row.speed, 0) if row else 0
    turning = -1 if mount.rotational else 0
    return (-2 if is_network(mount) else promised + turning), mount.read_bytes_per_s or 0.0


def folder_for(snapshot: Snapshot, source: Path, size: int) -> Path:
    """Return the folder to stage into. Raises StageError where no disk is better."""
    platform = snapshot.facts.platform.value
    storage = snapshot.facts.storage.value or Storage()
    mount, why = choose_disk(storage, platform.name if platform else "", str(source), size)
    if mount is None:
        raise StageError(why)
    row = disk_of(platform.name, mount.path) if platform else None
    base = Path(row.path if row and row.path.startswith(mount.path) else mount.path)
    return base / "staged"
