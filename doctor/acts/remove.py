"""Take a file or folder away: put aside beside its place (it can come back), or delete a cache that fills itself again."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from doctor.acts import Act, Keeper, Kept, Refused, path_of
from doctor.acts.tree import copy, remove, total_bytes, walk
from doctor.model import RemovePath, Text, t
from doctor.state_dir import sync_folder

ASIDE = ".rundoctor-kept"
"""The folder beside what was taken away: on the same disk, so that moving there is one step."""


class RemovePathAct(Act[RemovePath]):
    def look(self, step: RemovePath, keeper: Keeper) -> Kept:
        path = path_of(step.path)
        if not os.path.lexists(path):
            return {"kind": "absent"}
        if str(path) in ("/", os.path.expanduser("~")) or path.is_mount():  # noqa: PTH111
            raise Refused(t("{path} is never deleted", path=step.path))
        return {"kind": "there", "size": total_bytes(list(walk(path))), "aside": keeper.new_name()}

    def do(self, step: RemovePath, before: Kept, keeper: Keeper) -> Kept:
        path = path_of(step.path)
        if before["kind"] == "absent":
            return {"kind": "absent"}
        if step.keep:
            self._put_aside(path, self._aside(step, before))
        else:
            going = self._going(step, keeper)
            os.rename(path, going)  # noqa: PTH104 - from here on it is gone for everyone who looks
            sync_folder(path.parent)
            remove(going)
        sync_folder(path.parent)
        return {"kind": "absent"}

    def _put_aside(self, path: Path, aside: Path) -> None:
        aside.parent.mkdir(parents=True, exist_ok=True)
        try:
            os.rename(path, aside)  # noqa: PTH104
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
            # A folder of an image's lower layer cannot be renamed: copied there, then taken away.
            part = aside.with_name(f"{aside.name}.part")
            remove(part)
            copy(path, part)
            os.rename(part, aside)  # noqa: PTH104
            remove(path)

    def undo(self, step: RemovePath, before: Kept, after: Kept | None, keeper: Keeper) -> None:
        path, aside = Path(step.path), self._aside(step, before)
        if before["kind"] == "absent":
            return
        if not step.keep:
            remove(self._going(step, keeper))  # cut off: what is left of it is of no use any more
            return
        remove(aside.with_name(f"{aside.name}.part"))
        if not os.path.lexists(aside):
            if os.path.lexists(path):
                self._remove_empty(aside)
                return
            raise Refused(t("what was taken away ({path}) is gone since", path=str(aside)))
        if os.path.lexists(path) and after is not None:
            raise Refused(t("there is something at {path} again; nothing was done. What was there before: {kept}", path=step.path, kept=str(aside)))  # fmt: skip
        remove(path)  # cut off while it was being taken away after it had been copied whole
        os.rename(aside, path)  # noqa: PTH104
        self._remove_empty(aside)
        sync_folder(path.parent)

    def forget(self, step: RemovePath, before: Kept, keeper: Keeper) -> None:
        aside = self._aside(step, before)
        remove(aside)
        self._remove_empty(aside)

    @staticmethod
    def _remove_empty(aside: Path) -> None:
        for folder in (aside.parent, aside.parent.parent):
            if folder.is_dir() and not any(folder.iterdir()):
                folder.rmdir()

    def cannot_undo(self, step: RemovePath) -> Text | None:
        return None if step.keep else t("a cache is not put back: it fills itself again when it is used")

    def preview(self, step: RemovePath) -> list[str]:
        if step.keep:
            return [f"mv {step.path} {Path(step.path).parent / ASIDE}/"]
        return [f"rm -r {step.path}"]

    @staticmethod
    def _aside(step: RemovePath, before: Kept) -> Path:
        path = path_of(step.path)
        return path.parent / ASIDE / str(before.get("aside")) / path.name

    @staticmethod
    def _going(step: RemovePath, keeper: Keeper) -> Path:
        path = path_of(step.path)
        return path.with_name(f".{path.name}.doctor-{keeper.entry_id}.gone")
