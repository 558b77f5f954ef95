"""What every test starts from: signals as a terminal gives them."""

from __future__ import annotations

import signal

# A CI that starts the tests with nohup or in the background leaves these ignored, and every process started from here
# would inherit that: nothing could be hung up or interrupted.
for _number, _handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(_number) == signal.SIG_IGN:
        signal.signal(_number, _handler)
