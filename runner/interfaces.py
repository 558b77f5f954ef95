"""Which of this machine's network interfaces leads to another: gloo takes what the host name resolves to, often the loopback."""

from __future__ import annotations

import fcntl
import socket
import struct

SIOCGIFADDR = 0x8915
"""``man 7 netdevice``: an interface's IPv4 address."""


def interface_to(host: str) -> str:
    """Return the name of the interface over which ``host`` is reached; of its own address, the one that has it. Empty:
    nobody can tell."""
    own = address_towards(host)
    return next((name for _, name in socket.if_nameindex() if own and address_of(name) == own), "")


def address_towards(host: str) -> str:
    """Return this machine's address on the way to ``host``; nothing is sent. Empty: there is no way."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((host, 9))
        except OSError:
            return ""
        return str(probe.getsockname()[0])


def address_of(interface: str) -> str:
    """Return an interface's IPv4 address; empty: it has none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            answer = fcntl.ioctl(probe.fileno(), SIOCGIFADDR, struct.pack("256s", interface.encode()[:15]))
        except OSError:
            return ""
    return socket.inet_ntoa(answer[20:24])


def host_name(meeting_place: str) -> str:
    """Return this machine's ``name (address)``, the address on the way to where the ranks meet."""
    return f"{socket.gethostname()} ({address_towards(meeting_place) or '-'})"
