"""Delivery, to a real server on this machine: what each chat takes, what goes wrong, and that it stays a sentence."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
from pathlib import Path

import pytest

from doctor import alert_out
from doctor.alert_out import Outlet, body_of
from doctor.alert_words import Message
from runner.alert_settings import Place, place_of
from tests.alerts.receiver import receiving

MESSAGE = Message("failed", "fail", "快速训练", 'failed · "step" 3/10\nline two {run} \\')
WHOLE = f"doctor · 快速训练\n{MESSAGE.text}"


def outlet(word: str, template: str = "", **environ: str) -> Outlet:
    place = place_of(word)
    assert isinstance(place, Place)
    return Outlet([place], template, {"PATH": "/usr/bin:/bin", **environ}, sleep=lambda seconds: None)


TAKEN = {
    "qyapi.weixin.qq.com": {"msgtype": "text", "text": {"content": WHOLE}},
    "oapi.dingtalk.com": {"msgtype": "text", "text": {"content": WHOLE}},
    "open.feishu.cn": {"msg_type": "text", "content": {"text": WHOLE}},
    "sctapi.ftqq.com": {"title": "doctor · 快速训练", "desp": WHOLE},
    "hooks.slack.com": {"text": WHOLE},
    "ntfy.example.org": {"text": WHOLE, "kind": "failed", "level": "fail", "run": "快速训练"},
}


@pytest.mark.parametrize(("host", "body"), TAKEN.items(), ids=TAKEN)
def test_each_chat_gets_what_it_takes(host: str, body: object) -> None:
    assert json.loads(body_of(MESSAGE, host)) == body


def test_a_template_of_one_s_own_is_filled_and_never_broken_by_the_text() -> None:
    template = '{"content": "{level}: {text}", "tags": ["{kind}", "{unknown}"], "n": 1}'
    assert json.loads(body_of(MESSAGE, "qyapi.weixin.qq.com", template)) == {
        "content": f"fail: {WHOLE}", "tags": ["failed", "{unknown}"], "n": 1,
    }  # fmt: skip


def test_a_webhook_receives_the_message() -> None:
    with receiving() as chat:
        assert outlet(f"webhook={chat.url}").deliver(MESSAGE) == []
        assert outlet("webhook=$HOOK", HOOK=chat.url).deliver(MESSAGE) == []
    assert chat.texts == [WHOLE, WHOLE]
    assert chat.heads[0]["Content-Type"] == "application/json; charset=utf-8"


@pytest.mark.parametrize(
    ("answer", "tries", "says"),
    [
        ((500, "oops"), 3, "HTTP 500"), ((429, ""), 3, "HTTP 429"), ((403, "no"), 1, "HTTP 403"),
        ((302, "http://127.0.0.1:1/elsewhere"), 1, "HTTP 302: it points elsewhere"),
        ((301, "file:///etc/passwd"), 1, "HTTP 301"), ((307, "ftp://127.0.0.1/x"), 1, "HTTP 307"),
        ((200, '{"errcode": 93000, "errmsg": "invalid webhook url, hint: key=SECRET-KEY-0123456789abcdef"}'), 1, "errcode 93000"),
        ((200, '{"code": 19024, "msg": "Key Words Not Found"}'), 1, "Key Words Not Found"),
    ],
    ids=["broken", "too often", "forbidden", "moved", "to a file", "to ftp", "WeCom refuses", "Feishu refuses"],
)  # fmt: skip
def test_a_receiver_that_does_not_take_it_is_a_sentence_without_the_key(
    answer: tuple[int, str], tries: int, says: str
) -> None:
    with receiving(answer) as chat:
        (trouble,) = outlet(f"webhook={chat.url}").deliver(MESSAGE)
    assert len(chat.got) == tries
    assert says in str(trouble)
    assert "SECRET-KEY" not in str(trouble)


def test_an_answer_of_megabytes_is_not_read_to_its_end() -> None:
    with receiving((200, "x" * 10_000_000)) as chat:
        assert outlet(f"webhook={chat.url}").deliver(MESSAGE) == []


def test_an_answer_that_drips_for_ever_is_left_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("doctor.alert_out.TIMEOUT_S", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        dripping = threading.Thread(target=drip, args=(listening,), daemon=True)
        dripping.start()
        assert outlet(f"webhook=http://127.0.0.1:{listening.getsockname()[1]}/k").deliver(MESSAGE) == []
        dripping.join(20)
    assert not dripping.is_alive(), "it was hung up on"


def drip(listening: socket.socket) -> None:
    """Answer one question with a byte every tenth of a second, until nobody listens."""
    connection, _ = listening.accept()
    with connection:
        connection.recv(1 << 16)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
        with contextlib.suppress(OSError):
            for _ in range(300):
                time.sleep(0.1)
                connection.sendall(b" ")


def test_one_that_is_busy_for_a_moment_gets_it_at_the_second_try() -> None:
    with receiving((503, ""), (200, "ok")) as chat:
        assert outlet(f"webhook={chat.url}").deliver(MESSAGE) == []
    assert len(chat.got) == 2


def test_nobody_at_the_address_and_an_unset_variable_are_sentences() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, not listening: refused at once
        (refused,) = outlet(f"webhook=http://127.0.0.1:{taken.getsockname()[1]}/k").deliver(MESSAGE)
    assert "did not reach the webhook at 127.0.0.1" in str(refused)
    (unset,) = outlet("webhook=$HOOK").deliver(MESSAGE)
    assert "$HOOK holds no address" in str(unset)


def test_a_command_is_given_the_message_in_variables_and_nothing_of_it_is_run(tmp_path: Path) -> None:
    hostile = Message("failed", "fail", "r", "$(touch pwned) `touch pwned`; touch pwned")
    command = f'cd {tmp_path} && printf "%s|%s|%s|%s" "$DOCTOR_ALERT_KIND" "$DOCTOR_ALERT_LEVEL" "$DOCTOR_ALERT_RUN" "$DOCTOR_ALERT_TEXT" > out'
    assert outlet(f"command={command}").deliver(hostile) == []
    assert (tmp_path / "out").read_text() == f"failed|fail|r|{hostile.text}"
    assert not (tmp_path / "pwned").exists()


def test_a_command_that_fails_or_never_ends_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    (failed,) = outlet("command=echo no such chat >&2; exit 3").deliver(MESSAGE)
    assert "status 3: no such chat" in str(failed)
    monkeypatch.setattr(alert_out, "COMMAND_LIMIT_S", 0.3)
    (late,) = outlet("command=sleep 60 & sleep 60").deliver(MESSAGE)
    assert "was ended" in str(late)


def test_a_place_that_fails_does_not_keep_the_next_from_being_told() -> None:
    with receiving() as chat:
        places = [
            place
            for word in ("command=false", f"webhook={chat.url}")
            if isinstance(place := place_of(word), Place)
        ]
        troubles = Outlet(places, sleep=lambda seconds: None).deliver(MESSAGE)
    assert len(troubles) == 1
    assert len(chat.got) == 1
