"""The view in a real browser: it is drawn, a key is answered, and nothing is fetched from anywhere else."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

pytest.importorskip("aiohttp", reason="the [web] extra is not installed")
pytest.importorskip("textual_serve", reason="the [web] extra is not installed")

from tests.web.chromium import browsing, find_chromium
from tests.web.serving import served

pytestmark = pytest.mark.skipif(find_chromium() is None, reason="no Chromium here")


async def test_a_browser_shows_the_view_answers_a_key_and_fetches_nothing_elsewhere(tmp_path: Path) -> None:
    with served(tmp_path) as server:
        async with browsing(tmp_path) as page:
            await page.go(server.link)
            await page.sees("Snapshots")
            await page.sees("Deep check")
            await asyncio.sleep(0.5)  # xterm.js draws what came a moment later
            before = await page.picture()
            assert await page.value_of("location.href") == server.home + "/", "the token left the address bar"
            await page.press("l")
            await page.sees("快照")
            await asyncio.sleep(0.5)
            after = await page.picture()
            elsewhere = [url for url in page.asked if not url.startswith((server.home, "data:", "blob:"))]
            assert set(elsewhere) <= set(page.blocked), (
                "asked of another place, and not refused by the page's policy"
            )
            assert page.complaints == []
    assert before != after
    assert min(len(before), len(after)) > 20_000, "an empty page packs to less"
    if folder := os.environ.get("DOCTOR_PICTURES"):  # for whoever wants to look
        (Path(folder) / "web-en.png").write_bytes(before)
        (Path(folder) / "web-zh.png").write_bytes(after)
