"""A recognised failure is confirmed, refuted or left open by the machine it is held against."""

from __future__ import annotations

import pytest

from doctor.explain import explain
from doctor.explain.incident import incident_of
from doctor.model import Driver, Facts, Gpu, Gpus, Reading, Snapshot, Torch, ok, t
from tests.checks.judged import packages

TOO_OLD = (
    "UserWarning: CUDA initialization: The NVIDIA driver on your system is too old (found version 11040)."
)


def machine(driver: str, torch: str, cuda: str) -> Snapshot:
    gpu = Gpu(index=0, name="Tesla T4", compute_capability="7.5", memory_total_bytes=16 << 30)
    facts = Facts(
        driver=ok(Driver(version=driver, nvml_error=0)),
        gpus=ok(Gpus(items=(gpu,))),
        torch=ok(Torch(version=torch, cuda=cuda)),
    )
    return Snapshot(facts=facts)


def test_the_machine_confirms_a_driver_that_is_too_old() -> None:
    (known,) = explain(TOO_OLD, machine("470.182.03", "2.1.0+cu121", "12.1")).known
    assert [finding.id for finding in known.confirmed] == ["driver-too-old-for-torch-cuda"]


def test_a_new_driver_refutes_it() -> None:
    (known,) = explain(TOO_OLD, machine("550.54.15", "2.1.0+cu121", "12.1")).known
    assert (known.confirmed, known.refuted) == ((), ("driver-too-old-for-torch-cuda",))


def test_a_driver_that_could_not_be_read_leaves_it_open() -> None:
    snapshot = Snapshot(
        facts=Facts(
            driver=Reading(status="failed", why=t("no answer")),
            torch=ok(Torch(version="2.1.0+cu121", cuda="12.1")),
        )
    )
    (known,) = explain(TOO_OLD, snapshot).known
    assert known.open == ("driver-too-old-for-torch-cuda",)


UNKNOWN_ARGUMENT = (
    "TypeError: TrainingArguments.__init__() got an unexpected keyword argument 'evaluation_strategy'"
)
OLD_SCRIPT = "from transformers import TrainingArguments\nTrainingArguments(evaluation_strategy='steps')\n"
NEW_SCRIPT = OLD_SCRIPT.replace("evaluation_strategy", "eval_strategy")


def with_transformers(version: str) -> Snapshot:
    return Snapshot(facts=Facts(packages=ok(packages(True, transformers=version))))


@pytest.mark.parametrize(
    ("script", "confirmed", "refuted", "in_script"),
    [
        pytest.param(
            None, ("removed-argument",), (), (), id="no script was given: the log and the versions say it"
        ),
        pytest.param(OLD_SCRIPT, ("removed-argument",), (), (), id="the script has it"),
        pytest.param(NEW_SCRIPT, (), ("removed-argument",), (), id="the script has it not"),
        pytest.param(
            "def broken(:", ("removed-argument",), (), (), id="the script cannot be read: the log says it"
        ),
    ],
)
def test_what_stands_in_a_script_is_looked_for_there(
    script: str | None, confirmed: tuple[str, ...], refuted: tuple[str, ...], in_script: tuple[str, ...]
) -> None:
    given = (script, "train.py") if script is not None else None
    (known,) = explain(UNKNOWN_ARGUMENT, with_transformers("5.2.0"), given).known
    assert tuple(finding.id for finding in known.confirmed) == confirmed
    assert (known.refuted, known.in_script, known.open) == (refuted, in_script, ())


NEW_OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.11 GiB of which "
    "1.19 GiB is free. Process 1 has 77.9 GiB memory in use. Of the allocated memory 61.00 GiB is allocated by PyTorch, and "
    "14.00 GiB is reserved by PyTorch but unallocated."
)
OLD_OOM = (
    "RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 7.79 GiB total capacity; 5.50 GiB already allocated; "
    "5.31 MiB free; 6.00 GiB reserved in total by PyTorch)"
)


@pytest.mark.parametrize(
    ("text", "tried", "allocated", "reserved"),
    [
        pytest.param(NEW_OOM, 2 << 30, 61 << 30, 75 << 30, id="since torch 2.0"),
        pytest.param(OLD_OOM, 20 << 20, int(5.5 * (1 << 30)), 6 << 30, id="before"),
        pytest.param("nothing of the kind", None, None, None, id="no figures"),
    ],
)
def test_an_out_of_memory_tells_its_own_numbers(
    text: str, tried: int | None, allocated: int | None, reserved: int | None
) -> None:
    incident = incident_of(text)
    assert (incident.oom_tried_bytes, incident.torch_allocated_bytes, incident.torch_reserved_bytes) == (
        tried,
        allocated,
        reserved,
    )


def test_fragmentation_is_confirmed_from_the_texts_own_numbers() -> None:
    known = explain(NEW_OOM, machine("550.54.15", "2.8.0+cu128", "12.8")).known
    assert "allocator-fragmentation" in [finding.id for item in known for finding in item.confirmed]
