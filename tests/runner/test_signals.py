"""Which signals ask a run to stop: also those with which a batch system says that the time is nearly up."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from runner.signals import STOP_SIGNALS, StopRequest


@pytest.fixture
def handlers() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in STOP_SIGNALS}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2"])
def test_a_signal_is_a_request_to_stop(handlers: None, name: str) -> None:
    stop = StopRequest.install()
    assert not stop
    os.kill(os.getpid(), getattr(signal, name))
    assert stop and stop.signal_name == name
