"""Where there is nothing to save yet, a stop ends whatever the trainer waits for: a hub that does not answer, a model in the making."""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Iterator

import pytest

from runner.signals import STOP_SIGNALS, Stopped, StopRequest


@pytest.fixture
def stop() -> Iterator[StopRequest]:
    before = {number: signal.getsignal(number) for number in STOP_SIGNALS}
    yield StopRequest.install()
    for number, handler in before.items():
        signal.signal(number, handler)


def ask_soon() -> None:
    threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGTERM)).start()


def test_a_read_that_nobody_answers_is_left(stop: StopRequest) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs, pytest.raises(Stopped), stop.at_once():
        ask_soon()
        ours.recv(1)
    assert stop.signal_name == "SIGTERM"


def test_a_library_that_tries_again_after_every_error_does_not_keep_it(stop: StopRequest) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs, pytest.raises(Stopped), stop.at_once():
        ask_soon()
        for _ in range(3):
            try:
                ours.recv(1)
            except Exception:
                continue


def test_who_was_asked_before_does_not_begin(stop: StopRequest) -> None:
    os.kill(os.getpid(), signal.SIGTERM)
    with pytest.raises(Stopped), stop.at_once():
        pytest.fail("it began")


def test_behind_it_a_stop_is_a_flag_again(stop: StopRequest) -> None:
    with stop.at_once():
        pass
    os.kill(os.getpid(), signal.SIGTERM)
    assert stop
