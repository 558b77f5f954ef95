"""How fast the files at a path are read from their disk, not from memory. Started by path in a child: a mount may hang.

One JSON argument ``{"path": ..., "limit_bytes": ..., "limit_s": ...}``, one JSON line out. Runs on Python 3.6.
"""

import json
import mmap
import os
import stat
import sys
import time
from typing import Any, Dict, Iterator, Tuple

CHUNK_BYTES = 4 << 20
MOST_NAMES = 20000


def files_below(path: str) -> Iterator[str]:
    """Yield the regular files at or below ``path``; links to folders are not followed, so that no loop is walked."""
    if not os.path.isdir(path):
        yield path
        return
    seen = 0
    for folder, _, names in os.walk(path):
        for name in names:
            seen += 1
            if seen > MOST_NAMES:
                return
            yield os.path.join(folder, name)


def open_cold(path: str) -> Tuple[int, bool]:
    """Open a regular file past the page cache where its file system allows; return it, and whether it does.

    Raises:
        OSError: it cannot be opened, or is no regular file.
    """
    if not stat.S_ISREG(os.stat(path).st_mode):
        raise OSError("no regular file: " + path)
    try:
        return os.open(path, os.O_RDONLY | os.O_DIRECT), True
    except OSError:
        descriptor = os.open(path, os.O_RDONLY)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        return descriptor, False


def measure(path: str, limit_bytes: int, limit_s: float) -> Dict[str, Any]:
    """Read up to ``limit_bytes`` within ``limit_s`` seconds; opening the files is part of the time.

    Raises:
        OSError: the first file cannot be read.
    """
    page_aligned = mmap.mmap(-1, CHUNK_BYTES)
    total, files, cold, refused = 0, 0, True, ""
    begun = time.perf_counter()
    for name in files_below(path):
        if total >= limit_bytes or time.perf_counter() - begun >= limit_s:
            break
        try:
            descriptor, direct = open_cold(name)
        except OSError as error:
            refused = refused or str(error)
            continue
        try:
            while total < limit_bytes and time.perf_counter() - begun < limit_s:
                count = os.readv(descriptor, [page_aligned])
                total += count
                if count < CHUNK_BYTES:
                    break
        finally:
            os.close(descriptor)
        files, cold = files + 1, cold and direct
    if not files and refused:
        raise OSError(refused)
    return {
        "bytes": total,
        "files": files,
        "seconds": round(time.perf_counter() - begun, 4),
        "past_cache": cold,
    }


def main() -> None:
    request = json.loads(sys.argv[1])
    try:
        answer = measure(request["path"], request["limit_bytes"], request["limit_s"])
    except OSError as error:
        answer = {"error": str(error)}
    print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
