"""Runs ``doctor`` as a person does: another process, a clean home, English, no colour."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path


def doctor(
    *arguments: str,
    cwd: Path | None = None,
    stdin: str | bytes = b"",
    environment: Mapping[str, str] | None = None,
    timeout_s: float = 60,
) -> subprocess.CompletedProcess[str]:
    """Run ``doctor`` with ``arguments`` and return what it printed; the developer's own settings stay out."""
    with tempfile.TemporaryDirectory() as home:
        kept = {
            name: os.environ[name]
            for name in ("PATH", "VIRTUAL_ENV", "LD_LIBRARY_PATH")
            if name in os.environ
        }
        values = {
            **kept,
            "HOME": home,
            "DOCTOR_LANG": "en",
            "NO_COLOR": "1",
            "LANG": "C.UTF-8",
            **(environment or {}),
        }
        done = subprocess.run(
            [
                sys.executable,
                "-c",
                "import sys; from doctor.commands import main; sys.exit(main())",
                *arguments,
            ],
            cwd=cwd or home,
            input=stdin if isinstance(stdin, bytes) else stdin.encode(),
            capture_output=True,
            env=values,
            timeout=timeout_s,
            check=False,
        )
    return subprocess.CompletedProcess(
        done.args,
        done.returncode,
        done.stdout.decode("utf-8", "replace"),
        done.stderr.decode("utf-8", "replace"),
    )
