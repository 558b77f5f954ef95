"""A trained model to a hub repository: what it is there before, what its files tell of this machine, and the sending."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from doctor.launch import LaunchError
from doctor.model_source import Source
from doctor.model_work import interpreter_for, work
from runner.deploy.uploading import Standing
from runner.text import t

_READ_UP_TO_BYTES = 1 << 20
_TEXTS = (".json", ".md", ".txt", ".yaml", ".yml", ".toml", ".py", ".jinja")
# hf_AbCd...34 letters
_TOKEN = re.compile(r"\bhf_[A-Za-z0-9]{30,}\b")
# "/root/autodl-tmp/base"   /home/me/models
_LOCAL_PATH = re.compile(r"(?<![\w.:/])/(?:root|home|Users|mnt|data|workspace|autodl-\w+|scratch)/[\w./+-]+")


def secrets_in(files: Mapping[str, Path]) -> list[str]:
    """Return the names of files that hold a hub token: they must not leave this machine."""
    return [name for name, text in _texts(files) if _TOKEN.search(text)]


def paths_in(files: Mapping[str, Path]) -> dict[str, str]:
    """Return the files that name a folder of this machine, each with the first that it names."""
    found = ((name, _LOCAL_PATH.search(text)) for name, text in _texts(files))
    return {name: match[0] for name, match in found if match}


def _texts(files: Mapping[str, Path]) -> Iterator[tuple[str, str]]:
    for name, path in files.items():
        if path.suffix in _TEXTS and path.stat().st_size <= _READ_UP_TO_BYTES:
            yield name, path.read_text("utf-8", "replace")


def look_at_repository(
    source: Source, repository: str, files: Mapping[str, Path], python: str | None
) -> Standing:
    """Return what a repository is now. Raises LaunchError: no login, or the hub cannot be reached."""
    for line in work("look", _request(repository, files), interpreter_for(source, python), offline=False):
        if "standing" in line:
            return msgspec.convert(line["standing"], Standing)
    raise LaunchError(t("the hub was asked without a result"))


def upload_model(
    source: Source, repository: str, files: Mapping[str, Path], public: bool, python: str | None
) -> str:
    """Send files to a hub repository, made private where it is new; return its address.

    The login is huggingface_hub's own: HF_TOKEN, or what ``hf auth login`` stored.

    Raises:
        LaunchError: a file holds a token, the hub refuses, or cannot be reached.
    """
    if secret := secrets_in(files):
        raise LaunchError(t("{names} holds a hub token: nothing is sent. Take it out, and withdraw it on the hub", names=", ".join(secret)))  # fmt: skip
    request = {**_request(repository, files), "public": public}
    for line in work("upload", request, interpreter_for(source, python), offline=False):
        if "uploaded" in line:
            return str(line["uploaded"])
    raise LaunchError(t("the upload ended without a result"))


def _request(repository: str, files: Mapping[str, Path]) -> dict[str, Any]:
    return {"repository": repository, "files": {name: str(path) for name, path in files.items()}}
