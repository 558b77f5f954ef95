"""Half of a trace's time would go into importing torch's compiler, which it only asks for its settings: a stand-in has those.

``FakeTensorMode`` reads ``torch._dynamo.config``, and optimizers mark what the compiler is to leave alone. Whoever asks the
stand-in for anything else gets the real package.
"""

import importlib
import importlib.util
import sys
import types
from typing import Any, Callable

NAME = "torch._dynamo"


def _as_it_is(fn: Callable[..., Any]) -> Callable[..., Any]:
    return fn


class WithoutCompiler(types.ModuleType):
    """``torch._dynamo`` whose submodules are the real ones and whose own ``__init__`` has not run.

    Its marks say what the compiler is to do with a function: where nothing is compiled, nothing.
    """

    disable = staticmethod(lambda fn=None, *_, **__: fn or _as_it_is)
    allow_in_graph = staticmethod(_as_it_is)
    assume_constant_result = staticmethod(_as_it_is)
    graph_break = staticmethod(lambda *_, **__: None)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if importlib.util.find_spec(NAME + "." + name) is not None:
            return importlib.import_module(NAME + "." + name)
        return getattr(real_compiler(), name)


def leave_compiler_out() -> None:
    """Put the stand-in where torch will look, unless the real package is there already."""
    if NAME in sys.modules:
        return
    spec = importlib.util.find_spec(NAME)
    if spec is None or not spec.submodule_search_locations:
        return
    package = WithoutCompiler(NAME)
    package.__spec__, package.__path__ = spec, list(spec.submodule_search_locations)
    sys.modules[NAME] = package
    setattr(importlib.import_module("torch"), "_dynamo", package)  # noqa: B010 - mypy knows the real one
    importlib.import_module(NAME + ".config")


def real_compiler() -> Any:
    """Import the real package in place of the stand-in."""
    if isinstance(sys.modules.get(NAME), WithoutCompiler):
        for name in [one for one in sys.modules if one == NAME or one.startswith(NAME + ".")]:
            del sys.modules[name]
    module = importlib.import_module(NAME)
    setattr(importlib.import_module("torch"), "_dynamo", module)  # noqa: B010 - as above
    return module


def leave_other_processes_out() -> None:
    """Have transformers take it that there is no torch.distributed: what shares a model out is a quarter of its imports."""
    utils = importlib.import_module("transformers.utils")
    for module in (utils, importlib.import_module("transformers.utils.import_utils")):
        if hasattr(module, "is_torch_distributed_available"):
            setattr(module, "is_torch_distributed_available", lambda: False)  # noqa: B010 - not ours to declare
