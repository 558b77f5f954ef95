"""``doctor``, ``rundoctor`` and ``python -m doctor``: run the command line and leave."""

import os
import sys

from doctor.commands import main


def start() -> int:
    """Run the command line and return its exit status.

    ``check`` leaves at once: a probe's thread may lie in a file system that hangs, and taking the interpreter apart is a
    twentieth of its time. It has nothing that would have to be put away.
    """
    code = main()
    if sys.argv[1:2] == ["check"]:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    return code


if __name__ == "__main__":
    sys.exit(start())
