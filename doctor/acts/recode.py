"""Write a text file anew as UTF-8; the original keeps its bytes under another name. Streamed: the file may be large."""

from __future__ import annotations

import codecs
import hashlib
import os
import stat
from pathlib import Path

from doctor.acts import Act, Keeper, Kept, Refused, path_of
from doctor.model import RecodeFile, t
from doctor.state_dir import sync_folder

_CHUNK_BYTES = 4 << 20


def file_sha256(path: Path) -> str:
    """Return the hash of a file of any size. Raises OSError."""
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()


class RecodeFileAct(Act[RecodeFile]):
    def look(self, step: RecodeFile, keeper: Keeper) -> Kept:
        path, kept = path_of(step.path), path_of(step.kept)
        info = path.lstat()
        if not stat.S_ISREG(info.st_mode):
            raise Refused(t("{file} is a link or no file: name the file itself", file=step.path))
        if os.path.lexists(kept):
            raise Refused(
                t("{file} is there already: the original cannot be kept under that name", file=step.kept)
            )
        return {"sha256": file_sha256(path), "size": info.st_size, "mode": stat.S_IMODE(info.st_mode)}

    def do(self, step: RecodeFile, before: Kept, keeper: Keeper) -> Kept:
        path, kept, part = path_of(step.path), path_of(step.kept), self._part(step, keeper)
        read, written = self._write(path, part, step.encoding)
        if read != before["sha256"]:
            part.unlink()
            raise Refused(t("{file} was changed meanwhile; nothing was done to it", file=str(path)))
        os.chmod(part, int(before["mode"] or 0o644))  # noqa: PTH101
        try:
            os.link(path, kept)  # the very same file under a second name, before the first one is replaced
        except OSError:  # a file system without hard links
            os.rename(path, kept)  # noqa: PTH104
        os.replace(part, path)  # noqa: PTH105
        sync_folder(path.parent)
        return {"sha256": written}

    def _write(self, path: Path, part: Path, encoding: str) -> tuple[str, str]:
        """Recode into ``part``; return the hashes of what was read and of what was written."""
        decoder = codecs.getincrementaldecoder(encoding)("strict")
        read, written, done = hashlib.sha256(), hashlib.sha256(), 0
        try:
            with open(path, "rb") as source, open(part, "wb") as target:
                while chunk := source.read(_CHUNK_BYTES):
                    read.update(chunk)
                    content = decoder.decode(chunk).encode("utf-8")
                    written.update(content)
                    target.write(content)
                    done += len(chunk)
                content = decoder.decode(b"", final=True).encode("utf-8")
                written.update(content)
                target.write(content)
                target.flush()
                os.fsync(target.fileno())
        except (UnicodeError, OSError) as error:
            part.unlink(missing_ok=True)
            if isinstance(error, OSError):
                raise
            raise Refused(
                t("{file} is not {encoding} throughout (after byte {place}); it was left as it is", file=str(path), encoding=encoding, place=done)
            ) from None  # fmt: skip
        return read.hexdigest(), written.hexdigest()

    def undo(self, step: RecodeFile, before: Kept, after: Kept | None, keeper: Keeper) -> None:
        path, kept = path_of(step.path), path_of(step.kept)
        self._part(step, keeper).unlink(missing_ok=True)
        if not kept.exists():
            if after is not None and not (path.exists() and file_sha256(path) == before["sha256"]):
                raise Refused(t("the kept original {file} is gone; nothing was changed", file=str(kept)))
            return
        if path.exists() and path.samefile(kept):
            kept.unlink()
            return
        if file_sha256(kept) != before["sha256"]:
            raise Refused(t("the kept original {file} was changed since; nothing was done", file=str(kept)))
        if after is not None and path.exists() and file_sha256(path) != after["sha256"]:
            raise Refused(t("{file} was changed since, and is left as it is. What stood there before: {kept}", file=str(path), kept=str(kept)))  # fmt: skip
        os.replace(kept, path)  # noqa: PTH105
        sync_folder(path.parent)

    def preview(self, step: RecodeFile) -> list[str]:
        return [
            f"{step.path} ({step.encoding}) -> {step.kept}",
            f"open({step.path!r}, 'w', encoding='utf-8').write(open({step.kept!r}, encoding={step.encoding!r}).read())",
        ]

    @staticmethod
    def _part(step: RecodeFile, keeper: Keeper) -> Path:
        path = path_of(step.path)
        return path.with_name(f".{path.name}.doctor-{keeper.entry_id}.part")
