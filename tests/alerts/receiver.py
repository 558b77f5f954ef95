"""A chat's webhook on this machine: keeps what it is sent, and answers as told."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Receiver:
    """``answers`` are given in turn, the last one again and again: a status and a body."""

    answers: list[tuple[int, str]] = field(default_factory=lambda: [(200, '{"errcode": 0, "errmsg": "ok"}')])
    got: list[Any] = field(default_factory=list)
    heads: list[dict[str, str]] = field(default_factory=list)
    url: str = ""

    @property
    def texts(self) -> list[str]:
        return [row["text"] for row in self.got]


@contextmanager
def receiving(*answers: tuple[int, str]) -> Iterator[Receiver]:
    receiver = Receiver(list(answers)) if answers else Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            content = self.rfile.read(int(self.headers["Content-Length"]))
            receiver.got.append(json.loads(content))
            receiver.heads.append(dict(self.headers))
            status, body = receiver.answers.pop(0) if len(receiver.answers) > 1 else receiver.answers[0]
            self.send_response(status)
            if 300 <= status < 400:
                self.send_header("Location", body)
            self.end_headers()
            with suppress(OSError):  # who asked may have heard enough
                self.wfile.write(body.encode())

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's own name
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    receiver.url = f"http://127.0.0.1:{server.server_address[1]}/send?key=SECRET-KEY-0123456789abcdef"
    try:
        yield receiver
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
