"""Who may use the browser's view: a link that works once, then a cookie; and only a browser that asks for this machine."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Callable

LOCAL_NAMES = ("127.0.0.1", "localhost")
"""A page in a browser may point its own name at this address: what does not ask for us by ours gets nothing."""


def new_secret() -> str:
    """Return 256 random bits, as they stand in a link."""
    return secrets.token_urlsafe(32)


class Access:
    """The token of the one link, and the sessions that were let in. Kept in memory alone; nothing of it is ever logged."""

    def __init__(self, mint: Callable[[], str] = new_secret) -> None:
        self._mint = mint
        self._token: str | None = mint()
        self._sessions: list[str] = []

    @property
    def token(self) -> str | None:
        """What the link carries; None: it was used."""
        return self._token

    def redeem(self, token: str) -> str | None:
        """Return a new session for the link's token, which is spent by it; None: it is not the token, or was used."""
        if self._token is None or not _same(token, self._token):
            return None
        self._token = None
        self._sessions.append(self._mint())
        return self._sessions[-1]

    def knows(self, session: str) -> bool:
        """Return whether ``session`` was let in. Each one is compared to its end, so that time tells nothing."""
        return sum(_same(session, known) for known in self._sessions) > 0


def _same(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode("utf-8", "replace"), other.encode("utf-8", "replace"))


def is_local_name(host: str) -> bool:
    """Return whether a ``Host`` header (``127.0.0.1:8321``, through any tunnel's port) names this machine as ours."""
    name, colon, port = host.partition(":")
    return name in LOCAL_NAMES and (not colon or port.isdigit())


def is_own_origin(origin: str, host: str) -> bool:
    """Return whether a page with ``origin`` came from us: a script of another page may not open our socket."""
    return is_local_name(host) and origin == f"http://{host}"
