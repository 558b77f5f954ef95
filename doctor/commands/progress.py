"""How far a run is, on stdout: one line that is rewritten on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import time
from typing import TextIO

from doctor.render.layout import columns

LINE_EVERY_S = 10.0
"""Between two progress lines where stdout is no terminal."""


class Progress:
    """Rewrites one line on a terminal; elsewhere adds a line now and then."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        self.width = columns(stream) - 1
        self.unicode = (stream.encoding or "").lower().replace("-", "") == "utf8"
        self._live = stream.isatty()
        self._shown = ""
        self._at = -1e9

    def show(self, line: str, is_last: bool) -> None:
        now = time.monotonic()
        if self._live:
            if line != self._shown or is_last:
                self.stream.write(f"\r{line}\x1b[K" + ("\n" if is_last else ""))
                self.stream.flush()
        elif is_last or now - self._at >= LINE_EVERY_S:
            self._at = now
            print(line, file=self.stream, flush=True)
        self._shown = line
