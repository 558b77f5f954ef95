"""Where libraries keep what they download and build: the variable, else the library's own default. Pure.

Defaults as in the sources of huggingface_hub, datasets, torch.hub, torch._inductor, triton, wandb, pip and uv.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

import msgspec


class Wanted(msgspec.Struct, frozen=True):
    """A folder that matters, before anybody has looked whether it is there."""

    name: str
    path: str
    set_by: str = ""


def places(
    environ: Mapping[str, str], home: str, cwd: str, user: str, transformers_major: int | None
) -> tuple[Wanted, ...]:
    """Return every place by its name.

    ``transformers_major`` decides whether TRANSFORMERS_CACHE is read (up to 4; None: not known, left out).
    """
    chosen = _Chooser(environ, home, cwd)
    temporary = chosen.first(("TMPDIR", "TEMP", "TMP"), "/tmp", "tmp")
    hub_root = chosen.first(("HF_HOME",), chosen.cache("huggingface"), "hf_home")
    found = [
        Wanted("home", home, "HOME" if environ.get("HOME") else ""),
        Wanted("cwd", cwd),
        temporary,
        hub_root,
        chosen.first(
            ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"), chosen.below(hub_root, "hub"), "hf_hub_cache"
        ),
        chosen.first(("HF_DATASETS_CACHE",), chosen.below(hub_root, "datasets"), "hf_datasets_cache"),
        chosen.first(("HF_XET_CACHE",), chosen.below(hub_root, "xet"), "hf_xet_cache"),
        chosen.first(("TORCH_HOME",), chosen.cache("torch"), "torch_home"),
        chosen.first(("PIP_CACHE_DIR",), chosen.cache("pip"), "pip_cache"),
        chosen.first(("UV_CACHE_DIR",), chosen.cache("uv"), "uv_cache"),
        chosen.first(("MODELSCOPE_CACHE",), chosen.in_home(".cache/modelscope"), "modelscope_cache"),
        chosen.first(("TRITON_CACHE_DIR",), chosen.triton(), "triton_cache"),
        chosen.first(("TORCHINDUCTOR_CACHE_DIR",), _inductor(temporary, user), "torchinductor_cache"),
        chosen.first(("CUDA_CACHE_PATH",), chosen.in_home(".nv/ComputeCache"), "cuda_cache"),
        chosen.below(chosen.first(("WANDB_DIR",), cwd, "wandb_dir"), "wandb"),
        chosen.first(("WANDB_CACHE_DIR",), chosen.cache("wandb"), "wandb_cache"),
    ]
    if environ.get("TRANSFORMERS_CACHE") and transformers_major is not None and transformers_major < 5:
        found.append(chosen.first(("TRANSFORMERS_CACHE",), "", "transformers_cache"))
    return tuple(found)


def _inductor(temporary: Wanted, user: str) -> Wanted:
    name = re.sub(r'[\\/:*?"<>|]', "_", user)
    return Wanted("", f"{temporary.path.rstrip('/')}/torchinductor_{name}", temporary.set_by)


class _Chooser(msgspec.Struct, frozen=True):
    environ: Mapping[str, str]
    home: str
    cwd: str

    def first(self, variables: tuple[str, ...], default: str | Wanted, name: str) -> Wanted:
        """Return the first variable that is set, else the default (with the variable that set the default)."""
        for variable in variables:
            if self.environ.get(variable):
                return Wanted(name, self.absolute(self.environ[variable]), variable)
        base = default if isinstance(default, Wanted) else Wanted(name, default)
        return Wanted(name, self.absolute(base.path), base.set_by)

    def cache(self, folder: str) -> Wanted:
        if self.environ.get("XDG_CACHE_HOME"):
            return Wanted("", f"{self.environ['XDG_CACHE_HOME'].rstrip('/')}/{folder}", "XDG_CACHE_HOME")
        return self.in_home(f".cache/{folder}")

    def triton(self) -> Wanted:
        if self.environ.get("TRITON_HOME"):
            return Wanted("", f"{self.environ['TRITON_HOME'].rstrip('/')}/.triton/cache", "TRITON_HOME")
        return self.in_home(".triton/cache")

    def in_home(self, folder: str) -> Wanted:
        return Wanted("", f"{self.home.rstrip('/')}/{folder}")

    def below(self, place: Wanted, folder: str) -> Wanted:
        return Wanted(place.name, f"{place.path.rstrip('/')}/{folder}", place.set_by)

    def absolute(self, path: str) -> str:
        """Expand ``~`` and ``$NAME`` as the libraries do; a relative path is one of the working directory."""
        if path == "~" or path.startswith("~/"):
            path = self.home.rstrip("/") + path[1:]
        path = re.sub(
            r"\$(?:\{(\w+)\}|(\w+))", lambda match: self.environ.get(match[1] or match[2], match[0]), path
        )
        return os.path.normpath(path if path.startswith("/") else f"{self.cwd}/{path}")
