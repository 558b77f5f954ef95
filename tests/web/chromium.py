"""A headless Chromium driven over its own debugging protocol: go to a page, press a key, take a picture."""

from __future__ import annotations

import asyncio
import base64
import itertools
import shutil
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp

PATIENCE_S = 60.0
NAMES = ("chromium", "chromium-browser", "google-chrome")


def find_chromium() -> str | None:
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class Page:
    """One tab. ``drawn`` is what came over its sockets, ``asked`` every address it wanted, ``blocked`` those refused by policy."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse[Any]) -> None:
        self._socket = socket
        self._ids = itertools.count(1)
        self._answers: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._urls: dict[str, str] = {}
        self.drawn = ""
        self.asked: list[str] = []
        self.blocked: list[str] = []
        self.complaints: list[str] = []
        self._listener = asyncio.create_task(self._listen())

    async def _listen(self) -> None:
        async for message in self._socket:
            told = message.json()
            if "id" in told:
                self._answers.pop(told["id"]).set_result(told)
            else:
                self._take(told["method"], told["params"])

    def _take(self, method: str, params: dict[str, Any]) -> None:
        if method == "Network.webSocketFrameReceived" and params["response"]["opcode"] == 2:
            self.drawn += base64.b64decode(params["response"]["payloadData"]).decode("utf-8", "replace")
        elif method == "Network.requestWillBeSent":
            self._urls[params["requestId"]] = params["request"]["url"]
            self.asked.append(params["request"]["url"])
        elif method == "Network.loadingFailed" and params.get("blockedReason") == "csp":
            self.blocked.append(self._urls[params["requestId"]])
        elif method == "Runtime.exceptionThrown":
            self.complaints.append(str(params["exceptionDetails"]))

    async def call(self, method: str, **params: Any) -> dict[str, Any]:
        number = next(self._ids)
        answer = self._answers[number] = asyncio.get_running_loop().create_future()
        await self._socket.send_json({"id": number, "method": method, "params": params})
        told = await asyncio.wait_for(answer, PATIENCE_S)
        assert "error" not in told, told
        result: dict[str, Any] = told["result"]
        return result

    async def go(self, url: str) -> None:
        for domain in ("Network", "Page", "Runtime"):
            await self.call(f"{domain}.enable")
        await self.call("Emulation.setFocusEmulationEnabled", enabled=True)  # as a window in front has it
        await self.call("Page.navigate", url=url)

    async def value_of(self, script: str) -> Any:
        return (await self.call("Runtime.evaluate", expression=script))["result"].get("value")

    async def sees(self, words: str) -> None:
        """Wait until ``words`` were drawn."""
        for _ in range(int(PATIENCE_S / 0.1)):
            if words in self.drawn:
                return
            await asyncio.sleep(0.1)
        raise AssertionError(
            f"never drawn: {words}; the end of what was: {self.drawn[-500:]!r}; {self.complaints}"
        )

    async def press(self, key: str) -> None:
        for kind in ("keyDown", "keyUp"):
            text = {"text": key} if kind == "keyDown" else {}
            await self.call(
                "Input.dispatchKeyEvent", type=kind, key=key, code=f"Key{key.upper()}",
                windowsVirtualKeyCode=ord(key.upper()), **text,
            )  # fmt: skip

    async def picture(self) -> bytes:
        """Return the page as PNG."""
        return base64.b64decode((await self.call("Page.captureScreenshot", format="png"))["data"])

    async def close(self) -> None:
        self._listener.cancel()
        await self._socket.close()


@asynccontextmanager
async def browsing(folder: Path, width: int = 1280, height: int = 800) -> AsyncIterator[Page]:
    """Start a Chromium with a profile of its own below ``folder`` and give its first tab."""
    program = find_chromium()
    assert program is not None
    profile = folder / "chromium"
    argv = [
        program, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--disable-extensions",
        "--disable-background-networking", "--disable-component-update", "--disable-sync", f"--window-size={width},{height}",
        "--remote-debugging-port=0", f"--user-data-dir={profile}", "about:blank",
    ]  # fmt: skip
    process = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        port = await _port_of(profile, process)
        async with aiohttp.ClientSession() as session:
            async with session.get(f"http://127.0.0.1:{port}/json") as answer:
                tab = next(row for row in await answer.json() if row["type"] == "page")
            async with session.ws_connect(tab["webSocketDebuggerUrl"], max_msg_size=0) as socket:
                page = Page(socket)
                try:
                    yield page
                finally:
                    await page.close()
    finally:
        process.terminate()
        process.wait(PATIENCE_S)


async def _port_of(profile: Path, process: subprocess.Popen[bytes]) -> int:
    for _ in range(int(PATIENCE_S / 0.1)):
        try:
            return int((profile / "DevToolsActivePort").read_text().splitlines()[0])
        except (OSError, ValueError, IndexError):
            assert process.poll() is None, "Chromium ended"
            await asyncio.sleep(0.1)
    raise AssertionError("Chromium never named its port")
