"""Lines of ours on stderr beside a command's own output on stdout, in the order in which they were said."""

from __future__ import annotations

import sys


def tell(*lines: str) -> None:
    sys.stdout.flush()
    for line in lines:
        print(line, file=sys.stderr, flush=True)
