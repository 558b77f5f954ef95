"""Alerts delivered: a webhook, a command, the bell. Whatever goes wrong there is a sentence, and touches nothing else."""

from __future__ import annotations

import json
import os
import re
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from http.client import HTTPException, HTTPResponse
from urllib.parse import urlsplit

from doctor.alert_words import Message
from doctor.redact_secrets import without_secrets
from doctor.session_end import end_session
from runner.alert_settings import Place, is_address
from runner.strings import printable
from runner.text import Text, t

LONGEST_ANSWER = 1 << 16
TIMEOUT_S = 10.0
COMMAND_LIMIT_S = 30.0
TRY_AGAIN_AFTER_S = (3.0, 15.0)
"""A webhook that does not answer is asked again after so long, then given up for this message."""

# What a robot of each chat takes as a plain text (their own documentation, read 2026-11-30). WeCom and DingTalk:
# {"msgtype": "text", "text": {"content": ...}}; Feishu and Lark: {"msg_type": "text", "content": {"text": ...}};
# ServerChan: title and desp; Slack: text.
_CONTENT = '{"msgtype": "text", "text": {"content": "{text}"}}'
BODIES = {
    "qyapi.weixin.qq.com": _CONTENT,
    "oapi.dingtalk.com": _CONTENT,
    "open.feishu.cn": '{"msg_type": "text", "content": {"text": "{text}"}}',
    "open.larksuite.com": '{"msg_type": "text", "content": {"text": "{text}"}}',
    "sctapi.ftqq.com": '{"title": "{title}", "desp": "{text}"}',
    "hooks.slack.com": '{"text": "{text}"}',
}
GENERIC = '{"text": "{text}", "kind": "{kind}", "level": "{level}", "run": "{run}"}'
_FIELD = re.compile(r"\{(text|title|kind|level|run)\}")
_REFUSALS = ("errcode", "code", "StatusCode")
"""Chats answer 200 and say in the body that they took nothing: 0 is success in all of them."""


def body_of(message: Message, host: str, template: str = "") -> bytes:
    """Return the JSON that is posted: ``template``, or what ``host`` is known to take, with its fields filled in."""
    chosen = template or BODIES.get(host, GENERIC)
    whole = f"doctor · {message.run}\n{message.text}"
    fields = {"text": whole, "title": f"doctor · {message.run}", "kind": message.kind, "level": message.level,
              "run": message.run}  # fmt: skip
    tree = _filled(json.loads(chosen), fields)
    return json.dumps(tree, ensure_ascii=False).encode("utf-8", "replace")


def _filled(tree: object, fields: Mapping[str, str]) -> object:
    if isinstance(tree, dict):
        return {name: _filled(item, fields) for name, item in tree.items()}
    if isinstance(tree, list):
        return [_filled(item, fields) for item in tree]
    return _FIELD.sub(lambda match: fields[match[1]], tree) if isinstance(tree, str) else tree


class Outlet:
    """Delivers messages to every place but the bell; ``sleep`` is handed in for tests."""

    def __init__(
        self,
        places: Sequence[Place],
        template: str = "",
        environ: Mapping[str, str] | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._places = [place for place in places if place.kind != "bell"]
        self._template, self._sleep = template, sleep
        self._environ = dict(os.environ if environ is None else environ)

    def deliver(self, message: Message) -> list[Text]:
        """Tell every place; return what went wrong, without any address in it. Never raises for what a place does."""
        troubles = [self._deliver_to(place, message) for place in self._places]
        return [trouble for trouble in troubles if trouble is not None]

    def _deliver_to(self, place: Place, message: Message) -> Text | None:
        value = place.resolved(self._environ)
        if place.kind == "command":
            return self._run(value, message)
        if not is_address(value):
            return t("an alert was not sent: the variable {name} holds no address", name=place.value)
        return self._post(value, message)

    def _post(self, url: str, message: Message) -> Text | None:
        host = urlsplit(url).hostname or ""
        try:
            body = body_of(message, host, self._template)
        except (
            ValueError
        ) as error:  # a template that was no JSON was refused at the start; a file may be edited since
            return t("an alert was not sent: its body is no JSON: {error}", error=str(error))
        why = ""
        for pause_s in (0.0, *TRY_AGAIN_AFTER_S):
            self._sleep(pause_s)
            why, is_final = _post_once(url, body)
            if not why:
                return None
            if is_final:
                break
        shown = printable(without_secrets(why.replace(url, "***")))[:200]
        return t("an alert did not reach the webhook at {host}: {error}", host=host, error=shown)

    def _run(self, command: str, message: Message) -> Text | None:
        environ = {**self._environ, "DOCTOR_ALERT_TEXT": message.text, "DOCTOR_ALERT_KIND": message.kind,
                   "DOCTOR_ALERT_LEVEL": message.level, "DOCTOR_ALERT_RUN": message.run}  # fmt: skip
        with tempfile.TemporaryFile() as words:
            try:
                code = _run_within(command, environ, words.fileno())
            except OSError as error:
                return t("the alert's command could not be run: {error}", error=error.strerror or str(error))
            words.seek(0)
            lines = words.read(1 << 16).decode("utf-8", "replace").strip().splitlines()
        if code is None:
            return t(
                "the alert's command took longer than {seconds} s and was ended",
                seconds=round(COMMAND_LIMIT_S),
            )
        said = printable(without_secrets(lines[-1]))[:200] if lines else "-"
        return (
            t("the alert's command ended with status {code}: {error}", code=code, error=said)
            if code
            else None
        )


def _run_within(command: str, environ: Mapping[str, str], stderr: int) -> int | None:
    """Return a shell command's exit status; None: it was ended, with all that it started, for its time was over."""
    process = subprocess.Popen(
        ["/bin/sh", "-c", command], env=environ, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=stderr,
        start_new_session=True,
    )  # fmt: skip
    try:
        return process.wait(COMMAND_LIMIT_S)
    except subprocess.TimeoutExpired:
        end_session(process)
        return None


def _post_once(url: str, body: bytes) -> tuple[str, bool]:
    """Return what went wrong ("" where nothing did), and whether asking again would be of no use."""
    request = urllib.request.Request(
        url, data=body, headers={"Content-Type": "application/json; charset=utf-8"}
    )
    try:
        # http and https alone: see is_address
        with urllib.request.build_opener(_NoRedirect).open(request, timeout=TIMEOUT_S) as answer:
            return _refusal(_read_within(answer)), True
    except urllib.error.HTTPError as error:
        with error:
            if 300 <= error.code < 400:
                return f"HTTP {error.code}: it points elsewhere, and messages are not sent after it", True
            return f"HTTP {error.code}", 400 <= error.code < 500 and error.code not in (408, 429)
    except (OSError, ValueError, HTTPException) as error:  # no route, no name, a time-out, a broken answer
        reason = getattr(error, "reason", error)
        return str(reason) or type(error).__name__, False


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A message that is posted to a redirect arrives as a question without its body, and would count as delivered."""

    def redirect_request(self, *_: object) -> None:  # None: HTTPError is raised for the redirect itself
        return None


def _read_within(answer: HTTPResponse) -> bytes:
    """Return the beginning of an answer: at most 64 KB, and what came in time from one that drips."""
    until, read = time.monotonic() + TIMEOUT_S, b""
    while len(read) < LONGEST_ANSWER and time.monotonic() < until and (piece := answer.read1(LONGEST_ANSWER)):
        read += piece
    return read[:LONGEST_ANSWER]


def _refusal(answer: bytes) -> str:
    try:
        tree = json.loads(answer)
    except ValueError:
        return ""
    for name in _REFUSALS:
        code = tree.get(name) if isinstance(tree, dict) else None
        if isinstance(code, int) and code not in (0, 200):
            return f"{name} {code}: {tree.get('errmsg') or tree.get('msg') or tree.get('message') or ''}"
    return ""


def ring() -> None:
    """Ring the terminal's bell, past whatever is drawn on it; silent where there is no terminal."""
    with suppress(OSError), open("/dev/tty", "wb", buffering=0) as terminal:
        terminal.write(b"\a")
