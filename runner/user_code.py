"""A function of the user's own, named as ``module:function``; looked for beside the installed packages and in
the working directory, which is on the path only while it is imported."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from runner.inputs import InputError
from runner.text import t


def import_function(key: str, name: str) -> Callable[..., Any]:
    """Return the function that the profile's ``key`` names.

    Raises:
        InputError: no such module or function, or it fails while it is imported.
    """
    module_name, _, function_name = name.partition(":")
    here = str(Path.cwd())
    sys.path.append(here)
    try:
        found = getattr(importlib.import_module(module_name), function_name, None)
    except Exception as error:  # whatever the user's module does while it is imported
        why = f"{type(error).__name__}: {error}"
        raise InputError(t("{key}: {name} cannot be imported: {why}", key=key, name=name, why=why)) from error
    finally:
        sys.path.remove(here)
    if not callable(found):
        raise InputError(t("{key}: there is no function {name} (looked for from {folder})",
                           key=key, name=name, folder=here))  # fmt: skip
    return found  # type: ignore[no-any-return]
