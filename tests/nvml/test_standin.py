"""The stand-in library holds what it promises: the real nvidia-ml-py, in a fresh interpreter, reads each scenario."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.nvml.build import environment, has_compiler, read_scenario, scenario_names, write_scenario

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(
    not has_compiler(), reason="the stand-in NVML is C, and there is no compiler here"
)

REQUIRED = {
    "none", "healthy-4090", "8xh100", "mismatch", "not-loaded", "hung",
    "busy-24g", "mig", "future-card", "lost-card", "throttled",
}  # fmt: skip

READ = """
import json, pynvml as n
try:
    n.nvmlInit()
except n.NVMLError as error:
    print(json.dumps({"error": error.value})); raise SystemExit
cards = []
for index in range(n.nvmlDeviceGetCount()):
    try:
        handle = n.nvmlDeviceGetHandleByIndex(index)
        memory = n.nvmlDeviceGetMemoryInfo(handle)
        cards.append([n.nvmlDeviceGetName(handle), memory.total >> 20, memory.used >> 20, n.nvmlDeviceGetTemperature(handle, 0),
                      [[p.pid, p.usedGpuMemory] for p in n.nvmlDeviceGetComputeRunningProcesses(handle)]])
    except n.NVMLError as error:
        cards.append(error.value)
print(json.dumps({"driver": n.nvmlSystemGetDriverVersion(), "cuda": n.nvmlSystemGetCudaDriverVersion_v2(), "cards": cards}))
"""


def under(scenario: str | Path, *command: str, timeout: float = 30) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, env=environment(scenario), capture_output=True, text=True, timeout=timeout, check=False
    )


def test_every_promised_scenario_is_there() -> None:
    assert set(scenario_names()) >= REQUIRED


@pytest.mark.parametrize(("scenario", "code"), [("none", 12), ("not-loaded", 9), ("mismatch", 18)])
def test_an_init_error_reaches_nvidias_binding(scenario: str, code: int) -> None:
    assert json.loads(under(scenario, sys.executable, "-c", READ).stdout) == {"error": code}


@pytest.mark.parametrize("scenario", ["healthy-4090", "8xh100", "busy-24g", "mig", "throttled"])
def test_nvidias_binding_reads_what_the_scenario_says(scenario: str) -> None:
    lines = read_scenario(scenario)
    said = json.loads(under(scenario, sys.executable, "-c", READ).stdout)
    major, minor = lines["cuda_version"].split(".")
    assert said["driver"] == lines["driver_version"]
    assert said["cuda"] == int(major) * 1000 + int(minor) * 10
    assert len(said["cards"]) == int(lines["gpus"])
    for index, (name, total, used, temperature, _) in enumerate(said["cards"]):
        own = {
            key: lines.get(f"gpu{index}.{key}", lines.get(f"gpu.{key}")) for key in ("name", "temperature_c")
        }
        mib = [
            int(lines.get(f"gpu{index}.memory_{key}_mib", lines[f"gpu.memory_{key}_mib"]))
            for key in ("used", "reserved")
        ]
        assert [name, str(temperature)] == [own["name"], own["temperature_c"]]
        assert (total, used) == (int(lines["gpu.memory_total_mib"]), sum(mib)), (
            "the old call counts reserved memory as used"
        )


def test_processes_come_with_their_memory_or_without_it(tmp_path: Path) -> None:
    scenario = write_scenario(
        tmp_path / "s.conf", "healthy-4090", "gpu0.compute_process = 12 -\ngpu0.compute_process = 7 5\n"
    )
    (card,) = json.loads(under(scenario, sys.executable, "-c", READ).stdout)["cards"]
    assert card[4] == [[12, None], [7, 5 << 20]]


def test_a_lost_card_fails_when_it_is_opened() -> None:
    cards = json.loads(under("lost-card", sys.executable, "-c", READ).stdout)["cards"]
    assert cards[2] == 15
    assert [type(card) for card in cards] == [list, list, int, list]


def test_the_hung_driver_never_answers() -> None:
    with pytest.raises(subprocess.TimeoutExpired):
        under("hung", sys.executable, "-c", READ, timeout=1.0)


def test_any_command_runs_under_a_scenario_by_hand() -> None:
    command = [
        sys.executable,
        "-m",
        "tests.nvml",
        "--scenario",
        "healthy-4090",
        "--",
        sys.executable,
        "-c",
        READ,
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=True)
    assert json.loads(done.stdout)["cards"][0][0] == "NVIDIA GeForce RTX 4090"


def test_the_list_names_every_scenario_with_a_sentence() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.nvml", "--list"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    rows = {line.split()[0]: line.split(None, 1)[1] for line in done.stdout.splitlines()}
    assert set(rows) == set(scenario_names())
    assert all(len(sentence) > 20 for sentence in rows.values())


def test_an_unknown_scenario_is_named_with_the_known_ones() -> None:
    command = [sys.executable, "-m", "tests.nvml", "--scenario", "nope", "--", "true"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 127
    assert "nope" in done.stderr
    assert "healthy-4090" in done.stderr
