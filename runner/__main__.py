"""``python -u RUN_DIR/code/runner/__main__.py RUN_DIR [--resume]``: read plan.json, train, leave.

Started by path. Until our own imports are done only this package's parent may answer to the name ``runner``:
the script's folder (Python puts it first; our ``profile.py`` would hide the standard library's) and the
working directory (a user's own ``runner.py``) come off ``sys.path``; the working directory goes back to its
end.
"""

from __future__ import annotations

import os
import sys
import threading

TOGETHER_FLAGS = ("--nproc=", "--nnodes=", "--node-rank=", "--master=")
"""Several processes: this one starts them and stands for them all."""

_PACKAGE_DIR = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120 (pathlib is imported after this)


def put_our_code_first() -> list[str]:
    """Make ``sys.path`` find our package first; return the entries taken off that belong to the user."""
    home = os.path.dirname(_PACKAGE_DIR)  # noqa: PTH120
    here = os.path.realpath(os.getcwd())  # noqa: PTH109
    taken = [entry for entry in sys.path if os.path.realpath(entry or here) == here]
    ours = {os.path.realpath(_PACKAGE_DIR), os.path.realpath(home), here}
    sys.path[:] = [home, *(entry for entry in sys.path if os.path.realpath(entry or here) not in ours)]
    return [entry for entry in taken if os.path.realpath(entry or here) not in {_PACKAGE_DIR, home}]


def main(argv: list[str]) -> int:
    flags = {argument for argument in argv if argument.startswith("--")}
    arguments = [argument for argument in argv if argument not in flags]
    together = {flag for flag in flags if flag.startswith(TOGETHER_FLAGS)}
    if len(arguments) != 1 or flags - together - {"--resume", "--approximate"}:
        sys.stderr.write(
            "usage: python -u RUN_DIR/code/runner/__main__.py RUN_DIR [--resume [--approximate]] "
            "[--nproc=N [--nnodes=N --node-rank=R --master=HOST:PORT]]\n"
        )
        return 2
    users_entries = put_our_code_first()
    from runner.signals import StopRequest

    stop = StopRequest.install()
    from runner.attach import allow_attach

    allow_attach()
    if together:
        from runner.together import lead

        return lead(arguments[0], sorted(together), sorted(flags - together), stop)
    from runner.rank_env import rank_place
    from runner.rank_record import RankRecord
    from runner.session import run_session

    sys.path += users_entries
    place = rank_place()
    if place.has_parent:
        from runner.orphans import stop_with_parent

        stop_with_parent()
    with RankRecord(arguments[0], place) as record:
        record.code = run_session(
            arguments[0],
            "--resume" in flags,
            stop,
            approximate="--approximate" in flags,
            place=place,
            record=record,
        )
    return record.status


def leave(code: int) -> None:
    """End the process with ``code``; a tracker's thread that still hangs does not hold it.

    All of ours has ended by now: a thread that Python would wait for is a library's, and a machine that waits costs money.
    """
    others = (thread for thread in threading.enumerate() if thread is not threading.main_thread())
    if any(not thread.daemon or thread.name.startswith("tracker-") for thread in others):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)


if __name__ == "__main__":
    leave(main(sys.argv[1:]))
