"""Serves one text on 127.0.0.1 to whoever asks for /metrics. Read only, and only this machine can reach it."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

ADDRESS = "127.0.0.1"
MOST_AT_ONCE = 16
LOCAL_NAMES = ("127.0.0.1", "localhost")
"""A page in a browser may point its own name at this address: what does not ask for us by ours gets nothing."""


def make_server(port: int, text: Callable[[], str], content_type: str) -> ThreadingHTTPServer:
    """Return a server that answers with ``text()``, one question at a time; port 0 takes a free one. Raises OSError."""
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        timeout = 10

        def do_GET(self) -> None:
            host = (self.headers.get("Host") or "").rpartition(":")[0] or self.headers.get("Host") or ""
            if host not in LOCAL_NAMES or self.path.partition("?")[0] not in ("/metrics", "/"):
                self.send_error(404)
                return
            try:
                with lock:
                    body = text().encode("utf-8", "replace")
            except OSError as error:
                self.send_error(503, explain=str(error))
                return
            self.send_response(200)
            self.send_header("Content-Type", content_type)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's own name
            """Say nothing: a scrape every second would fill the terminal."""

    return _Server((ADDRESS, port), Handler)


class _Server(ThreadingHTTPServer):
    """At most :data:`MOST_AT_ONCE` connections, whoever opens them and says nothing; what breaks off is no news."""

    daemon_threads = True

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler]) -> None:
        self._free = threading.BoundedSemaphore(MOST_AT_ONCE)
        super().__init__(address, handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        if self._free.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that left early is not worth a traceback in the terminal; anything else is."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)
