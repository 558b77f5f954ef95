"""The ssh command that brings a port of this machine to the user's own computer, as far as it can be known here. Pure."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass

# A container behind a provider's gateway sees neither address nor port of its own login; these variables name them.
# RunPod: RUNPOD_PUBLIC_IP, RUNPOD_TCP_PORT_22; vast.ai: PUBLIC_IPADDR, VAST_TCP_PORT_22 (platforms' facts, 2026-11-30)
_NAMED = (("RUNPOD_PUBLIC_IP", "RUNPOD_TCP_PORT_22"), ("PUBLIC_IPADDR", "VAST_TCP_PORT_22"))


@dataclass(frozen=True)
class Tunnel:
    """A command to type on the user's own computer."""

    command: str
    has_gaps: bool = False
    """It holds the words HOST and PORT: from here they cannot be known."""
    is_private: bool = False
    """Its address is one that only the machines of one network can reach."""


def tunnel(port: int, user: str, environ: Mapping[str, str]) -> Tunnel:
    """Return the command for ``port`` from the variables of an SSH session (``SSH_CONNECTION``) or of the platform."""
    words = f"ssh -N -L {port}:127.0.0.1:{port} {user or 'USER'}@"
    for address_name, port_name in _NAMED:
        public, ssh_port = environ.get(address_name, ""), environ.get(port_name, "")
        if _address(public) and ssh_port.isdigit():
            return Tunnel(f"{words}{public} -p {ssh_port}")
    # SSH_CONNECTION=203.0.113.7 51514 198.51.100.2 22    client's address and port, server's address and port
    told = environ.get("SSH_CONNECTION", "").split()
    address = _address(told[2]) if len(told) == 4 and told[3].isdigit() else None
    if address is None or address.is_loopback or address in _CONTAINERS:
        return Tunnel(f"{words}HOST -p PORT", has_gaps=True)
    return Tunnel(f"{words}{told[2]} -p {told[3]}", is_private=address.is_private)


_CONTAINERS = ipaddress.ip_network("172.16.0.0/12")
"""Docker's own networks lie here: what a container is called inside is not what the user's computer can reach."""


def _address(word: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(word)
    except ValueError:
        return None
