"""Asks mirrors whether they have a torch build: only when a person wants it, a few seconds each, nothing downloaded."""

from __future__ import annotations

import re
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import IO, Any

from doctor.checks.advice import TorchBuild
from doctor.model import Text, t
from doctor.recommend import MirrorAnswer
from doctor.tables import load

LIMIT_S = 3.0
PAGE_LIMIT_BYTES = 8 << 20
"""A page of all torch wheels has about 1 MB."""


class _ElsewhereError(Exception):
    """The mirror sends on to another host: what is fetched then does not come from it."""

    def __init__(self, host: str) -> None:
        super().__init__(host)
        self.host = host


class _StayThere(urllib.request.HTTPRedirectHandler):
    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: Any, newurl: str
    ) -> urllib.request.Request | None:
        host = urllib.parse.urlsplit(newurl).netloc
        if host and host != urllib.parse.urlsplit(req.full_url).netloc:
            raise _ElsewhereError(host)
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def ask_mirrors(
    build: TorchBuild, rows: Sequence[Mapping[str, str]] | None = None, limit_s: float = LIMIT_S
) -> tuple[MirrorAnswer, ...]:
    """Ask every mirror of the table at once and return their answers, those that have the build first, the quickest first."""
    kind = "pypi" if build.on_pypi else "pytorch-wheels"
    asked = [row for row in (load("mirrors")["mirror"] if rows is None else rows) if row["kind"] == kind]
    with ThreadPoolExecutor(max_workers=max(1, len(asked))) as pool:
        answers = list(pool.map(lambda row: _ask(row, build, limit_s), asked))
    return tuple(sorted(answers, key=lambda one: (one.why is not None, one.took_ms or 0.0)))


def _ask(row: Mapping[str, str], build: TorchBuild, limit_s: float) -> MirrorAnswer:
    url = (row.get("index") or row["links"]).replace("{build}", build.tag)
    page = f"{url.rstrip('/')}/torch/" if "index" in row else url
    option = f"{'--index-url' if 'index' in row else '--find-links'} {url}"
    begun = time.monotonic()
    try:
        why = _why_not(_read(page, limit_s), page, build)
    except _ElsewhereError as error:
        why = t("it sends on to {host}: nothing would come from the mirror", host=error.host)
    except urllib.error.HTTPError as error:
        why = t("it answers {code} for {url}", code=error.code, url=page)
    except TimeoutError:
        why = t("no answer within {seconds} s", seconds=f"{limit_s:g}")
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        why = (
            t("no answer within {seconds} s", seconds=f"{limit_s:g}")
            if isinstance(reason, TimeoutError)
            else t("it cannot be reached: {error}", error=str(reason))
        )
    took_ms = round(1000 * (time.monotonic() - begun), 1)
    return MirrorAnswer(name=row["name"], url=url, option="" if why else option, why=why, took_ms=took_ms)


def _read(page: str, limit_s: float) -> str:
    """Return the page. Raises OSError (URLError, HTTPError, TimeoutError), _ElsewhereError."""
    opener = urllib.request.build_opener(_StayThere())
    end = time.monotonic() + 2 * limit_s
    parts: list[bytes] = []
    with opener.open(
        urllib.request.Request(page, headers={"User-Agent": "rundoctor"}), timeout=limit_s
    ) as answer:
        while piece := answer.read(1 << 16):
            parts.append(piece)
            if sum(map(len, parts)) > PAGE_LIMIT_BYTES or time.monotonic() > end:
                raise TimeoutError
    return b"".join(parts).decode("utf-8", "replace")


def _why_not(page: str, url: str, build: TorchBuild) -> Text | None:
    """Return why the build cannot be had from this page; None: a link to it stays on the mirror."""
    # <a href="/pytorch/whl/cu126/torch-2.13.0%2Bcu126-cp311-cp311-manylinux_2_28_x86_64.whl#sha256=...">
    local = "" if build.on_pypi else rf"(?:%2B|\+){build.tag}"
    wanted = re.compile(
        rf"href=[\"']([^\"']*torch-{re.escape(build.torch)}{local}-[^\"']*\.whl)", re.IGNORECASE
    )
    links = [urllib.parse.urljoin(url, link) for link in wanted.findall(page)]
    if not links:
        return t("it does not have torch {torch} for CUDA {cuda}", torch=build.torch, cuda=build.cuda)
    host = urllib.parse.urlsplit(links[0]).netloc
    if host != urllib.parse.urlsplit(url).netloc:
        return t("it sends on to {host}: nothing would come from the mirror", host=host)
    return None
