"""``pylock.toml`` (PEP 751): only when every package has an address and a digest; else refused with what is missing. Pure."""

from __future__ import annotations

import json
from typing import Any

from doctor.model import Snapshot, Text, t
from doctor.snapshots.formats.rendered import FormatError, Rendered
from doctor.snapshots.formats.sources import Source, sources
from doctor.snapshots.formats.words import python_minor


def render(snapshot: Snapshot) -> Rendered:
    found = sources(snapshot)
    missing = [why for one in found if (why := _why_not(one)) is not None]
    if not found:
        missing = [t("the snapshot holds no packages")]
    if missing:
        raise FormatError(
            t("a pylock.toml wants an address and a digest for each of its {count} {count:package|packages}; {missing} have none. `doctor snapshot resolve FILE` looks them up.", count=len(found), missing=len(missing)),
            missing,
        )  # fmt: skip
    tree = lock_tree(snapshot, found)
    _validate(tree)
    mixed = [one for one in found if one.kind == "vcs"]
    lost = [t("pip does not take a lock file that has repositories beside files with digests; uv does")] if mixed else []  # fmt: skip
    return Rendered(
        text=as_toml(tree),
        lost=(*lost, t("the driver, the cards, variables, code and data are not in it")),
        file_name="pylock.toml",
    )


def _validate(tree: dict[str, Any]) -> None:
    try:
        from packaging.pylock import Pylock, PylockValidationError
    except ImportError:
        raise FormatError(t("the lock file cannot be validated: it wants packaging 26 or newer, `pip install -U packaging`")) from None  # fmt: skip
    try:
        Pylock.from_dict(tree)
    except PylockValidationError as error:
        raise FormatError(t("packaging does not take it as a lock file: {error}", error=str(error))) from None


def _why_not(one: Source) -> Text | None:
    if one.kind in ("index", "archive") and one.file_url and one.sha256:
        return None
    if one.kind == "vcs":
        return None
    if one.kind == "editable":
        return t("{name}: an editable install has no file to lock", name=one.name)
    return one.problem or t("{name} {version}: no address and digest", name=one.name, version=one.version)


def lock_tree(snapshot: Snapshot, found: list[Source]) -> dict[str, Any]:
    """Return the lock file's tables. The names of the keys are PEP 751's."""
    tree: dict[str, Any] = {"lock-version": "1.0"}
    if minor := python_minor(snapshot):
        tree["requires-python"] = f"=={minor}.*"
    return {**tree, "created-by": "rundoctor", "packages": [_package(one) for one in found]}


def _package(one: Source) -> dict[str, Any]:
    if one.kind == "vcs":
        url, _, commit = one.requirement.partition("git+")[2].partition("#")[0].rpartition("@")
        return {"name": one.name, "vcs": {"type": "git", "url": url, "commit-id": commit}}
    address = {"url": one.file_url, "hashes": {"sha256": one.sha256}}
    if one.kind == "archive":
        return {"name": one.name, "version": one.version, "archive": address}
    index = {"index": one.index} if one.index else {}
    if not one.file_url.endswith(".whl"):
        return {"name": one.name, "version": one.version, **index, "sdist": address}
    return {"name": one.name, "version": one.version, **index, "wheels": [address]}


def as_toml(tree: dict[str, Any]) -> str:
    """Return the tables as TOML; every string is quoted as JSON, which TOML's basic strings contain."""
    lines = [f"{key} = {json.dumps(value)}" for key, value in tree.items() if key != "packages"]
    for package in tree["packages"]:
        lines += ["", "[[packages]]"]
        lines += [f"{key} = {_inline(value)}" for key, value in package.items()]
    return "\n".join(lines) + "\n"


def _inline(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_inline(item)}" for key, item in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(_inline(item) for item in value) + "]"
    return json.dumps(value)
