"""Mirrors are asked, not trusted: a local server plays one that has the build, lacks it, sends on, refuses, hangs."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from doctor.checks.advice import TorchBuild
from doctor.mirrors import ask_mirrors
from doctor.recommend import MirrorAnswer
from doctor.tables import load

BUILD = TorchBuild(torch="2.13.0", cuda="12.6", on_pypi=False, confidence="verified")
WHEEL = "torch-2.13.0%2Bcu126-cp311-cp311-manylinux_2_28_x86_64.whl"
PAGES = {
    "/good/cu126/torch/": f'<a href="/files/{WHEEL}#sha256=ab">{WHEEL}</a>',
    "/links/cu126/": f'<a href="{WHEEL.replace("%2B", "+")}">x</a>',
    "/old/cu126/torch/": '<a href="/files/torch-2.6.0%2Bcu126-cp311-cp311-linux_x86_64.whl">x</a>',
    "/other/cu126/torch/": '<a href="/files/torch-2.13.0%2Bcu130-cp311-cp311-linux_x86_64.whl">x</a>',
    "/outside/cu126/torch/": f'<a href="https://download.pytorch.org/whl/cu126/{WHEEL}">x</a>',
    "/pypi/torch/": '<a href="../../packages/torch-2.13.0-cp311-cp311-manylinux_2_28_x86_64.whl">x</a>',
}


class _Mirror(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        if self.path.startswith("/away/"):
            self.send_response(301)
            self.send_header("Location", "https://download.pytorch.org/whl/cu126/torch/")
            self.end_headers()
            return
        if self.path.startswith("/slash/") and not self.path.endswith("/there/"):
            self.send_response(302)
            self.send_header("Location", "/good/cu126/torch/")
            self.end_headers()
            return
        if self.path.startswith("/hung/"):
            time.sleep(1.5)
            return
        page = PAGES.get(self.path)
        self.send_response(200 if page else 404)
        self.end_headers()
        self.wfile.write((page or "").encode())

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as the base calls it
        """Say nothing."""


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    httpd = ThreadingHTTPServer(("127.0.0.1", 0), _Mirror)
    threading.Thread(target=httpd.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{httpd.server_port}"
    httpd.shutdown()


def asked(server: str, path: str, build: TorchBuild = BUILD, field: str = "index") -> MirrorAnswer:
    kind = "pypi" if build.on_pypi else "pytorch-wheels"
    row = {"kind": kind, "name": "M", field: server + path}
    (answer,) = ask_mirrors(build, [row], limit_s=0.5)
    return answer


@pytest.mark.parametrize(
    ("path", "why"),
    [
        pytest.param("/good/{build}", None, id="has it"),
        pytest.param("/slash/{build}", None, id="a redirect that stays on the mirror"),
        pytest.param("/old/{build}", "does not have torch 2.13.0", id="an older torch"),
        pytest.param("/other/{build}", "does not have torch 2.13.0", id="another CUDA"),
        pytest.param("/away/{build}", "sends on to download.pytorch.org", id="a redirect that leaves it"),
        pytest.param("/outside/{build}", "sends on to download.pytorch.org", id="links that leave it"),
        pytest.param("/gone/{build}", "answers 404", id="no such folder"),
        pytest.param("/hung/{build}", "no answer within 0.5 s", id="hangs"),
    ],
)
def test_a_mirror_is_named_only_when_it_has_the_build_itself(server: str, path: str, why: str | None) -> None:
    answer = asked(server, path)
    if why is None:
        assert answer.why is None
        assert answer.option == f"--index-url {server}{path.replace('{build}', 'cu126')}"
    else:
        assert why in str(answer.why)
        assert answer.option == ""


def test_a_list_of_files_is_taken_by_find_links(server: str) -> None:
    answer = asked(server, "/links/{build}/", field="links")
    assert (answer.why, answer.option) == (None, f"--find-links {server}/links/cu126/")


def test_the_build_of_pypi_is_asked_of_mirrors_of_pypi(server: str) -> None:
    plain = TorchBuild(torch="2.13.0", cuda="13.0", on_pypi=True, confidence="verified")
    assert asked(server, "/pypi", plain).option == f"--index-url {server}/pypi"


def test_a_mirror_that_is_not_there_is_said_to_be_unreachable() -> None:
    assert "cannot be reached" in str(asked("http://127.0.0.1:9", "/x").why)


def test_those_that_have_it_come_first(server: str) -> None:
    rows = [
        {"kind": "pytorch-wheels", "name": name, "index": f"{server}/{name}/{{build}}"}
        for name in ("gone", "good")
    ]
    assert [one.name for one in ask_mirrors(BUILD, rows, 0.5)] == ["good", "gone"]


def test_every_row_of_the_table_is_a_place_to_ask() -> None:
    for row in load("mirrors")["mirror"]:
        assert row["kind"] in ("pypi", "pytorch-wheels")
        assert ("index" in row) != ("links" in row)
        assert (row.get("index") or row["links"]).startswith("https://")
        assert ("{build}" in (row.get("index") or row["links"])) is (row["kind"] == "pytorch-wheels")
