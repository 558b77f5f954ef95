"""A hub of our own for the tests: takes a repository and commits of files, or breaks them off, on 127.0.0.1."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import MappingProxyType
from typing import Any

TOKEN = "hf_" + "a" * 34


class Hub(ThreadingHTTPServer):
    """What it was sent: ``repositories`` (name -> is private) and ``files`` (path -> bytes).

    ``commits_to_break_off``: so many are answered by a closed connection.
    """

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.repositories: dict[str, bool] = {}
        self.files: dict[str, bytes] = {}
        self.commits_to_break_off = 0

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    server: Hub

    def log_message(self, *_: Any) -> None:
        return

    def _answer(self, status: int, body: Any, headers: Mapping[str, str] = MappingProxyType({})) -> None:
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.headers.get("Authorization") != f"Bearer {TOKEN}":
            self._answer(401, {"error": "Invalid credentials in Authorization header"})
        elif self.path == "/api/repos/create":
            asked = json.loads(body)
            name = "/".join(filter(None, (asked.get("organization"), asked["name"])))
            self.server.repositories[name] = (
                asked.get("private") is True or asked.get("visibility") == "private"
            )
            self._answer(200, {"url": f"{self.server.address}/{name}", "name": name, "id": name})
        elif self.path == "/api/validate-yaml":
            self._answer(200, {"errors": [], "warnings": []})
        elif "/preupload/" in self.path:
            files = [{"path": one["path"], "uploadMode": "regular", "shouldIgnore": False, "oid": None} for one in json.loads(body)["files"]]  # fmt: skip
            self._answer(200, {"files": files})
        elif "/commit/" in self.path and self.server.commits_to_break_off:
            self.server.commits_to_break_off -= 1
            self.close_connection = True
        elif "/commit/" in self.path:
            for line in body.splitlines():
                one = json.loads(line)
                if one["key"] == "file":
                    self.server.files[one["value"]["path"]] = base64.b64decode(one["value"]["content"])
            self._answer(200, {"commitUrl": f"{self.server.address}/me/model/commit/" + "0" * 40, "commitOid": "0" * 40, "hookOutput": ""})  # fmt: skip
        else:
            self._answer(404, {"error": self.path})

    def do_GET(self) -> None:
        name = self.path.removeprefix("/api/models/")
        if self.headers.get("Authorization") != f"Bearer {TOKEN}":
            self._answer(401, {"error": "Invalid credentials in Authorization header"})
        elif self.path == "/api/whoami-v2":
            self._answer(200, {"type": "user", "name": "me", "orgs": []})
        elif name in self.server.repositories:
            files = [{"rfilename": path} for path in self.server.files]
            self._answer(
                200, {"id": name, "private": self.server.repositories[name], "siblings": files, "tags": []}
            )
        else:
            self._answer(404, {"error": "Repository not found"}, {"X-Error-Code": "RepoNotFound"})


@contextmanager
def running_hub() -> Iterator[Hub]:
    hub = Hub()
    thread = threading.Thread(target=hub.serve_forever, daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        hub.shutdown()
        hub.server_close()
