"""Driver and cards on the stand-in NVML and on recorded trees: absent, failed and ok are never confused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from doctor.model import Driver, Gpus, Reading
from doctor.probes import driver
from tests.nvml.build import has_compiler, read_scenario, write_scenario
from tests.probes.nvml_machines import bare_machine, context_on, driver_files, pci_device, write

pytestmark = pytest.mark.skipif(
    not has_compiler(), reason="the stand-in NVML is C, and there is no compiler here"
)


def driver_of(reading: Reading[Driver]) -> Driver:
    assert reading.status == "ok", reading
    assert reading.value is not None
    return reading.value


def gpus_of(reading: Reading[Gpus]) -> Gpus:
    assert reading.status == "ok", reading
    assert reading.value is not None
    return reading.value


# row: the Gpu's field, the scenario's key, and how the one is made of the other
FIELDS: list[tuple[str, str, Callable[[str], object]]] = [
    ("name", "name", str),
    ("uuid", "uuid", str),
    ("compute_capability", "compute_capability", str),
    ("memory_total_bytes", "memory_total_mib", lambda mib: int(mib) << 20),
    ("memory_used_bytes", "memory_used_mib", lambda mib: int(mib) << 20),
    ("memory_reserved_bytes", "memory_reserved_mib", lambda mib: int(mib) << 20),
    ("utilization_pct", "utilization_pct", float),
    ("temperature_c", "temperature_c", float),
    ("temperature_slowdown_c", "temperature_threshold_c.1", float),
    ("power_w", "power_mw", lambda mw: int(mw) / 1000),
    ("power_limit_w", "power_limit_mw", lambda mw: int(mw) / 1000),
    ("power_default_limit_w", "power_default_limit_mw", lambda mw: int(mw) / 1000),
    ("sm_clock_mhz", "clock_mhz.1", float),
    ("mig_enabled", "mig", lambda text: text == "1"),
    ("ecc_enabled", "ecc", lambda text: text == "1"),
    ("ecc_uncorrected_volatile", "ecc_uncorrected_volatile", int),
    ("ecc_uncorrected_aggregate", "ecc_uncorrected_aggregate", int),
    ("row_remap_pending", "remapped_rows", lambda text: text.split()[2] == "1"),
    ("row_remap_failed", "remapped_rows", lambda text: text.split()[3] == "1"),
    ("pcie_generation", "pcie_generation", int),
    ("pcie_generation_max", "pcie_generation_max", int),
    ("pcie_width", "pcie_width", int),
    ("pcie_width_max", "pcie_width_max", int),
    ("persistence_mode", "persistence", lambda text: text == "1"),
    ("performance_state", "performance_state", lambda text: f"P{text}"),
]


@pytest.mark.parametrize(
    "scenario", ["healthy-4090", "8xh100", "busy-24g", "mig", "future-card", "throttled"]
)
def test_every_value_is_the_scenarios_and_every_gap_has_a_reason(scenario: str, tmp_path: Path) -> None:
    lines = read_scenario(scenario)
    context = context_on(scenario, bare_machine(tmp_path))
    cards = gpus_of(driver.probe_gpus(context)).items
    assert len(cards) == int(lines["gpus"])
    for card in cards:
        for field, key, convert in FIELDS:
            given = lines.get(f"gpu{card.index}.{key}", lines.get(f"gpu.{key}"))
            assert getattr(card, field) == (None if given is None else convert(given)), field
            assert (field in card.unread) == (given is None), field
    assert driver_of(driver.probe(context)).version == lines["driver_version"]
    assert driver_of(driver.probe(context)).cuda_version == lines["cuda_version"]


def test_eight_h100_are_joined_by_nvlink_and_their_fabric_is_up(tmp_path: Path) -> None:
    context = context_on("8xh100", bare_machine(tmp_path))
    assert gpus_of(driver.probe_gpus(context)).topology_worst_link == "NV18"
    assert driver_of(driver.probe(context)).fabric_state == "Completed"
    assert gpus_of(driver.probe_gpus(context)).items[2].pci_address == "0000:0a:00.0"


def test_one_card_whose_fabric_is_not_up_decides_for_all(tmp_path: Path) -> None:
    scenario = write_scenario(tmp_path / "s.conf", "8xh100", {"gpu5.fabric_state": 2})
    assert driver_of(driver.probe(context_on(scenario, bare_machine(tmp_path)))).fabric_state == "In Progress"


@pytest.mark.parametrize(
    ("index", "reasons"), [(0, ("hw-slowdown", "hw-thermal")), (1, ("power-cap", "power-brake"))]
)
def test_throttle_bits_are_named(index: int, reasons: tuple[str, ...], tmp_path: Path) -> None:
    cards = gpus_of(driver.probe_gpus(context_on("throttled", bare_machine(tmp_path)))).items
    assert cards[index].throttle_reasons == reasons


def test_a_future_card_keeps_what_is_known_and_names_what_is_not(tmp_path: Path) -> None:
    (card,) = gpus_of(driver.probe_gpus(context_on("future-card", bare_machine(tmp_path)))).items
    assert card.compute_capability == "14.3"
    assert card.throttle_reasons == ("power-cap", "unknown-0x100000")
    assert card.recovery_action == "unknown-42"
    assert card.temperature_c == 41.0, "read through the call that replaced the one that is gone"
    assert card.error == ""


def test_a_lost_card_says_so_and_the_others_still_answer(tmp_path: Path) -> None:
    cards = gpus_of(driver.probe_gpus(context_on("lost-card", bare_machine(tmp_path)))).items
    assert [card.error_code for card in cards] == [None, None, 15, 15]
    assert "lost" in cards[2].error.lower()
    assert cards[3].name, "a card that is lost while it is asked keeps what it had said"
    assert cards[1].row_remap_pending is True
    assert cards[1].recovery_action == "gpu-reset"
    assert cards[0].recovery_action == "none"


# ---------------------------------------------------------------------------------------------- absent, failed, ok
def test_a_machine_without_any_trace_reads_absent(tmp_path: Path) -> None:
    context = context_on("none", bare_machine(tmp_path))
    assert driver.probe(context).status == "absent"
    assert driver.probe_gpus(context).status == "absent"
    assert driver.probe_processes(context).status == "absent"


def test_a_hung_driver_keeps_what_proc_and_sys_gave(tmp_path: Path) -> None:
    context = context_on("hung", write(tmp_path, driver_files()))
    read = driver_of(driver.probe(context))
    assert (read.version, read.kernel_module_version, read.pci_gpu_count) == ("550.54.15", "550.54.15", 1)
    assert (read.nvml_error, read.hung) == (None, True)
    assert "NVML gave no answer" in str(read.unread["nvml_error"])
    assert "device_nodes" in read.unread
    cards = driver.probe_gpus(context)
    assert cards.status == "failed"
    assert "NVML gave no answer" in str(cards.why)
    assert cards.others[0].value == "NVIDIA GeForce RTX 4090"
    assert driver.probe_processes(context).status == "failed"


def test_cards_that_answered_before_one_hung_are_kept(tmp_path: Path) -> None:
    scenario = write_scenario(tmp_path / "s.conf", "8xh100", {"gpu3.hang.nvmlDeviceGetUtilizationRates": 1})
    cards = gpus_of(driver.probe_gpus(context_on(scenario, bare_machine(tmp_path))))
    assert [card.index for card in cards.items] == [0, 1, 2]
    assert "NVML gave no answer" in str(cards.unread["items"])


def test_a_crash_inside_nvml_is_said_and_costs_nothing_else(tmp_path: Path) -> None:
    scenario = write_scenario(tmp_path / "s.conf", "healthy-4090", {"crash.nvmlInitWithFlags": 1})
    context = context_on(scenario, write(tmp_path, driver_files()))
    assert "SIGSEGV" in str(driver.probe_gpus(context).why)
    assert driver_of(driver.probe(context)).version == "550.54.15"


def test_library_and_module_that_differ_are_both_kept(tmp_path: Path) -> None:
    context = context_on("mismatch", write(tmp_path, driver_files("550.54.15")))
    reading = driver.probe(context)
    read = driver_of(reading)
    assert (read.nvml_error, read.nvml_library_version, read.kernel_module_version) == (
        18,
        "570.124.06",
        "550.54.15",
    )
    assert read.version == "570.124.06"
    assert {answer.source: answer.value for answer in reading.others} == {
        "/sys/module/nvidia/version": "550.54.15",
        "/proc/driver/nvidia/version": "550.54.15",
    }
    assert driver.probe_gpus(context).status == "failed"


def test_a_module_that_is_not_loaded_is_a_fact_and_no_card_is_no_failure(tmp_path: Path) -> None:
    context = context_on("not-loaded", bare_machine(tmp_path))
    assert driver_of(driver.probe(context)).nvml_error == 9
    assert driver.probe_gpus(context).status == "absent"


def test_a_module_that_is_not_loaded_with_a_card_on_the_bus_is_a_failure(tmp_path: Path) -> None:
    context = context_on("not-loaded", write(tmp_path, pci_device("0000:01:00.0", "0x10de", "0x030200")))
    assert driver.probe_gpus(context).status == "failed"
    assert driver_of(driver.probe(context)).pci_gpu_count == 1


def test_a_container_without_a_card_on_a_gpu_host_reads_absent_and_says_why(tmp_path: Path) -> None:
    files = {name: text for name, text in driver_files().items() if not name.startswith("/dev/")}
    context = context_on("none", write(tmp_path, files))
    cards = driver.probe_gpus(context)
    assert cards.status == "absent"
    assert "550.54.15" in str(cards.why)
    read = driver_of(driver.probe(context))
    assert read.nvml_error == 12
    assert read.device_nodes == dict.fromkeys(("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia0"), "ENOENT")


def test_a_missing_library_beside_a_card_reads_failed(tmp_path: Path) -> None:
    cards = driver.probe_gpus(context_on("none", write(tmp_path, driver_files())))
    assert cards.status == "failed"
    assert "libnvidia-ml.so.1" in str(cards.why)


# ---------------------------------------------------------------------------------------------- single facts
def test_device_files_are_opened_and_what_is_not_cudas_is_left_alone(tmp_path: Path) -> None:
    root = write(tmp_path, driver_files())
    (root / "dev/nvidia-uvm").unlink()
    (root / "dev/nvidia-uvm").symlink_to("nvidia-uvm")
    read = driver_of(driver.probe(context_on("healthy-4090", root)))
    assert read.device_nodes == {"/dev/nvidia0": "", "/dev/nvidiactl": "", "/dev/nvidia-uvm": "ELOOP"}


def test_a_container_given_the_fourth_card_is_not_missing_the_first(tmp_path: Path) -> None:
    root = write(tmp_path, {"/dev/nvidia3": "", "/dev/nvidiactl": ""})
    read = driver_of(driver.probe(context_on("healthy-4090", root)))
    assert read.device_nodes == {"/dev/nvidia3": "", "/dev/nvidiactl": "", "/dev/nvidia-uvm": "ENOENT"}


def test_nvml_that_answers_without_device_files_misses_none(tmp_path: Path) -> None:
    assert driver_of(driver.probe(context_on("healthy-4090", bare_machine(tmp_path)))).device_nodes == {}


def test_another_vendors_card_is_named_on_a_machine_without_nvidia(tmp_path: Path) -> None:
    reading = driver.probe(
        context_on("none", write(tmp_path, pci_device("0000:c1:00.0", "0x1002", "0x038000", "0x74a1")))
    )
    assert reading.status == "absent"
    assert reading.value is not None
    assert reading.value.other_vendor_gpus == ("AMD 1002:74a1 (0000:c1:00.0)",)


@pytest.mark.parametrize(
    ("vendor", "kind", "address"),
    [
        ("0x1a03", "0x030000", "0000:02:00.0"),
        ("0x8086", "0x030000", "0000:00:02.0"),
        ("0x1002", "0x040300", "0000:03:00.1"),
    ],
    ids=["server management screen", "processor graphics", "HDMI audio of a card"],
)
def test_what_is_no_training_card_is_not_named(vendor: str, kind: str, address: str, tmp_path: Path) -> None:
    reading = driver.probe(context_on("none", write(tmp_path, pci_device(address, vendor, kind))))
    assert (reading.status, reading.value) == ("absent", None)


def test_a_compat_libcuda_in_front_is_found_and_does_not_reach_nvml(tmp_path: Path) -> None:
    root = write(tmp_path, driver_files())
    compat = root / "usr/local/cuda/compat"
    compat.mkdir(parents=True)
    (compat / "libcuda.so.560.35.05").write_bytes(b"\x7fELF\x02\x01\x01")
    (compat / "libcuda.so.1").symlink_to("libcuda.so.560.35.05")
    context = context_on("healthy-4090", root, LD_LIBRARY_PATH=str(compat))
    reading = driver.probe(context)
    read = driver_of(reading)
    assert [(answer.source, answer.value) for answer in reading.others] == [
        (str(compat / "libcuda.so.1"), "560.35.05")
    ]
    assert (read.libcuda_path, read.libcuda_version) == (str(compat / "libcuda.so.1"), "560.35.05")
    assert (read.version, read.cuda_version) == ("550.54.15", "12.4")


def test_libcuda_is_found_where_the_loader_finds_it_and_a_32_bit_one_is_passed_over(tmp_path: Path) -> None:
    root = write(tmp_path, driver_files())
    for folder, word in (("first", b"\x01"), ("usr/lib/x86_64-linux-gnu", b"\x02")):
        (root / folder).mkdir(parents=True)
        (root / folder / "libcuda.so.550.54.15").write_bytes(b"\x7fELF" + word)
        (root / folder / "libcuda.so.1").symlink_to("libcuda.so.550.54.15")
    read = driver_of(driver.probe(context_on("healthy-4090", root, LD_LIBRARY_PATH=str(root / "first"))))
    assert read.libcuda_path == str(root / "usr/lib/x86_64-linux-gnu/libcuda.so.1")


def test_no_libcuda_anywhere_is_an_answer(tmp_path: Path) -> None:
    assert (
        driver_of(driver.probe(context_on("healthy-4090", write(tmp_path, driver_files())))).libcuda_path
        == ""
    )


# ---------------------------------------------------------------------------------------------- nvidia-smi, the last fallback
ROW = "0, NVIDIA GeForce RTX 4090, GPU-5c, 00000000:01:00.0, 24564, 3, 24070, 550.54.15"


def nvidia_smi(root: Path, script: str) -> None:
    path = write(root, {"/bin/nvidia-smi": f"#!/bin/sh\n{script}\n"}) / "bin/nvidia-smi"
    path.chmod(0o755)


def test_nvidia_smi_answers_where_nvmls_library_is_missing(tmp_path: Path) -> None:
    nvidia_smi(bare_machine(tmp_path), f'case "$1" in *compute_cap*) echo "{ROW}, 8.9";; esac')
    context = context_on("none", tmp_path)
    (card,) = gpus_of(driver.probe_gpus(context)).items
    assert (card.name, card.memory_total_bytes, card.compute_capability) == (
        "NVIDIA GeForce RTX 4090",
        24564 << 20,
        "8.9",
    )
    assert driver_of(driver.probe(context)).version == "550.54.15"


def test_an_old_nvidia_smi_is_asked_again_without_the_new_field(tmp_path: Path) -> None:
    refusal = 'echo "Field \\"compute_cap\\" is not a valid field to query."; exit 2'
    nvidia_smi(bare_machine(tmp_path), f'case "$1" in *compute_cap*) {refusal};; *) echo "{ROW}";; esac')
    (card,) = gpus_of(driver.probe_gpus(context_on("none", tmp_path))).items
    assert card.compute_capability == ""


def test_nvidia_smi_is_not_asked_where_nvml_answers(tmp_path: Path) -> None:
    nvidia_smi(bare_machine(tmp_path), f"touch {tmp_path}/asked")
    driver.probe_gpus(context_on("mismatch", tmp_path))
    assert not (tmp_path / "asked").exists()


@pytest.mark.parametrize(
    "script", ["exec /bin/sleep 60", "echo NVIDIA-SMI has failed", "exit 9"], ids=["hangs", "talks", "fails"]
)
def test_an_nvidia_smi_that_is_no_help_changes_nothing(script: str, tmp_path: Path) -> None:
    nvidia_smi(bare_machine(tmp_path), script)
    assert driver.probe_gpus(context_on("none", tmp_path)).status == "absent"
