"""The command that runs a module of this very doctor, whatever lies in the folder it is started from."""

from __future__ import annotations

import sys
from pathlib import Path

import doctor

# sys.path[0] is the working directory's: nobody's doctor.py or runner.py is to be found before ours.
_BOOT = """
import sys
home, module = sys.argv.pop(1), sys.argv.pop(1)
sys.path[:] = [*([home] if home else []), *(entry for entry in sys.path if entry)]
import importlib
sys.exit(importlib.import_module(module).main(sys.argv[1:]))
"""


def own_argv(module: str, *arguments: str) -> list[str]:
    """Return what starts ``module.main(arguments)`` with our interpreter, installed or in a checkout."""
    home = Path(doctor.__file__).parent.parent
    installed = home.name in ("site-packages", "dist-packages")
    return [sys.executable, "-c", _BOOT, "" if installed else str(home), module, *arguments]
