"""Serves one text on 127.0.0.1 to whoever asks for /metrics. Read only, and only this machine can reach it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

ADDRESS = "127.0.0.1"
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

    server = ThreadingHTTPServer((ADDRESS, port), Handler)
    server.daemon_threads = True
    return server
