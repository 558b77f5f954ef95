"""What the server gives to whom, spoken to as a browser speaks, on any machine."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tests.tui.recorded import whole_run
from tests.web.serving import PATIENCE_S, Served, served

pytest.importorskip("aiohttp", reason="the [web] extra is not installed")
pytest.importorskip("textual_serve", reason="the [web] extra is not installed")

import aiohttp

from doctor.web import MOST_VIEWS


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Served]:
    with served(tmp_path) as running:
        yield running


@pytest_asyncio.fixture
async def browser() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as session:
        yield session


async def status_of(browser: aiohttp.ClientSession, url: str, **options: object) -> int:
    async with browser.get(url, allow_redirects=False, **options) as answer:
        return int(answer.status)


PAGES = ("/", "/ws", "/static/js/textual.js", "/static/", "/download/x", "/nothing")


async def test_without_the_link_nothing_is_given(server: Served, browser: aiohttp.ClientSession) -> None:
    for page in PAGES:
        assert await status_of(browser, server.home + page) == 403, page
    for wrong in ("/?token=", "/?token=wrong", "/ws?token=wrong"):
        assert await status_of(browser, server.home + wrong) == 403, wrong


async def test_the_link_is_for_one_browser_and_leaves_the_address_bar(
    server: Served, browser: aiohttp.ClientSession
) -> None:
    async with browser.get(server.link, allow_redirects=False) as answer:
        assert (answer.status, answer.headers["Location"]) == (303, "/")
        cookie = answer.headers["Set-Cookie"]
    assert "HttpOnly" in cookie and "SameSite=Lax" in cookie
    assert server.link.partition("token=")[2] not in cookie
    assert await status_of(browser, server.home + "/") == 200
    assert await status_of(browser, server.link) == 303, "the browser that was let in may press it again"
    async with aiohttp.ClientSession() as another, another.get(server.link) as answer:
        assert answer.status == 403
        assert "was used already" in await answer.text()


async def test_a_cookie_of_another_s_making_opens_nothing(
    server: Served, browser: aiohttp.ClientSession
) -> None:
    name = f"doctor_{server.home.rpartition(':')[2]}"
    assert await status_of(browser, server.home + "/", headers={"Cookie": f"{name}=guess"}) == 403


async def test_a_name_that_points_here_and_a_script_of_another_page_are_refused(
    server: Served, browser: aiohttp.ClientSession
) -> None:
    assert await status_of(browser, server.link, headers={"Host": "evil.example"}) == 403
    assert await status_of(browser, server.link) == 303, "the link was not spent by that"
    for origin in ({}, {"Origin": "http://127.0.0.1:8888"}, {"Origin": "http://evil.example"}):
        with pytest.raises(aiohttp.WSServerHandshakeError, match="403"):
            await browser.ws_connect(server.home + "/ws", headers=origin)
    assert server.views() == []


async def test_the_page_names_us_as_the_browser_does(server: Served, browser: aiohttp.ClientSession) -> None:
    await status_of(browser, server.link)
    async with browser.get(server.home + "/", headers={"Host": "localhost:7777"}) as answer:
        page = await answer.text()
        policy = answer.headers["Content-Security-Policy"]
    assert 'data-session-websocket-url="ws://localhost:7777/ws"' in page
    assert "connect-src 'self' ws://localhost:7777;" in policy
    assert "default-src 'none'" in policy and "frame-ancestors 'none'" in policy


async def until_said(socket_: aiohttp.ClientWebSocketResponse[Any], words: str) -> str:
    """Return what the view has drawn once ``words`` came."""
    drawn = ""
    while words not in drawn:
        message = await socket_.receive(timeout=PATIENCE_S)
        assert message.type in (aiohttp.WSMsgType.BINARY, aiohttp.WSMsgType.TEXT), (message, drawn[-500:])
        drawn += message.data.decode("utf-8", "replace") if isinstance(message.data, bytes) else ""
    return drawn


async def opened(server: Served, browser: aiohttp.ClientSession) -> aiohttp.ClientWebSocketResponse[Any]:
    await status_of(browser, server.link)
    return await browser.ws_connect(
        server.home + "/ws?width=100&height=30", headers={"Origin": server.home}, max_msg_size=0
    )


async def test_a_visitor_gets_the_view_presses_keys_and_leaves_no_process(
    server: Served, browser: aiohttp.ClientSession
) -> None:
    socket_ = await opened(server, browser)
    await until_said(socket_, "Snapshots")
    (view,) = server.views()
    arguments = Path(f"/proc/{view}/cmdline").read_text().replace("\0", " ")
    assert "doctor.tui.served" in arguments
    assert server.link.partition("token=")[2] not in arguments + Path(f"/proc/{view}/environ").read_text()
    await socket_.send_json(["stdin", "l"])
    await until_said(socket_, "快照")
    await socket_.close()
    assert server.wait_for_views(0) == []


async def test_a_hundred_visits_are_not_a_hundred_processes(
    server: Served, browser: aiohttp.ClientSession
) -> None:
    first = await opened(server, browser)
    await until_said(first, "Snapshots")
    sockets, refused = [first], 0
    for _ in range(MOST_VIEWS + 12):
        try:
            sockets.append(
                await browser.ws_connect(
                    server.home + "/ws?width=80&height=24", headers={"Origin": server.home}
                )
            )
        except aiohttp.WSServerHandshakeError as error:
            assert error.status == 503
            refused += 1
    assert (len(sockets), refused) == (MOST_VIEWS, 13)
    for socket_ in sockets:
        await socket_.close()
    assert server.wait_for_views(0) == []
    again = await browser.ws_connect(server.home + "/ws?width=80&height=24", headers={"Origin": server.home})
    await again.close()


async def test_ctrl_c_ends_the_server_and_every_view_at_once(
    server: Served, browser: aiohttp.ClientSession
) -> None:
    socket_ = await opened(server, browser)
    await until_said(socket_, "Snapshots")
    views = server.views()
    code, err = await asyncio.to_thread(server.interrupt)
    assert code == 0
    assert "Traceback" not in err
    assert server.link.partition("token=")[2] not in err
    assert [pid for pid in views if Path(f"/proc/{pid}").exists()] == []


async def test_a_server_that_is_killed_takes_its_views_along(
    server: Served, browser: aiohttp.ClientSession
) -> None:
    socket_ = await opened(server, browser)
    await until_said(socket_, "Snapshots")
    (view,) = server.views()
    os.kill(server.process.pid, signal.SIGKILL)
    for _ in range(int(PATIENCE_S / 0.05)):
        if not Path(f"/proc/{view}").exists():
            break
        await asyncio.sleep(0.05)
    assert not Path(f"/proc/{view}").exists()


async def test_a_run_is_opened_by_name(tmp_path: Path, browser: aiohttp.ClientSession) -> None:
    whole_run(tmp_path / "runs" / "quickstart")
    with served(tmp_path, "watch", "quickstart") as server:
        drawn = await until_said(await opened(server, browser), "learning rate")
    assert "quickstart" in drawn


async def test_the_view_speaks_the_language_asked_for(tmp_path: Path, browser: aiohttp.ClientSession) -> None:
    with served(tmp_path, "--lang", "zh") as server:
        await until_said(await opened(server, browser), "快照")


def test_the_server_is_on_this_machine_s_own_address_alone(server: Served) -> None:
    port = int(server.home.rpartition(":")[2])
    # sl  local_address rem_address   st ...     0: 0100007F:2081 00000000:0000 0A
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    listening = [row[1] for row in rows if row[3] == "0A" and row[1].endswith(f":{port:04X}")]
    assert listening == [f"0100007F:{port:04X}"]


def test_a_taken_port_is_said_and_the_next_free_one_is_taken_where_none_was_named(tmp_path: Path) -> None:
    from doctor.web import PORT, open_port

    first = open_port(None)
    second = open_port(None)
    try:
        assert PORT <= first.getsockname()[1] < second.getsockname()[1]
        taken = ("--port", str(first.getsockname()[1]))
        with pytest.raises(AssertionError, match="cannot be used"), served(tmp_path, *taken):
            pass
    finally:
        first.close()
        second.close()


def test_without_the_extra_the_way_to_it_is_said(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.modules['aiohttp'] = None\n")
    root = str(Path(__file__).parent.parent.parent)
    with (
        pytest.raises(AssertionError, match=r"rundoctor\[web\]"),
        served(tmp_path, PYTHONPATH=f"{tmp_path}:{root}"),
    ):
        pass


def test_a_port_without_the_web_is_refused(tmp_path: Path) -> None:
    from tests.commands_run import doctor

    done = doctor("--port", "8321")
    assert (done.returncode, "--port goes with --web" in done.stderr) == (2, True)


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    assert socket.gethostbyname("localhost") == "127.0.0.1"
