"""Where a model's configuration is found without a network: a file, a folder, the Hugging Face cache, or our table."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from doctor.tables import load
from runner.strings import printable
from runner.text import Text, t

if TYPE_CHECKING:
    from runner.sections import ModelSection

CONFIG_LIMIT_BYTES = 1 << 20
"""A configuration larger than this is none."""


CONFIG = "config.json"
ADAPTER = "adapter_config.json"
WEIGHTS = (".safetensors", ".bin", ".pt", ".pth", ".ckpt", ".onnx")
NEAREST = 3
TABLE = "doctor/tables/models.toml"
"""The source of a configuration that came from our table."""


class NoConfig(ValueError):  # noqa: N818 - it is what it says
    """The model's configuration was not found or is none. ``text`` says where was looked, and the way out; ``folder`` is that of
    a model whose weights may tell something all the same."""

    def __init__(self, text: Text, folder: Path | None = None) -> None:
        super().__init__(str(text))
        self.text = text
        self.folder = folder


class FoundConfig(NamedTuple):
    """A configuration and where it came from."""

    name: str
    config: dict[str, Any]
    source: str

    @property
    def folder(self) -> Path | None:
        """The folder of the model itself; None: the configuration came from a profile or our table."""
        path = Path(self.source)
        return path.parent if path.name == CONFIG else None


def hub_cache(environ: Mapping[str, str], home: Path) -> Path:
    """Return the folder of downloaded models: HF_HUB_CACHE, else HF_HOME/hub, else ~/.cache/huggingface/hub."""
    if environ.get("HF_HUB_CACHE"):
        return Path(environ["HF_HUB_CACHE"]).expanduser()
    base = environ.get("HF_HOME") or (
        str(Path(environ["XDG_CACHE_HOME"], "huggingface")) if environ.get("XDG_CACHE_HOME") else ""
    )
    return (Path(base).expanduser() if base else home / ".cache" / "huggingface") / "hub"


def cache_of(environ: Mapping[str, str]) -> Path:
    """Return the folder of downloaded models of this session."""
    return hub_cache(environ, Path.home())


def find_config(name: str, cache: Path) -> FoundConfig:
    """Return the configuration that ``name`` means: a config.json, a model's folder, or a name on the hub.

    Raises:
        NoConfig: it is in no cache and in no table, or it is not a model's configuration.
    """
    path = Path(name).expanduser()
    if path.is_dir():
        _refuse_without_config(path)
        path = path / "config.json"
    if path.is_file():
        _refuse_weights(path)
        return FoundConfig(name, read_config(path), str(path))
    for folder in sorted(cache.glob(f"models--{name.replace('/', '--')}/snapshots/*/config.json")):
        return FoundConfig(name, read_config(folder), str(folder))
    known = _table().get(name.lower()) or _table().get(name.lower().rpartition("/")[2])
    if known is not None:
        return FoundConfig(name, dict(known), TABLE)
    near = nearest_models(name)
    if near:
        raise NoConfig(t("the configuration of {name} is neither here nor in the table, where these are near to it: {near}. Fetch it alone with `hf download {name} config.json`, or give the path of a config.json",
                         name=name, near=", ".join(near)))  # fmt: skip
    raise NoConfig(
        t("the configuration of {name} is neither here nor in the table. Fetch it alone with `hf download {name} config.json`, or give the path of a config.json",
          name=name)
    )  # fmt: skip


def _refuse_without_config(folder: Path) -> None:
    """Raise NoConfig for a folder that is no whole model, with what can be told of it."""
    if (folder / "config.json").is_file():
        return
    if (folder / ADAPTER).is_file():
        raise NoConfig(t("{folder} is an adapter without its model: name the model it was made for ({base}), and --lora {rank}",
                         folder=str(folder), **_adapted(folder / ADAPTER)))  # fmt: skip
    if any(folder.glob("*.gguf")):
        raise NoConfig(_is_gguf(folder))
    raise NoConfig(
        t("{folder} has no config.json, and only that tells a model's layers: put its own there.", folder=str(folder)),
        folder,
    )  # fmt: skip


def _adapted(path: Path) -> dict[str, str]:
    try:
        tree = json.loads(path.read_bytes()[:CONFIG_LIMIT_BYTES])
        return {
            "base": printable(str(tree["base_model_name_or_path"])),
            "rank": printable(str(tree.get("r", "?"))),
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {"base": "?", "rank": "?"}


def _refuse_weights(path: Path) -> None:
    """Raise NoConfig for a file of weights in place of a configuration."""
    if path.suffix == ".gguf":
        raise NoConfig(_is_gguf(path))
    if path.suffix in WEIGHTS:
        raise NoConfig(t("{file} holds weights: name the folder that it lies in, with its config.json", file=str(path)))  # fmt: skip


def _is_gguf(path: Path) -> Text:
    return t("{file} is GGUF, made for answering and not for training: name the model that it was made from", file=str(path))  # fmt: skip


def _table() -> dict[str, dict[str, Any]]:
    rows = load("models")["model"]
    return {alias.lower(): row["config"] for row in rows for alias in (row["name"], *row["aliases"])}


def known_models() -> list[str]:
    """Return the names in the table."""
    return [row["name"] for row in load("models")["model"]]


def nearest_models(name: str) -> list[str]:
    """Return the models of the table whose names look most like ``name``; empty: none does."""
    import difflib

    short = {known.rpartition("/")[2].lower(): known for known in known_models()}
    near = difflib.get_close_matches(name.rpartition("/")[2].lower(), short, NEAREST, 0.6)
    return [short[one] for one in near]


def read_config(path: Path) -> dict[str, Any]:
    """Read a config.json.

    Raises:
        NoConfig: it cannot be read, is not JSON, or names no ``model_type``.
    """
    try:
        with path.open("rb") as file:
            tree = json.loads(file.read(CONFIG_LIMIT_BYTES + 1))
    except (OSError, ValueError) as error:
        raise NoConfig(t("{file} cannot be read: {error}", file=str(path), error=str(error))) from None
    if not isinstance(tree, dict) or not isinstance(tree.get("model_type"), str):
        raise NoConfig(t("{file} is not a model's configuration: it has no model_type", file=str(path)))
    return tree


def config_of_profile(model: ModelSection, cache: Path, site_packages: Sequence[Path]) -> FoundConfig:
    """Return the configuration of a profile's model, with what the profile itself changes in it.

    Raises:
        NoConfig: it is not on this machine.
    """
    if model.config:
        if not isinstance(model.config.get("model_type"), str):
            raise NoConfig(t("model.config: model_type is missing (bert, distilbert, gpt2 ...)"))
        config = {"vocab_size": model.vocabulary_size, **model.config}
        return FoundConfig(str(config["model_type"]), config, "model.config")
    if model.package:
        found = _in_packages(model, site_packages)
    else:
        found = find_config(model.hub or model.path, cache)
    if model.dropout is None:
        return found
    changed = {
        key: model.dropout if "drop" in key and isinstance(value, int | float) else value
        for key, value in found.config.items()
    }
    return FoundConfig(found.name, changed, found.source)


def _in_packages(model: ModelSection, site_packages: Sequence[Path]) -> FoundConfig:
    for folder in site_packages:
        path = folder / model.folder / "config.json"
        if path.is_file():
            return FoundConfig(model.package, read_config(path), str(path))
    raise NoConfig(
        t(
            "the package {package} is not installed in the examined environment: pip install {package}",
            package=model.package,
        )
    )
