"""The full-screen view in a browser: textual-serve's server on 127.0.0.1, behind a link that works once.

Every visitor gets a process of the view; a run belongs to none of them. Nothing is loaded from other places: the page's
own reference to a font elsewhere is refused by its policy, and would hold it up where that place cannot be reached.
"""

from __future__ import annotations

import asyncio
import logging
import os
import shlex
import signal
import socket
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any

from aiohttp import web
from textual_serve.server import Server

from doctor.language import say
from doctor.probes.process_tree import children_of
from doctor.web_access import Access, is_local_name, is_own_origin
from runner.text import t

ADDRESS = "127.0.0.1"
PORT = 8321
NEXT_PORTS = 20
"""So many ports after a taken one are tried, where the user named none."""
MOST_VIEWS = 8
"""Each is a process of some 50 MB."""
LEAVE_S = 3.0
"""So long a view is waited for when the server ends."""
_TAKE_THE_KEYS = """
const isShown = () => document.body.classList.contains("-first-byte");
const takeTheKeys = () => isShown() && document.querySelector(".xterm-helper-textarea").focus();
window.addEventListener("focus", takeTheKeys);
const waiting = setInterval(() => { if (isShown()) { clearInterval(waiting); takeTheKeys(); } }, 50);
"""
"""Keys go to the view without a click into it first."""
_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class GuardedServer(Server):
    """textual-serve's server with the gate before every page, file and socket of it."""

    def __init__(self, argv: Sequence[str], access: Access, port: int) -> None:
        super().__init__("exec " + shlex.join(argv), host=ADDRESS, port=port, title="doctor")
        self._access = access
        self._cookie = f"doctor_{port}"
        self._visits: set[asyncio.Task[Any]] = set()

    def initialize_logging(self) -> None:
        """No line a request: it would hold the link's token."""
        logging.getLogger("textual-serve").setLevel(logging.ERROR)

    async def make_app(self) -> web.Application:
        app = await super()._make_app()
        app.middlewares.append(self._gate())
        return app

    async def on_startup(self, app: web.Application) -> None:
        """Say nothing: where the view is served is said by whoever started it."""

    async def on_shutdown(self, app: web.Application) -> None:
        """End every view, so that leaving waits for none."""
        for visit in self._visits:
            visit.cancel()
        if self._visits:
            await asyncio.wait(self._visits, timeout=LEAVE_S)

    async def handle_index(self, request: web.Request) -> Any:
        # Through a tunnel the browser may know us by another port than we do.
        self.public_url = f"http://{request.host}"
        page = await super().handle_index(request)
        assert isinstance(page, web.Response) and page.text is not None
        page.text = page.text.replace("</body>", f"<script>{_TAKE_THE_KEYS}</script></body>")
        return page

    async def handle_websocket(self, request: web.Request) -> web.WebSocketResponse:
        visit = asyncio.current_task()
        assert visit is not None
        self._visits.add(visit)
        try:
            return await super().handle_websocket(request)
        finally:
            self._visits.discard(visit)

    # -- the gate
    def _gate(self) -> Any:
        @web.middleware
        async def gate(request: web.Request, handler: _Handler) -> web.StreamResponse:
            refused = self._enter(request)
            response = refused if refused is not None else await handler(request)
            if not response.prepared:
                response.headers.update(_headers(request.host))
            return response

        return gate

    def _enter(self, request: web.Request) -> web.Response | None:
        """Return what a request gets instead of an answer; None: it may have one."""
        if not is_local_name(request.host):
            return _refusal(say("This view answers only to 127.0.0.1 and localhost."))
        token, known = request.query.get("token"), self._access.knows(request.cookies.get(self._cookie, ""))
        if token is not None and request.path == "/" and request.method == "GET":
            return self._with_token(token, known)
        if not known:
            return _refusal(_stale())
        if request.path == "/ws" and not is_own_origin(request.headers.get("Origin", ""), request.host):
            return _refusal(say("Another page may not use this view."))
        if request.path == "/ws" and len(self._visits) >= MOST_VIEWS:
            words = say(t("{count} views are open already: close one first.", count=MOST_VIEWS))
            return web.Response(status=503, text=words + "\n")
        return None

    def _with_token(self, token: str, known: bool) -> web.Response:
        session = None if known else self._access.redeem(token)
        if session is None and not known:
            return _refusal(_stale())
        response = web.Response(status=303, headers={"Location": "/"})  # the token leaves the address bar
        if session is not None:
            # Lax: a link in a notebook's terminal comes from another site and must still arrive with its cookie.
            response.set_cookie(self._cookie, session, httponly=True, samesite="Lax", path="/")
        return response


def _stale() -> str:
    return say(
        "This link was used already, or is not one of ours. Start `doctor --web` again for a new one; no run is touched by that."
    )


def _refusal(words: str) -> web.Response:
    return web.Response(status=403, text=words + "\n")


def _headers(host: str) -> dict[str, str]:
    socket_of_ours = f"ws://{host}" if is_local_name(host) else ""
    policy = (
        "default-src 'none'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
        f"font-src 'self' data:; connect-src 'self' {socket_of_ours}; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'"
    )
    return {
        "Content-Security-Policy": policy,
        "Referrer-Policy": "no-referrer",
        "X-Content-Type-Options": "nosniff",
        "Cache-Control": "no-store",
    }


# -- serving
def open_port(port: int | None) -> socket.socket:
    """Return a socket on 127.0.0.1: the port asked for, or the first free one from :data:`PORT` on.

    Raises:
        OSError: the port is taken (or none of the next ones is free).
    """
    wanted = [port] if port is not None else [*range(PORT, PORT + NEXT_PORTS)]
    for number in wanted:
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((ADDRESS, number))
            listener.listen()
            return listener
        except OSError:
            listener.close()
            if number == wanted[-1]:
                raise
    raise AssertionError("there is always a last port")


def serve(listener: socket.socket, argv: Sequence[str], access: Access) -> None:
    """Serve the view that ``argv`` starts until SIGINT or SIGTERM; every view has ended when this returns."""
    asyncio.run(_serve(listener, argv, access))


async def _serve(listener: socket.socket, argv: Sequence[str], access: Access) -> None:
    server = GuardedServer(argv, access, listener.getsockname()[1])
    server.initialize_logging()
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, ended.set)
    runner = web.AppRunner(await server.make_app(), access_log=None, shutdown_timeout=LEAVE_S)
    await runner.setup()
    try:
        await web.SockSite(runner, listener).start()
        await ended.wait()
    finally:
        await runner.cleanup()
        _end_views()


def _end_views() -> None:
    """A view that did not leave when asked to (a hung disk or driver holds it) is ended by signal."""
    for pid in children_of(os.getpid()):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
