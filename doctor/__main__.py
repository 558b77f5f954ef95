"""``doctor``, ``rundoctor`` and ``python -m doctor``: run the command line and leave."""

import os
import sys


def put_users_modules_last() -> None:
    """A random.py in the working directory or on PYTHONPATH is the user's: nothing of ours is to import it."""
    named = [entry for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry]
    if sys.argv[0].endswith("__main__.py"):  # python -m doctor: the working directory comes first
        named.append(sys.path[0])
    users = [entry for entry in sys.path if entry in named and not _is_ours(entry)]
    sys.path[:] = [entry for entry in sys.path if entry not in users] + users


def _is_ours(entry: str) -> bool:
    return os.path.exists(os.path.join(entry, "runner", "rundir.py"))  # noqa: PTH110, PTH118


def start() -> int:
    """Run the command line and return its exit status.

    ``check`` leaves at once: a probe's thread may lie in a file system that hangs, and taking the interpreter apart is a
    twentieth of its time. It has nothing that would have to be put away.
    """
    put_users_modules_last()
    from doctor.commands import main

    code = main()
    if sys.argv[1:2] == ["check"]:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    return code


if __name__ == "__main__":
    sys.exit(start())
