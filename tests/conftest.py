"""What every test starts from: signals as a terminal gives them. And which tests coverage is counted over."""

from __future__ import annotations

import signal

import pytest

# A CI that starts the tests with nohup or in the background leaves these ignored, and every process started from here
# would inherit that: nothing could be hung up or interrupted.
for _number, _handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(_number) == signal.SIG_IGN:
        signal.signal(_number, _handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave out of coverage what runs the same lines over and over: counting trebles its time."""
    seen: set[str] = set()
    for item in items:
        name = item.nodeid.partition("[")[0]
        drawn = getattr(getattr(item, "obj", None), "is_hypothesis_test", False)
        if name in seen or drawn:
            item.add_marker(pytest.mark.no_cover)
        seen.add(name)
