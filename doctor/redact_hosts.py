"""Names of other machines out of a snapshot: proxies and masters always, servers that only insiders know for strangers. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache

from doctor.tables import load

_NAMES_A_HOST = frozenset({"http_proxy", "https_proxy", "all_proxy", "ftp_proxy", "master_addr"})
_LISTS_HOSTS = frozenset({"no_proxy"})
# http://proxy.corp:3128, socks5h://10.0.0.8:1080, me:pw@proxy.corp:3128, [2001:db8::1]:3128, gpu-node-17
_AUTHORITY = re.compile(
    r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*://)?(?:[^/]*@)?(?P<host>\[[^\]]*\]|[^/:\s]*)(?P<rest>(?::\d+)?(?:/.*)?)",
    re.DOTALL,
)
_LOOPBACK = re.compile(
    r"\[?(?:localhost|127(?:\.\d{1,3}){3}|::1|0\.0\.0\.0)\]?(?:\.localdomain)?", re.IGNORECASE
)
# --proxy http://proxy.corp:3128, proxy=http://proxy.corp:3128, http.proxy=...
_OPTION = re.compile(
    r"(?P<name>proxy[\"']?(?:\s*[=:]\s*|\s+)[\"']?)(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*://)(?P<host>\[[^\]]*\]|[^/:\s\"']+)",
    re.IGNORECASE,
)
_ADDRESS = re.compile(
    r"(?P<scheme>\b[A-Za-z][A-Za-z0-9+.-]*://)(?P<user>git@|\$\{\w+\}(?::\$\{\w+\})?@)?(?P<host>\[[^\]]*\]|[A-Za-z0-9_.-]+)"
)
# git@git.corp:team/r.git
_SCP = re.compile(r"\b(?P<user>git@)(?P<host>[A-Za-z0-9_.-]+)(?=:[A-Za-z0-9_~])")
# PyPI's own two hosts
_PYPI = re.compile(r"(?:[a-z]+\.)?py(?:pi|thonhosted)\.org")
PRIVATE = "private.example"


def of_variable(name: str, value: str) -> str:
    """Return the value of a variable without the name of the machine that it leads to; this machine's own stay."""
    if name.lower() in _NAMES_A_HOST:
        match = _AUTHORITY.fullmatch(value)
        stand_in = "host" if name.lower() == "master_addr" else "proxy"
        return (
            f"{match['scheme'] or ''}{_veiled(match['host'], stand_in)}{match['rest']}" if match else stand_in
        )
    if name.lower() in _LISTS_HOSTS:
        return ",".join(dict.fromkeys(_veiled(one.strip(), "host") for one in value.split(",")))
    return value


def _veiled(host: str, stand_in: str) -> str:
    return host if host in ("", "*") or _LOOPBACK.fullmatch(host) else stand_in


def of_options(text: str) -> str:
    """Return a command line or a log line without the host of a proxy in it."""
    return _OPTION.sub(lambda match: match["name"] + match["scheme"] + _veiled(match["host"], "proxy"), text) if "roxy" in text else text  # fmt: skip


# ---------------------------------------------------------------------------------------- for strangers
@cache
def _public() -> tuple[str, ...]:
    return tuple(load("variables")["public_hosts"])


def is_public(host: str) -> bool:
    """Return whether everyone knows this server: then it says nothing of who asks there."""
    name = host.lower().rstrip(".")
    return bool(_PYPI.fullmatch(name) or _LOOPBACK.fullmatch(name)) or name == PRIVATE or any(name == one or name.endswith(f".{one}") for one in _public())  # fmt: skip


def without_private_hosts(text: str) -> str:
    """Return ``text`` with a stand-in for each server in an address that not everyone knows."""
    if "://" in text:
        text = _ADDRESS.sub(
            lambda match: match["scheme"] + (match["user"] or "") + _known(match["host"]), text
        )
    return _SCP.sub(lambda match: match["user"] + _known(match["host"]), text) if "git@" in text else text


def _known(host: str) -> str:
    return host if is_public(host) else PRIVATE


def strangers(clean: Callable[[str], str]) -> Callable[[str], str]:
    """Return a cleaning that also hides servers."""
    return lambda text: without_private_hosts(clean(text))
