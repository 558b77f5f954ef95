"""Move a folder or file to another disk: copy, verify, rename, link back. The original goes last.

What lies on disk tells how far it came, so that any cut can be gone back from::

    TARGET.doctor-ID.part   the copy, not yet whole
    SOURCE.doctor-ID.old    the original, its name given to the link; it still counts
    SOURCE.doctor-ID.gone   the original, being deleted: TARGET counts
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from doctor.acts import Act, Keeper, Kept, Refused, path_of
from doctor.acts.tree import copy, differences, missing_folders, remove, remove_empty, total_bytes, walk
from doctor.model import MovePath, t
from doctor.state_dir import sync_folder

_SPARE_BYTES = 256 << 20


class _Names:
    """The names that one move uses."""

    def __init__(self, step: MovePath, entry_id: str) -> None:
        self.source, self.target = path_of(step.source), path_of(step.target)
        self.part = self.target.with_name(f"{self.target.name}.doctor-{entry_id}.part")
        self.old = self.source.with_name(f"{self.source.name}.doctor-{entry_id}.old")
        self.gone = self.source.with_name(f"{self.source.name}.doctor-{entry_id}.gone")
        self.back = self.source.with_name(f"{self.source.name}.doctor-{entry_id}.back")

    def is_linked(self) -> bool:
        return self.source.is_symlink() and os.readlink(self.source) == str(self.target)  # noqa: PTH115


class MovePathAct(Act[MovePath]):
    def look(self, step: MovePath, keeper: Keeper) -> Kept:
        names = _Names(step, keeper.entry_id)
        if not names.source.exists():
            return {"kind": "absent", "made_folders": missing_folders(names.target)}
        if names.source.is_symlink():
            raise Refused(t("{path} is a link already, to {target}: nothing was moved", path=step.source, target=os.path.realpath(step.source)))  # fmt: skip
        if names.target.exists() and (not names.target.is_dir() or any(names.target.iterdir())):
            raise Refused(t("there is something at {path} already: nothing was moved", path=step.target))
        if str(names.target).startswith(f"{names.source}/"):
            raise Refused(t("{path} lies inside of what would be moved", path=step.target))
        users = open_below(names.source)
        if users:
            raise Refused(t("process {pid} has files open below {path}: end it first, then try again", pid=users[0], path=step.source))  # fmt: skip
        size = total_bytes(list(walk(names.source)))
        before: Kept = {
            "kind": "there",
            "size": size,
            "made_target": int(not names.target.exists()),
            "made_folders": missing_folders(names.target),
        }
        self._has_room(names, size)
        return before

    def _has_room(self, names: _Names, size: int) -> None:
        above = next(folder for folder in names.target.parents if folder.exists())
        if above.stat().st_dev != names.source.lstat().st_dev:
            room(above, size)

    def do(self, step: MovePath, before: Kept, keeper: Keeper) -> Kept:
        names = _Names(step, keeper.entry_id)
        names.target.parent.mkdir(parents=True, exist_ok=True)
        if before["kind"] == "absent":
            return {"kind": "absent"}
        items = copy(names.source, names.part)
        wrong = differences(names.source, items, names.part)
        if wrong:
            raise Refused(t("the copy differs from the original at {path} (is something writing there?): nothing was moved", path=wrong))  # fmt: skip
        if names.target.is_dir() and not names.target.is_symlink():
            names.target.rmdir()
        os.rename(names.part, names.target)  # noqa: PTH104
        sync_folder(names.target.parent)
        self._hand_over(step, names)
        return {"kind": "moved", "size": total_bytes(items)}

    def _hand_over(self, step: MovePath, names: _Names) -> None:
        os.rename(names.source, names.old)  # noqa: PTH104
        if step.leave_link:
            os.symlink(names.target, names.source)  # noqa: PTH211
        sync_folder(names.source.parent)
        os.rename(names.old, names.gone)  # noqa: PTH104
        sync_folder(names.source.parent)
        remove(names.gone)

    def undo(self, step: MovePath, before: Kept, after: Kept | None, keeper: Keeper) -> None:
        names = _Names(step, keeper.entry_id)
        if before["kind"] == "absent":
            remove_empty(str(before["made_folders"] or ""))
            return
        if names.old.exists() or (names.source.exists() and not names.source.is_symlink()):
            self._cut_off_early(names, before, after)
            return
        if not names.target.exists():
            raise Refused(t("{path} is gone since; nothing can be moved back", path=step.target))
        if names.source.is_symlink() and not names.is_linked():
            raise Refused(
                t("{path} was changed since (it is another link now); nothing was done", path=step.source)
            )
        users = open_below(names.target)
        if users:
            raise Refused(t("process {pid} has files open below {path}: end it first, then try again", pid=users[0], path=step.target))  # fmt: skip
        self._move_back(names, before)

    def _cut_off_early(self, names: _Names, before: Kept, after: Kept | None) -> None:
        """The original is still whole: give it its name back, and drop the copy."""
        if after is not None and not names.old.exists() and not self._is_moved_back(names):
            raise Refused(t("{path} was made anew since; nothing was done", path=str(names.source)))
        if names.old.exists():
            if names.source.is_symlink():
                names.source.unlink()
            os.rename(names.old, names.source)  # noqa: PTH104
            sync_folder(names.source.parent)
        remove(names.part)
        if not self._is_moved_back(names):
            raise Refused(t("{path} holds what {source} does not: both were left as they are", path=str(names.target), source=str(names.source)))  # fmt: skip
        remove(names.gone)
        remove(names.target)
        self._clear_away(names, before)

    def _clear_away(self, names: _Names, before: Kept) -> None:
        """Leave the other disk as it was: with its empty folder, or without the folders that were made."""
        if not before["made_target"]:
            names.target.mkdir(exist_ok=True)
        remove_empty(str(before["made_folders"] or ""))

    def _is_moved_back(self, names: _Names) -> bool:
        """Whether all that is left at the target is at the source too: nothing is lost with it."""
        here = {(item.path, item.kind, item.size) for item in walk(names.source)}
        if not names.target.exists():
            return True
        return {(item.path, item.kind, item.size) for item in walk(names.target)} <= here

    def _move_back(self, names: _Names, before: Kept) -> None:
        remove(names.gone)
        size = total_bytes(list(walk(names.target)))
        if names.target.stat().st_dev != names.source.parent.stat().st_dev:
            room(names.source.parent, size)
        items = copy(names.target, names.back)
        wrong = differences(names.target, items, names.back)
        if wrong:
            raise Refused(t("the copy differs from the original at {path} (is something writing there?): nothing was moved", path=wrong))  # fmt: skip
        if names.source.is_symlink():
            names.source.unlink()
        os.rename(names.back, names.source)  # noqa: PTH104
        sync_folder(names.source.parent)
        remove(names.target)
        self._clear_away(names, before)

    def preview(self, step: MovePath) -> list[str]:
        lines = [f"cp -a {step.source} {step.target}", "sha256sum -c (every file)", f"rm -r {step.source}"]
        return [*lines, f"ln -s {step.target} {step.source}"] if step.leave_link else lines


def room(folder: Path, size: int) -> None:
    """Raises Refused where fewer than ``size`` bytes are free for this user below ``folder``."""
    free = shutil.disk_usage(folder).free
    if free < size + _SPARE_BYTES:
        raise Refused(
            t("{folder} has {free} MB free, {needed} MB are needed: nothing was done", folder=str(folder), free=free >> 20, needed=(size + _SPARE_BYTES) >> 20)
        )  # fmt: skip


def open_below(folder: Path) -> list[int]:
    """Return the processes that hold a file below ``folder`` open, of those whose files we may list."""
    prefix, found = f"{os.path.realpath(folder)}/", []
    for name in os.listdir("/proc"):  # noqa: PTH208
        if not name.isdigit():
            continue
        try:
            links = os.listdir(f"/proc/{name}/fd")  # noqa: PTH208
        except OSError:  # it ended, or is another user's
            continue
        if any(_link(f"/proc/{name}/fd/{fd}").startswith(prefix) for fd in links):
            found.append(int(name))
    return found


def _link(path: str) -> str:
    try:
        return os.readlink(path)  # noqa: PTH115
    except OSError:  # closed meanwhile
        return ""
