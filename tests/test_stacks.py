"""py-spy's raw lines and its error texts, literally as version 0.4.3 writes them."""

from __future__ import annotations

import pytest

from doctor.pyspy_errors import classify
from doctor.stacks import (
    drop_torn,
    hottest,
    parse_errors,
    parse_raw,
    where_time_goes,
)

MAIN = (
    'process 7649:"/root/venv/bin/python t.py";thread (7649): MainThread;<module> (t.py:14);main (t.py:%d);%s'
)
WORKER = (
    'process 7649:"/root/venv/bin/python t.py";process 7652:"/root/venv/bin/python t.py";thread (7652): MainThread;'
    "<module> (t.py:14);_worker_loop (torch/utils/data/_utils/worker.py:349);%s"
)
FEEDER = (
    'process 7649:"/root/venv/bin/python t.py";thread (7655): QueueFeederThread;Thread._bootstrap (threading.py:1002);'
    "Queue._feed (multiprocessing/queues.py:231);Condition.wait (threading.py:327) 100"
)
WAIT = "DataLoader.__next__ (torch/utils/data/dataloader.py:725);Connection._recv (multiprocessing/connection.py:395) 60"
COMPUTE = "compute (t.py:8);_engine_run_backward (torch/autograd/graph.py:979) 40"
RAW = "\n".join([MAIN % (12, WAIT), MAIN % (13, COMPUTE), WORKER % "D.__getitem__ (t.py:6) 90", FEEDER])


def test_a_line_is_taken_apart() -> None:
    stack = parse_raw(WORKER % "D.__getitem__ (t.py:6) 90")[0]
    assert (stack.pids, stack.thread_id, stack.thread, stack.count) == ((7649, 7652), 7652, "MainThread", 90)
    assert (stack.frames[-1].function, stack.frames[-1].file, stack.frames[-1].line) == (
        "D.__getitem__",
        "t.py",
        6,
    )


@pytest.mark.parametrize(
    ("line", "function", "file"),
    [
        pytest.param('process 7832:"python s.py";thread (7832);<module> (s.py:4);foo (s.py:3) 9', "foo", "s.py", id="thread without a name"),
        pytest.param('process 1:"python -c \nx=1\nf()\n";thread (1): MainThread;f (<string>:1) 3', "f", "<string>", id="line ends in the command"),
        pytest.param('process 1:"python -c x=1; f(")";")";thread (1): MainThread;f (<string>:1) 3', "f", "<string>", id="quotes and ; in the command"),
        pytest.param('process 1:"p";thread (1): M;g (dir (old)/a b.py:7) 3', "g", "dir (old)/a b.py", id="blanks and parentheses in the path"),
        pytest.param('process 1:"p";thread (1): M;g (a\x1b[31m.py:7) 3', "g", "a\\x1b[31m.py", id="a terminal escape in the path"),
    ],
)  # fmt: skip
def test_awkward_lines(line: str, function: str, file: str) -> None:
    frame = parse_raw(line)[0].frames[-1]
    assert (frame.function, frame.file) == (function, file)


def test_other_lines_are_passed_over() -> None:
    assert parse_raw("py-spy> Sampling process 5 times a second\n\nhalf a li") == []


def test_shares_are_of_the_times_a_process_was_looked_at() -> None:
    rows = {(row["process"], row["function"]): row for row in hottest(parse_raw(RAW))}
    assert rows["trainer", "Connection._recv"]["self_share"] == 0.6
    assert rows["trainer", "main"] == {
        "function": "main", "file": "t.py", "line": 12, "self_share": 0.0, "total_share": 1.0, "process": "trainer", "thread": "",
    }  # fmt: skip
    assert rows["worker 7652", "D.__getitem__"]["self_share"] == 1.0


def test_a_side_thread_that_only_waits_is_left_out() -> None:
    assert not [row for row in hottest(parse_raw(RAW)) if row["thread"]]


def test_a_side_thread_that_works_is_shown() -> None:
    busy = 'process 7649:"p";thread (7700): pin;Thread._bootstrap (threading.py:1002);pin (t.py:3) 100'
    assert [row["thread"] for row in hottest(parse_raw(RAW + "\n" + busy)) if row["function"] == "pin"] == [
        "pin"
    ]


def test_recursion_counts_a_function_once() -> None:
    rows = hottest(
        parse_raw('process 1:"p";thread (1): M;<module> (a.py:9);f (a.py:1);f (a.py:1);f (a.py:1) 10')
    )
    assert [row["total_share"] for row in rows if row["function"] == "f"] == [1.0]


def test_stacks_without_their_root_are_dropped_and_counted() -> None:
    torn = 'process 7649:"/root/venv/bin/python t.py";thread (7649): MainThread;compute (t.py:8) 3'
    whole, count = drop_torn(parse_raw(RAW + "\n" + torn))
    assert (count, sum(stack.count for stack in whole)) == (3, 290)


def test_failed_looks_are_read_from_the_last_line() -> None:
    said = "py-spy> Wrote raw flamegraph data to 'out20.raw'. Samples: 864 Errors: 9"
    assert (parse_errors(said), parse_errors("")) == (9, 0)


GONE = "Error: Failed to get process executable name. Check that the process is running.\n\nCaused by:\n    0: {cause}\n    1: {cause}\n"


@pytest.mark.parametrize(
    ("stderr", "yama", "kind"),
    [
        pytest.param(GONE.format(cause="No such file or directory (os error 2)"), None, "GONE", id="gone"),
        pytest.param(GONE.format(cause="Permission denied (os error 13)"), None, "NO_PERMISSION", id="same headline, denied"),
        pytest.param("Error: Failed to find python version from target process", None, "NOT_PYTHON", id="not Python"),
        pytest.param("Permission Denied: Try running again with elevated permissions by going 'sudo env \"PATH=$PATH\" !!'", None, "NO_PERMISSION", id="another user's"),
        pytest.param("Permission Denied: Try running again with elevated permissions by going 'sudo env \"PATH=$PATH\" !!'", 1, "YAMA", id="only a parent may look"),
        pytest.param("Permission Denied: Try running again", 3, "YAMA", id="nobody may look"),
        pytest.param("Error: Failed to suspend process\nReason: EPERM: Operation not permitted", None, "PTRACE_BLOCKED", id="traced already"),
        pytest.param("Error: Failed to get stack traces\nReason: EPERM: Operation not permitted", None, "PTRACE_BLOCKED", id="seccomp"),
        pytest.param("Error: Unsupported version of Python: 3.99.0", None, "UNSUPPORTED", id="a Python of the future"),
        pytest.param("thread 'main' panicked at src/main.rs", None, "OTHER", id="a panic"),
        pytest.param("", None, "OTHER", id="no words"),
    ],
)  # fmt: skip
def test_each_error_text_has_its_class(stderr: str, yama: int | None, kind: str) -> None:
    assert classify(stderr, yama).kind == kind


def test_a_root_that_is_no_python_and_one_torn_at_every_look_leave_the_rest_told() -> None:
    text = 'process 1:"sh";process 7:"python t.py";thread (7): MainThread;<module> (t.py:1);work (t.py:2) 9\n'
    stacks = parse_raw(text)
    assert where_time_goes(stacks) == {}
    assert [(entry["function"], entry["process"]) for entry in hottest(stacks)] == [
        ("work", "child 7"),
        ("<module>", "child 7"),
    ]
