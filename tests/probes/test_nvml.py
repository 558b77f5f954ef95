"""The child that asks NVML: it can be abandoned, holds nothing of ours, and no other pynvml can take its place."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from doctor.model import Gpu, Text
from doctor.probes import driver
from doctor.probes.nvml import NvmlReader, library_environment, look
from doctor.probes.nvml_process import NvmlProcessHandle, NvmlSilent, find_binding
from tests.nvml.build import environment, has_compiler, write_scenario
from tests.probes.nvml_machines import bare_machine, context_on

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(
    not has_compiler(), reason="the stand-in NVML is C, and there is no compiler here"
)


def child_on(scenario: str | Path) -> NvmlProcessHandle:
    binding = find_binding()
    assert binding is not None
    return NvmlProcessHandle(environment(scenario), binding)


def cards_of(sampled: list[Gpu] | Text) -> list[Gpu]:
    assert isinstance(sampled, list), sampled
    return sampled


# ---------------------------------------------------------------------------------------------- abandoned
def test_a_hung_child_holds_no_file_of_ours() -> None:
    ours, theirs = os.pipe()
    os.set_inheritable(theirs, True)
    child = child_on("hung")
    try:
        child.ask({"system": True})
        with pytest.raises(NvmlSilent) as silent:
            list(child.steps(0.5, 10))
        assert silent.value.hung
        held = {str(link.readlink()) for link in Path(f"/proc/{child.pid}/fd").iterdir()}
        mine = {str(Path(f"/proc/self/fd/{number}").readlink()) for number in (1, 2, theirs)} - {"/dev/null"}
        assert len(held) == 3, "two pipes and /dev/null"
        assert not held & mine
        assert os.getsid(child.pid) == child.pid, "a Ctrl-C in the terminal must not reach it"
    finally:
        child.abandon()
        os.close(ours)
        os.close(theirs)


def test_a_check_on_a_hung_driver_answers_and_its_pipe_ends() -> None:
    program = (
        "from doctor.probes import Context, read_facts\n"
        "facts = read_facts(Context(), ['driver', 'gpus', 'gpu_processes'])\n"
        "print(facts.gpus.status, facts.driver.status, facts.gpu_processes.status)\n"
    )
    done = subprocess.run(
        f'{sys.executable} -c "{program}" | cat', shell=True, env=environment("hung"), cwd=ROOT,
        capture_output=True, text=True, timeout=30, check=True,
    )  # fmt: skip
    assert done.stdout.split() == ["failed", "ok", "failed"]
    assert done.stderr == ""


def test_a_driver_that_is_slow_is_not_said_to_hang(tmp_path: Path) -> None:
    scenario = write_scenario(tmp_path / "s.conf", "healthy-4090", {"slow.nvmlInitWithFlags": 2600})
    answer = look(context_on(scenario, bare_machine(tmp_path)))
    assert (answer.why, answer.silent, answer.hung, len(answer.gpus)) == (None, False, False, 1)


def test_a_driver_that_is_too_slow_is_silent_and_not_proven_to_hang(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("doctor.probes.nvml.SILENCE_S", 0.3)
    monkeypatch.setattr("doctor.probes.nvml.LIMIT_S", 1.5)
    scenario = write_scenario(tmp_path / "s.conf", "healthy-4090", {"slow.nvmlInitWithFlags": 60000})
    context = context_on(scenario, bare_machine(tmp_path))
    read = driver.probe(context)
    assert read.value is not None
    assert read.value.hung is None
    assert "takes long to wake" in str(driver.probe_gpus(context).why)


def test_the_abandoned_child_is_told_to_die() -> None:
    child = child_on("hung")
    child.ask({"system": True})
    with pytest.raises(NvmlSilent):
        list(child.steps(0.3, 0.3))
    child.abandon()
    for _ in range(100):
        if not child.alive():
            return
        time.sleep(0.05)
    pytest.fail("it still runs")


# ---------------------------------------------------------------------------------------------- which pynvml
def test_a_pynvml_of_the_users_own_is_not_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pynvml.py").write_text("raise RuntimeError('not NVIDIA')\n")
    (tmp_path / "pynvml").mkdir()
    (tmp_path / "pynvml/__init__.py").write_text("raise RuntimeError('not NVIDIA')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)
    answer = look(context_on("healthy-4090", bare_machine(tmp_path)))
    assert (answer.nvml_error, answer.why, len(answer.gpus)) == (0, None, 1)


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("raise RuntimeError('ha')\n", "RuntimeError: ha"),
        ("x = 1\n", "is not NVIDIA's"),
        ("def broken(:\n", "SyntaxError"),
    ],
)
def test_a_foreign_pynvml_that_is_all_there_is_is_named(
    source: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pynvml.py").write_text(source)
    context = context_on("healthy-4090", bare_machine(tmp_path))
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    answer = look(context)
    assert says in str(answer.why)
    assert str(tmp_path / "pynvml.py") in str(answer.why)
    assert (answer.nvml_error, answer.hung, answer.gpus) == (None, False, [])


def test_an_old_binding_costs_only_what_it_cannot_ask(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    binding = find_binding()
    assert binding is not None
    gone = (
        "nvmlDeviceGetComputeRunningProcesses_v3",
        "nvmlDeviceGetRemappedRows",
        "nvmlMemory_v2",
        "nvmlSystemGetNVMLVersion",
    )
    (tmp_path / "pynvml.py").write_text(f"{binding.read_text()}\ndel {', '.join(gone)}\n")
    context = context_on("8xh100", bare_machine(tmp_path))
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    answer = look(context)
    assert (answer.why, answer.driver_version, answer.nvml_version, len(answer.gpus)) == (
        None,
        "570.86.15",
        None,
        8,
    )
    assert answer.gpus[0].memory_total_bytes == 81559 << 20
    assert "row_remap_pending" in answer.gpus[0].unread
    assert [process.pid for process in answer.processes] == [481516]


@pytest.mark.parametrize(
    "record_bytes", [24, 32], ids=["today's record", "the record of drivers 535.54 and 535.86"]
)
def test_processes_are_read_whichever_record_the_driver_writes(record_bytes: int, tmp_path: Path) -> None:
    listed = "gpu0.compute_process = 12 100\ngpu0.compute_process = 34 -\ngpu0.compute_process = 56 0\n"
    scenario = write_scenario(
        tmp_path / "s.conf", "healthy-4090", f"process_record_bytes = {record_bytes}\n{listed}"
    )
    answer = look(context_on(scenario, bare_machine(tmp_path)))
    assert [(one.pid, one.used_bytes) for one in answer.processes] == [(12, 100 << 20), (34, None), (56, 0)]


def test_a_driver_that_lists_no_processes_says_so(tmp_path: Path) -> None:
    scenario = write_scenario(
        tmp_path / "s.conf", "healthy-4090", {"error.nvmlDeviceGetComputeRunningProcesses_v3": 3}
    )
    reading = driver.probe_processes(context_on(scenario, bare_machine(tmp_path)))
    assert reading.status == "failed"
    assert "Not Supported" in str(reading.why)


def test_no_pynvml_at_all_says_what_to_reinstall(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    context = context_on("healthy-4090", bare_machine(tmp_path))
    monkeypatch.setattr(sys, "path", [str(tmp_path / "nothing")])
    assert "nvidia-ml-py" in str(look(context).why)


def test_only_folders_of_a_compat_library_are_taken_out(tmp_path: Path) -> None:
    for folder, names in (
        ("compat", ["libcuda.so.1"]),
        ("driver", ["libcuda.so.1", "libnvidia-ml.so.1"]),
        ("other", []),
    ):
        (tmp_path / folder).mkdir()
        for name in names:
            (tmp_path / folder / name).touch()
    folders = [str(tmp_path / name) for name in ("compat", "driver", "other")]
    cleaned = library_environment({"LD_LIBRARY_PATH": ":".join(folders), "HOME": "/h"})
    assert cleaned == {"LD_LIBRARY_PATH": ":".join(folders[1:]), "HOME": "/h"}


# ---------------------------------------------------------------------------------------------- the sampler's reader
def test_a_reader_follows_a_card_that_changes(tmp_path: Path) -> None:
    scenario = write_scenario(tmp_path / "s.conf", "healthy-4090", {"gpu.temperature_c": 50})
    reader = NvmlReader(environment(scenario))
    try:
        (before,) = cards_of(reader.sample(10))
        write_scenario(scenario, "healthy-4090", {"gpu.temperature_c": 81, "gpu.clock_event_reasons": 0x40})
        (after,) = cards_of(reader.sample(10))
    finally:
        reader.close()
    assert (before.temperature_c, after.temperature_c) == (50, 81)
    assert after.throttle_reasons == ("hw-thermal",)
    assert after.compute_capability == before.compute_capability == "8.9", "what was read once is kept"


def test_a_card_lost_during_a_run_keeps_its_name(tmp_path: Path) -> None:
    scenario = write_scenario(tmp_path / "s.conf", "8xh100", {})
    reader = NvmlReader(environment(scenario))
    try:
        cards_of(reader.sample(10))
        write_scenario(scenario, "8xh100", {"gpu6.error.nvmlDeviceGetHandleByIndex_v2": 15})
        cards = cards_of(reader.sample(10))
    finally:
        reader.close()
    assert [card.index for card in cards if card.error] == [6]
    assert (cards[6].name, cards[6].memory_used_bytes) == ("NVIDIA H100 80GB HBM3", None)


def test_a_late_answer_is_an_answer_of_its_own_time_only(tmp_path: Path) -> None:
    slow = {"slow.nvmlDeviceGetTemperature": 600, "gpu.temperature_c": 50}
    scenario = write_scenario(tmp_path / "s.conf", "healthy-4090", {})
    reader = NvmlReader(environment(scenario))
    try:
        cards_of(reader.sample(10))
        write_scenario(scenario, "healthy-4090", slow)
        late = reader.sample(0.1)
        assert isinstance(late, Text)
        write_scenario(scenario, "healthy-4090", {"gpu.temperature_c": 77})
        (card,) = cards_of(reader.sample(10))
    finally:
        reader.close()
    assert card.temperature_c == 77


def test_a_hung_driver_costs_the_reader_one_process_not_one_a_sample(tmp_path: Path) -> None:
    reader = NvmlReader(environment("hung"))
    try:
        answers = [reader.sample(0.3) for _ in range(3)]
        pids = {answer.params["pid"] for answer in answers if isinstance(answer, Text)}
    finally:
        reader.close()
    assert all(isinstance(answer, Text) for answer in answers)
    assert len(pids) == 1


def test_a_child_that_died_is_started_anew(tmp_path: Path) -> None:
    scenario = write_scenario(tmp_path / "s.conf", "healthy-4090", {"crash.nvmlDeviceGetName": 1})
    reader = NvmlReader(environment(scenario))
    try:
        died = reader.sample(10)
        assert isinstance(died, Text)
        assert "SIGSEGV" in str(died)
        write_scenario(scenario, "healthy-4090", {})
        assert len(cards_of(reader.sample(10))) == 1
    finally:
        reader.close()


def test_processes_are_listed_at_most_every_two_seconds(tmp_path: Path) -> None:
    now = [100.0]
    scenario = write_scenario(tmp_path / "s.conf", "healthy-4090", {"gpu0.compute_process": "11 100"})
    reader = NvmlReader(environment(scenario), clock=lambda: now[0])
    seen = []
    try:
        for at in (100.0, 101.0, 102.0):
            now[0] = at
            cards_of(reader.sample(10))
            seen.append([process.pid for process in reader.processes])
            write_scenario(scenario, "healthy-4090", {"gpu0.compute_process": "22 100"})
    finally:
        reader.close()
    assert seen == [[11], [11], [22]]


@pytest.mark.parametrize(
    ("scenario", "says"), [("none", "libnvidia-ml.so.1"), ("mismatch", "(18)"), ("not-loaded", "(9)")]
)
def test_a_reader_without_a_driver_says_why(scenario: str, says: str) -> None:
    reader = NvmlReader(environment(scenario))
    try:
        answer = reader.sample(10)
    finally:
        reader.close()
    assert isinstance(answer, Text)
    assert says in str(answer)
