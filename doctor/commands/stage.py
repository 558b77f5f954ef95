"""``doctor stage DATA``: a data set on the fastest disk that has room, and how much faster it is read there."""

from __future__ import annotations

import argparse
import errno
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from doctor.commands import CommandError, Exit
from doctor.language import say

if TYPE_CHECKING:
    from doctor.staging import Staged

SECTIONS = ("platform", "storage")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("data", type=Path, metavar="DATA", help=say("a file or a folder"))
    parser.add_argument("--to", type=Path, metavar="DIR", help=say("where to; without it, the fastest disk with room"))  # fmt: skip


def run(namespace: argparse.Namespace) -> int:
    from doctor import service
    from doctor.stage_copy import StageError
    from runner.text import t

    try:
        staged = service.stage_data(namespace.data, namespace.to, _Progress())
    except StageError as error:
        raise CommandError(error.text) from None
    except OSError as error:
        place = namespace.to if namespace.to and error.errno in (errno.EROFS, errno.ENOSPC) else None
        where, why = str(place or error.filename or namespace.data), error.strerror or str(error)
        raise CommandError(t("{file}: {error}", file=where, error=why)) from None
    _say(staged, namespace.data)
    return Exit.OK


def _say(staged: Staged, data: Path) -> None:
    from doctor.render.layout import human_bytes
    from runner.text import t

    path = Path(staged.target, data.name) if data.is_file() else Path(staged.target)
    if not staged.copied:
        print(say(t("{path} is current: nothing was copied", path=str(path))), file=sys.stderr)
    else:
        size = human_bytes(staged.total_bytes)
        print(say(t("{copied} of {files} files copied and checked, {size} in all", copied=staged.copied, files=staged.files, size=size)), file=sys.stderr)  # fmt: skip
    if staged.speed_before and staged.speed_after:
        before, after = f"{human_bytes(staged.speed_before)}/s", f"{human_bytes(staged.speed_after)}/s"
        print(say(t("read there at {before}, here at {after}", before=before, after=after)), file=sys.stderr)
    print(say(t("for a run: --set data.train={path}", path=str(path))), file=sys.stderr)
    print(path)


class _Progress:
    """One line on a terminal, at most five times a second."""

    def __init__(self) -> None:
        self._shown = 0.0

    def __call__(self, done: int, total: int) -> None:
        from doctor.render.layout import human_bytes

        now = time.monotonic()
        if sys.stderr.isatty() and (now - self._shown > 0.2 or done == total):
            self._shown = now
            end = "\n" if done == total else ""
            print(f"\r{human_bytes(done)} / {human_bytes(total)} ", end=end, file=sys.stderr, flush=True)
