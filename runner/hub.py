"""What is asked of the hub: rows of a data set, whole or streamed; and what its failures mean, with the way out."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from runner.inputs import InputError
from runner.profile import DataSection
from runner.rows import Row, record_row
from runner.text import Text, t

ENDPOINT = "https://huggingface.co"
# Couldn't reach 'a/b' on the Hub (OfflineModeIsEnabled)        outgoing traffic has been disabled
_OFFLINE = ("offlinemodeisenabled", "outgoing traffic has been disabled", "offline mode is enabled")
# We couldn't connect to 'https://huggingface.co' to load the files    Couldn't reach 'a/b' on the Hub (LocalEntryNotFoundError)
# [Errno -2] Name or service not known    Connection refused    Read timed out.    Network is unreachable
_UNREACHABLE = ("couldn't connect", "couldn't reach", "name or service not known", "connection refused", "timed out",
                "network is unreachable", "connection aborted", "max retries exceeded", "cannot send a request")  # fmt: skip


def hub_problem(key: str, name: str, error: BaseException) -> Text:
    """Return what went wrong with ``name`` (a model or data set that profile key ``key`` names) and what to do.

    Offline by a variable, the hub not reached (which endpoint), or an answer that says no: told apart by what the
    libraries say.
    """
    words = str(error).lower()
    first = str(error).partition("\n")[0][:300]
    variable = offline_variable()
    if variable and any(text in words for text in (*_OFFLINE, *_UNREACHABLE)):
        return t("{key}: {name} is not in this machine's cache, and {variable} forbids asking the hub; unset it, or bring "
                 "the files over and name their folder", key=key, name=name, variable=variable)  # fmt: skip
    if any(text in words for text in _UNREACHABLE):
        return t("{key}: {name} could not be fetched: {endpoint} was not reached ({why}). Set HF_ENDPOINT to a mirror "
                 "(https://hf-mirror.com) or a proxy, or bring the files over and name their folder",
                 key=key, name=name, endpoint=os.environ.get("HF_ENDPOINT", ENDPOINT), why=first)  # fmt: skip
    return t("{key}: {name} could not be opened: {why}", key=key, name=name, why=first)


def offline_variable() -> str:
    """Return the variable that forbids the network, as ``NAME=1``; empty: none does."""
    names = ("HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE", "TRANSFORMERS_OFFLINE")
    return next((f"{name}={os.environ[name]}" for name in names if _is_on(os.environ.get(name))), "")


def _is_on(value: str | None) -> bool:
    return (value or "").strip().upper() in ("1", "ON", "YES", "TRUE")


def hub_rows(data: DataSection, part: str) -> Iterator[Row]:
    """Yield the rows of a split of a data set on the hub, or in a local folder that ``load_dataset`` opens.

    Raises:
        InputError: not reached, not there, or without that split; or broken off while it was streamed.
    """
    split = data.train_split if part == "train" else data.eval_split
    try:
        loaded = _opened(data, split)
        names = _class_names(loaded, data.label)
        for record in loaded:
            yield record_row(_with_names(record, data.label, names), data)
    except (OSError, ValueError, RuntimeError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(hub_problem("data.hub", data.hub, error)) from error


def _opened(data: DataSection, split: str) -> Any:
    import datasets

    return datasets.load_dataset(data.hub, data.hub_config or None, split=split, streaming=data.stream)


def _class_names(loaded: Any, label: str) -> list[str] | None:
    """Return the names of the classes where the data set knows them; its rows then hold their numbers."""
    feature = (loaded.features or {}).get(label)
    return getattr(getattr(feature, "feature", feature), "names", None)


def _with_names(record: dict[str, Any], label: str, names: list[str] | None) -> dict[str, Any]:
    value = record.get(label)
    if names and isinstance(value, int) and value >= 0:
        return {**record, label: names[value]}
    if names and isinstance(value, list):
        return {**record, label: [names[item] for item in value]}
    return record
