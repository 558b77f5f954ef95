"""Who and where a machine is, out of any string: names become stand-ins of the same form. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable

import msgspec

from doctor.redact_hosts import of_options
from doctor.redact_secrets import without_secrets

# Accounts that images come with: they tell nothing of a person.
_COMMON_ACCOUNTS = frozenset({
    "root", "user", "users", "ubuntu", "debian", "centos", "admin", "administrator", "jovyan", "vscode",
    "runner", "nobody", "ec2-user", "azureuser", "mambauser", "home", "data", "mnt", "tmp", "workspace",
    "app", "work", "python", "conda", "node", "docker", "appuser", "other", "shared", "public",
})  # fmt: skip


def is_personal(name: str) -> bool:
    """Return whether an account of this name points to a person."""
    return len(name) >= 2 and name.lower() not in _COMMON_ACCOUNTS and not re.fullmatch(r"user\d*", name)


# GPU-3f1d2c5e-8a7b-4c6d-9e0f-123456789abc, or a unique beginning of it
_CARD = re.compile(r"\b(GPU|MIG)-([0-9a-fA-F]{4,8}(?:-[0-9a-fA-F]{1,12}){0,4})\b")
# Packages are versions and file names: what looks like an address or a name there is none.
_PACKAGE_SECTIONS = frozenset({"packages", "torch", "libraries", "driver", "project", "provenance"})
_HOME = re.compile(r"(?<![\w.])(/home/|/Users/|/data/home/)([^/\s:;,'\"]+)")
_ADDRESS = re.compile(r"(?<![=<>~!]=)(?<![\w.-])(?:\d{1,3}\.){3}\d{1,3}(?!\.?\w)")
_ADDRESS_6 = re.compile(r"(?<![\w:])(?:[0-9a-f]{1,4}:){3,7}(?::?[0-9a-f]{1,4})+(?![\w:])", re.IGNORECASE)
_HARDWARE_ADDRESS = re.compile(r"\b(?:[0-9a-fA-F]{2}:){5}[0-9a-fA-F]{2}\b")
_MAIL = re.compile(r"\b(?!git@)[A-Za-z0-9._%+-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*\.[A-Za-z]{2,}\b")
# nas01.example.org:/export/data, the source of a network mount
_REMOTE = re.compile(r"^(?:[A-Za-z0-9\[][A-Za-z0-9.,_@\[\]:-]+:(?=/(?!/))|//[^/]+(?=/))")


class Veil(msgspec.Struct):
    """Replaces what identifies, the same thing always by the same stand-in."""

    users: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    cards: tuple[str, ...] = ()
    homes: dict[str, str] = {}
    strange_cards: dict[str, int] = {}

    def of(self, section: str) -> Callable[[str], str]:
        """Return the cleaning of one section's strings."""
        if section in _PACKAGE_SECTIONS:
            return self.path
        if section == "storage":
            return lambda text: self.text(_REMOTE.sub(_plain_remote, text))
        return self.text

    def path(self, text: str) -> str:
        """Clean a path, an address or a version."""
        if not text:
            return text
        text = without_secrets(text)
        text = _HOME.sub(self._home, text) if "/" in text else text
        for name in self.users:
            if name in text:
                text = re.sub(rf"(?<=/){re.escape(name)}(?=/|$)", self._stand_in(name), text)
        return text

    def text(self, text: str) -> str:
        """Clean any other string."""
        text = of_options(self.path(text))
        for name in self.hosts:
            text = re.sub(rf"(?<![\w.-]){re.escape(name)}(?![\w-])", "host", text) if name in text else text
        for name in self.users:
            if name in text:
                text = re.sub(
                    rf"(?<![A-Za-z0-9]){re.escape(name)}(?![A-Za-z0-9])", self._stand_in(name), text
                )
        text = _CARD.sub(self._card, text) if "-" in text else text
        text = _MAIL.sub("someone@example.org", text) if "@" in text else text
        if ":" in text:
            text = _HARDWARE_ADDRESS.sub("00:00:00:00:00:00", text)
            text = _ADDRESS_6.sub(
                lambda match: match[0] if match[0].startswith("00:00") else "2001:db8::1", text
            )
        return _ADDRESS.sub(_plain_address, text) if "." in text else text

    def _home(self, match: re.Match[str]) -> str:
        name = match[2]
        return match[1] + (self._stand_in(name) if is_personal(name) else name)

    def _stand_in(self, name: str) -> str:
        if name not in self.homes:
            self.homes[name] = "user" if not self.homes else f"user{len(self.homes) + 1}"
        return self.homes[name]

    def _card(self, match: re.Match[str]) -> str:
        whole = match[0].lower()
        known = [index for index, uuid in enumerate(self.cards) if uuid.lower().startswith(whole)]
        number = known[0] if len(known) == 1 else self._strange_card(whole)
        return f"{match[1]}-{number:08x}-0000-0000-0000-000000000000"

    def _strange_card(self, name: str) -> int:
        """A card that is not in the snapshot keeps a number of its own, so that it stays a wrong one."""
        return 0xF0000000 + self.strange_cards.setdefault(name, len(self.strange_cards))


def _plain_remote(match: re.Match[str]) -> str:
    return "//server" if match[0].startswith("//") else "server:"


def _plain_address(match: re.Match[str]) -> str:
    parts = [int(part) for part in match[0].split(".")]
    local = max(parts) > 255 or match[0] in ("0.0.0.0", "255.255.255.255") or parts[0] == 127
    return match[0] if local else "192.0.2.1"
