"""A module of the runner's by its path: a child runs in an examined interpreter, which has no runner to import from."""

import functools
import importlib.util
from typing import Any


@functools.cache
def load_by_path(path: str) -> Any:
    """Return the module, loaded once. It must import nothing of the runner itself."""
    spec = importlib.util.spec_from_file_location("doctor_alone", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
