"""``doctor metrics``: every line is one that Prometheus reads, only this machine is answered, and it follows the run."""

from __future__ import annotations

import http.client
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from doctor.metrics_server import MOST_AT_ONCE
from doctor.render.prometheus import metrics_text
from runner.events import EventWriter, RunEvent
from runner.state import fold
from tests.commands_run import doctor
from tests.tui.recorded import ONE_4090, RunBuilder, whole_run

# doctor_gpu_power_watts{run="done",gpu="0",name="NVIDIA GeForce RTX 4090"} 401
LINE = re.compile(
    r'^[a-z_:]+\{[a-z_]+="(?:[^"\\\n]|\\.)*"(?:,[a-z_]+="(?:[^"\\\n]|\\.)*")*\} (NaN|[+-]Inf|-?[0-9.e+-]+)$'
)


@pytest.fixture
def run(tmp_path: Path) -> RunBuilder:
    return whole_run(tmp_path / "done").gpu(**ONE_4090)


def parsed(text: str) -> dict[str, list[tuple[dict[str, str], float]]]:
    """Return what Prometheus's own parser makes of it: metric -> (labels, value) of each line. A line twice is an error."""
    found: dict[str, list[tuple[dict[str, str], float]]] = {}
    for family in text_string_to_metric_families(text):
        assert family.name not in found, f"{family.name} stands apart"
        found[family.name] = [(dict(sample.labels), float(sample.value)) for sample in family.samples]
        labels = [tuple(sorted(one.items())) for one, _ in found[family.name]]
        assert len(labels) == len(set(labels)), f"{family.name} twice"
    return found


def values(text: str) -> dict[str, str]:
    return dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))


def test_every_line_can_be_read_and_every_metric_is_declared_once(run: RunBuilder) -> None:
    text = doctor("metrics", str(run.run.path), "--once").stdout
    lines = text.splitlines()
    declared = [line.split()[2] for line in lines if line.startswith("# TYPE")]
    assert len(declared) == len(set(declared)) > 10
    for line in lines:
        assert line.startswith("# TYPE") or LINE.match(line), line
    found = values(text)
    assert found['doctor_step{run="done"}'] == "100"
    assert found['doctor_status{run="done",status="completed"}'] == "1"
    assert found['doctor_status{run="done",status="running"}'] == "0"
    assert found['doctor_evaluation{run="done",metric="accuracy"}'] == "0.96"
    assert found['doctor_gpu_utilization_ratio{run="done",gpu="0",name="NVIDIA GeForce RTX 4090"}'] == "0.97"
    assert 'reason="sw-thermal"' in text


def test_what_is_not_known_has_no_line_and_names_are_escaped(tmp_path: Path) -> None:
    from doctor.watching import RunWatcher

    run = RunBuilder(tmp_path / "new").start().steps(1, loss=lambda step: float("nan"))
    run.gpu(gpus=[{"index": 0, "name": 'a "card"\\\nof mine'}])
    text = metrics_text('a"b\n', RunWatcher(run.run).poll(), "running", 0.0)
    assert 'doctor_loss{run="a\\"b\\n"} NaN' in text
    assert "gpu_power" not in text
    assert fold(()).step == 0
    assert all(line.startswith("#") or LINE.match(line) for line in text.splitlines())


def test_prometheus_s_own_parser_reads_all_of_it(run: RunBuilder) -> None:
    found = parsed(doctor("metrics", str(run.run.path), "--once").stdout)
    assert found["doctor_step"] == [({"run": "done"}, 100.0)]
    assert sum(value for _, value in found["doctor_status"]) == 1.0
    assert sum(value for _, value in found["doctor_verdict"]) == 1.0
    (throttled,) = found["doctor_gpu_throttled"]
    assert throttled[0]["reason"] == "sw-thermal"


def test_each_rank_and_each_kind_of_xid_has_its_lines(tmp_path: Path) -> None:
    from doctor.watching import RunWatcher

    run = RunBuilder(tmp_path / "two").start(world_size=2)
    other = EventWriter(run.run.events / "trainer-1.jsonl", "trainer-1", clock=run.clock)
    for step in (1, 2):
        other.write("step", step, seconds=0.5, tokens=100, samples=4, split={"data": 0.1, "forward": 0.2})
    other.close()
    run.steps(3)
    sampler = EventWriter(run.run.events / "sampler.jsonl", "sampler", clock=run.clock)
    sampler.write("sample-xids", source="kernel log")
    for at in (50.0, 70.0):
        sampler.write(
            "xid", number=79, fault="hardware", meaning="GPU has fallen off the bus", gpu_index=1, at=at
        )
    sampler.write("xid", number=13, fault="application", at=60.0)
    sampler.close()
    found = parsed(metrics_text("two", RunWatcher(run.run).poll(), "running", run.clock()))
    assert ({"run": "two", "rank": "1"}, 2.0) in found["doctor_rank_step"]
    assert {labels["rank"] for labels, _ in found["doctor_rank_step_seconds"]} == {"0", "1"}
    own = {labels["rank"]: value for labels, value in found["doctor_rank_own_seconds"]}
    assert own["1"] == pytest.approx(0.3)
    assert sorted(
        (labels["gpu"], labels["xid"], labels["fault"], at)
        for labels, at in found["doctor_gpu_xid_timestamp_seconds"]
    ) == [
        ("", "13", "application", 60.0),
        ("1", "79", "hardware", 70.0),
    ]
    assert found["doctor_xids_watched"] == [({"run": "two", "source": "kernel log"}, 1.0)]


def test_where_nobody_can_see_an_xid_that_is_said() -> None:
    state = fold(
        [RunEvent(seq=0, t=1.0, source="sampler", kind="sample-xids", data={"why": "not permitted"})]
    )
    assert parsed(metrics_text("a", state, "running", 2.0))["doctor_xids_watched"] == [
        ({"run": "a", "source": ""}, 0.0)
    ]


@pytest.fixture
def served(run: RunBuilder) -> Iterator[tuple[RunBuilder, int, subprocess.Popen[str]]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "doctor", "metrics", str(run.run.path), "--port", "0"],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    port = int(process.stdout.readline().rpartition(":")[2].partition("/")[0])
    yield run, port, process
    process.kill()
    process.wait()


def ask(port: int, path: str = "/metrics", host: str = "") -> tuple[int, str, str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    connection.request("GET", path, headers={"Host": host or f"127.0.0.1:{port}"})
    answer = connection.getresponse()
    return answer.status, answer.headers.get("Content-Type", ""), answer.read().decode()


def test_it_follows_the_run_and_ends_on_ctrl_c(served: tuple[RunBuilder, int, subprocess.Popen[str]]) -> None:
    run, port, process = served
    status, kind, text = ask(port)
    assert (status, kind) == (200, "text/plain; version=0.0.4; charset=utf-8")
    assert values(text)['doctor_step{run="done"}'] == "100"
    run.start().steps(1, first=101)
    assert values(ask(port)[2])['doctor_step{run="done"}'] == "101"
    process.send_signal(signal.SIGINT)
    assert process.wait(20) == 130


@pytest.mark.parametrize(
    ("path", "host"),
    [("/etc/passwd", ""), ("/metrics", "evil.example")],
    ids=["another path", "another name"],
)
def test_only_what_is_offered_is_answered(
    served: tuple[RunBuilder, int, subprocess.Popen[str]], path: str, host: str
) -> None:
    assert ask(served[1], path, host)[0] == 404


def test_connections_that_say_nothing_or_break_off_keep_nobody_out(
    served: tuple[RunBuilder, int, subprocess.Popen[str]],
) -> None:
    _, port, process = served
    silent = [socket.create_connection(("127.0.0.1", port)) for _ in range(200)]
    threads = int(Path(f"/proc/{process.pid}/status").read_text().partition("Threads:")[2].split()[0])
    assert threads <= MOST_AT_ONCE + 4
    for connection in silent:
        connection.close()
    for words in (
        b"GET /metrics HTTP/1.0\r\n",
        b"\x16\x03\x01" * 1000,
        b"GET " + b"/" * 100_000 + b" HTTP/1.1\r\n\r\n",
    ):
        with socket.create_connection(("127.0.0.1", port)) as connection, suppress(OSError):
            connection.sendall(words)
    end = time.monotonic() + 30
    status = 0
    while status != 200 and time.monotonic() < end:
        with suppress(OSError, http.client.HTTPException):
            status = ask(port)[0]
    assert status == 200


def test_a_port_that_is_taken_is_named(served: tuple[RunBuilder, int, subprocess.Popen[str]]) -> None:
    run, port, _ = served
    done = doctor("metrics", str(run.run.path), "--port", str(port))
    assert done.returncode == 2
    assert str(port) in done.stderr and "--port" in done.stderr


@pytest.mark.parametrize(
    "arguments", [("nowhere",), ("--port", "70000")], ids=["no such run", "no such port"]
)
def test_what_cannot_be_served_is_a_usage_error(arguments: tuple[str, ...]) -> None:
    done = doctor("metrics", *arguments)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
