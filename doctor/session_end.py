"""The end of a child that has a session of its own: with it ends all that it started."""

from __future__ import annotations

import os
import signal
import subprocess
from contextlib import suppress
from typing import Any


def end_session(child: subprocess.Popen[Any]) -> None:
    """Kill the child's process group, and wait for the child; it was started with ``start_new_session``."""
    with suppress(ProcessLookupError):  # it ended by itself meanwhile
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()
