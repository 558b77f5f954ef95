"""The finished files to a hub repository, by huggingface_hub with its own login."""

from __future__ import annotations

import msgspec

from runner.inputs import InputError
from runner.text import t


class Request(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    repository: str
    """``user/name``"""
    files: dict[str, str]
    """Name there -> path here."""
    public: bool = False


def upload(request: Request) -> str:
    """Send all files in one commit and return the repository's address.

    Raises:
        InputError: no login, no permission, or the hub cannot be reached.
    """
    import huggingface_hub
    from huggingface_hub.errors import LocalTokenNotFoundError

    hub = huggingface_hub.HfApi()
    try:
        made = hub.create_repo(request.repository, private=not request.public, exist_ok=True)
        added = [
            huggingface_hub.CommitOperationAdd(path_in_repo=name, path_or_fileobj=path)
            for name, path in request.files.items()
        ]
        hub.create_commit(made.repo_id, added, commit_message="Model, card and metrics by rundoctor")
    except LocalTokenNotFoundError as error:
        raise InputError(
            t("no login for the hub: set HF_TOKEN, or run {command}", command="hf auth login")
        ) from error
    except Exception as error:  # which HTTP library raises depends on the hub's version
        why = " ".join(str(error).split())[:400]
        raise InputError(
            t("the hub at {address} did not take it: {why}", address=hub.endpoint, why=why)
        ) from error
    return str(made)
