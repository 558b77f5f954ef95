"""The finished files to a hub repository, by huggingface_hub with its own login."""

from __future__ import annotations

from typing import Any

import msgspec

from runner.hub import ENDPOINT, offline_variable
from runner.inputs import InputError
from runner.text import t


class Request(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    repository: str
    """``user/name``"""
    files: dict[str, str] = {}
    """Name there -> path here."""
    public: bool = False


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """What a repository is before anything is sent."""

    address: str
    """The hub's: it gets the token and the files."""
    user: str
    """Whose token it is."""
    exists: bool = False
    public: bool = False
    replaced: list[str] = []
    """Files of these names that it has already."""


def look(request: Request) -> Standing:
    """Ask the hub who is logged in and what the repository holds; nothing is sent.

    Raises:
        InputError: no login, or the hub cannot be reached.
    """
    from huggingface_hub.errors import RepositoryNotFoundError

    hub = _hub()
    try:
        user = str(hub.whoami()["name"])
        try:
            found = hub.model_info(request.repository)
        except RepositoryNotFoundError:
            return Standing(address=hub.endpoint, user=user)
    except Exception as error:  # which HTTP library raises depends on the hub's version
        raise _refused(hub, error) from error
    there = {one.rfilename for one in found.siblings or []}
    return Standing(
        address=hub.endpoint, user=user, exists=True, public=not found.private,
        replaced=sorted(there & request.files.keys()),
    )  # fmt: skip


def upload(request: Request) -> str:
    """Send all files in one commit and return the repository's address. Broken off, the repository is as it was.

    Raises:
        InputError: no login, no permission, or the hub cannot be reached.
    """
    import huggingface_hub

    hub = _hub()
    try:
        made = hub.create_repo(request.repository, private=not request.public, exist_ok=True)
        added = [
            huggingface_hub.CommitOperationAdd(path_in_repo=name, path_or_fileobj=path)
            for name, path in request.files.items()
        ]
        hub.create_commit(made.repo_id, added, commit_message="Model, card and metrics by rundoctor")
    except Exception as error:  # which HTTP library raises depends on the hub's version
        raise _refused(hub, error) from error
    return str(made)


def _hub() -> Any:
    """Raises InputError where a variable forbids the network."""
    import huggingface_hub

    if variable := offline_variable():
        raise InputError(t("{variable} forbids asking the hub; unset it", variable=variable))
    return huggingface_hub.HfApi()


def _refused(hub: Any, error: Exception) -> InputError:
    from huggingface_hub.errors import LocalTokenNotFoundError

    if isinstance(error, LocalTokenNotFoundError):
        return InputError(t("no login for the hub: set HF_TOKEN, or run {command}", command="hf auth login"))
    why = " ".join(str(error).split())[:400]
    if hub.endpoint != ENDPOINT:
        return InputError(t("the hub at {address}, which HF_ENDPOINT names, did not take it: {why}. Mirrors take no uploads: HF_ENDPOINT={hub} sends it there",
                            address=hub.endpoint, why=why, hub=ENDPOINT))  # fmt: skip
    return InputError(t("the hub at {address} did not take it: {why}", address=hub.endpoint, why=why))
