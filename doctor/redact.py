"""Which facts leave this machine, and as what. Pure: a snapshot in, a snapshot without secrets and identities out.

Of variables only those on the allow-list of tables/variables.toml keep a value. Every other string is searched for
credentials (in addresses, command lines, by their shape) and for who and where it came from (home folders, user and host
names, network addresses, serial numbers of cards). Stand-ins are of the same form as what they stand for, so that a
redacted machine is judged like the machine itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from doctor.allowed_variables import is_allowed
from doctor.model import Snapshot
from doctor.redact_hosts import of_variable, strangers
from doctor.redact_identity import Veil, is_personal
from doctor.redact_provenance import clean_names, for_strangers, is_commit, set_patches_aside
from doctor.redact_secrets import is_secret_name, without_secrets

__all__ = ["is_allowed", "is_secret_name", "redact", "without_secrets"]


def redact(
    snapshot: Snapshot,
    users: tuple[str, ...] = (),
    hosts: tuple[str, ...] = (),
    *,
    patches_as_they_are: bool = False,
    share: bool = False,
) -> Snapshot:
    """Return ``snapshot`` fit to be shown to strangers; ``redacted`` is True then.

    ``users`` and ``hosts`` are names known from elsewhere to be removed too (this machine's own). A patch stays word for
    word, and is left out where it holds a credential, unless ``patches_as_they_are``. ``share`` drops whose code it is,
    and the servers that only insiders know.
    """
    tree = msgspec.to_builtins(snapshot)
    provenance = tree["facts"].get("provenance", {}).get("value")
    if share:
        for_strangers(provenance)
    patches = set_patches_aside(provenance, patches_as_they_are)
    veil = Veil(users=_users(snapshot, users), hosts=_hosts(hosts), cards=_cards(snapshot))
    _keep_allowed_variables(tree["facts"])
    clean_names(provenance, veil.text)
    for holder, patch in patches:
        holder["patch"] = Verbatim(patch)
    seen = strangers if share else _as_it_is
    cleaned: dict[str, Any] = {**tree, "redacted": True, "label": seen(veil.text)(tree.get("label", ""))}
    cleaned["facts"] = {
        name: _walk(reading, seen(veil.of(name)), name) for name, reading in tree["facts"].items()
    }
    return msgspec.convert(cleaned, Snapshot)


def _as_it_is(clean: Callable[[str], str]) -> Callable[[str], str]:
    return clean


class Verbatim(str):
    """A text that stays as it is: it was searched, and a change would break it."""


def _keep_allowed_variables(facts: dict[str, Any]) -> None:
    run = (facts.get("provenance", {}).get("value") or {}).get("run") or {}
    if "environment" in run:
        run["environment"] = _of_this_machine(
            {name: value for name, value in run["environment"].items() if is_allowed(name)}
        )
    environment = facts.get("environment", {}).get("value") or {}
    variables = environment.get("variables", {})
    hidden = [name for name in variables if not is_allowed(name)]
    if hidden:
        environment["names"] = sorted({*environment.get("names", ()), *hidden})
    if variables:
        environment["variables"] = _of_this_machine(
            {name: value for name, value in variables.items() if name not in hidden}
        )


def _of_this_machine(variables: dict[str, str]) -> dict[str, str]:
    """Return variables without the names of other machines in them."""
    return {name: of_variable(name, without_secrets(value)) for name, value in variables.items()}


# Fields whose words are the doctor's or the system's own: an account of the same name must not change them.
_CLOSED = frozenset(
    [
        "status",
        "kind",
        "name",
        "state",
        "fstype",
        "arch",
        "found_by",
        "arch_source",
        "set_by",
        "chosen_by",
        "installer",
        "fabric_state",
        "os_name",
        "locale_encoding",
        "compute_capability",
    ]
)


def _walk(value: Any, clean: Callable[[str], str], key: str) -> Any:
    """Apply ``clean`` to every string below ``value``, keys that are paths included; msgids stay as they are."""
    if isinstance(value, str):
        if isinstance(value, Verbatim) or is_commit(key, value):
            return str(value)
        return value if key == "msgid" else without_secrets(value) if key in _CLOSED else clean(value)
    if isinstance(value, dict):
        return {
            (clean(name) if "/" in name else name): "***"
            if _is_setting(key, name, item)
            else _walk(item, clean, name)
            for name, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [_walk(item, clean, key) for item in value]
    return value


def _is_setting(key: str, name: str, item: Any) -> bool:
    """Training arguments are named by their users: ``hub_token`` holds a credential."""
    return key in ("training_args", "profile", "settings") and isinstance(item, str) and is_secret_name(name)


# ---------------------------------------------------------------------------------------- whose machine
def _users(snapshot: Snapshot, given: tuple[str, ...]) -> tuple[str, ...]:
    """Return the account names that the snapshot shows: the last part of the home folder, and those given."""
    homes: list[str] = []
    if snapshot.facts.storage.value and (home := snapshot.facts.storage.value.place("home")):
        homes.append(home.path)
    if snapshot.facts.environment.value and (variable := snapshot.facts.environment.value.get("HOME")):
        homes.append(variable)
    names = [*given, *(home.rstrip("/").rpartition("/")[2] for home in homes)]
    packages = snapshot.facts.packages.value
    also_package = {item.name for item in packages.items} if packages else set()
    return tuple(dict.fromkeys(name for name in names if is_personal(name) and name not in also_package))


def _hosts(given: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(
        name for name in given if len(name) >= 4 and name not in ("localhost", "localhost.localdomain")
    )


def _cards(snapshot: Snapshot) -> tuple[str, ...]:
    gpus = snapshot.facts.gpus.value
    return tuple(item.uuid for item in gpus.items if item.uuid) if gpus else ()
