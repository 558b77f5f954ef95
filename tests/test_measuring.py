"""Real steps in a child: each way it can answer, die or hang is an answer, and the fence holds."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from doctor.card_state import CardState, cpu_state, limited
from doctor.machine import load_snapshot
from doctor.measuring import Bench, refusal
from doctor.measuring_place import place_for
from doctor.memory_troubles import CannotMeasure, OutOfTime
from doctor.model import Container, Facts, Host, Reading
from doctor.plan_options import PlanOptions
from doctor.tuning import growing
from runner.child.memory_guard import EXIT_OVER_LIMIT
from runner.estimate import MemoryRequest

ROOT = Path(__file__).parent.parent
MB = 1 << 20
SMALL = {"model_type": "bert", "vocab_size": 2000, "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2,
         "intermediate_size": 128, "attention_probs_dropout_prob": 0.0}  # fmt: skip
READY = '{"ready": true, "limit_bytes": 1000, "device": "a card", "torch": "2.13.0"}'


def asked(**changes: Any) -> MemoryRequest:
    return MemoryRequest(
        **{"config": SMALL, "batch_size": 8, "sequence_length": 64, "device": "cpu", **changes}
    )


def bench(tmp_path: Path, script: str, limit_s: float = 20.0) -> Bench:
    """A bench whose interpreter is a shell script."""
    fake = tmp_path / "python"
    fake.write_text("#!/bin/sh\n" + script)
    fake.chmod(0o755)
    return Bench(asked(), str(fake), dict(os.environ), tmp_path, 0, limit_s)


def test_one_child_answers_again_and_again(tmp_path: Path) -> None:
    script = f'echo \'{READY}\'\nwhile read batch; do echo "{{\\"batch\\": $batch, \\"fits\\": true, \\"peak_bytes\\": $$}}"; done'
    one = bench(tmp_path, script)
    found = [one.measure(batch) for batch in (1, 2, 4)]
    one.close()
    assert [measured.batch for measured in found] == [1, 2, 4]
    assert len({measured.peak_bytes for measured in found}) == 1, "the same process each time"
    assert (one.device, one.torch, one.limit_bytes) == ("a card", "2.13.0", 1000)


@pytest.mark.parametrize(
    ("end", "words"),
    [
        pytest.param("kill -9 $$", "SIGKILL", id="killed by the kernel"),
        pytest.param(f"exit {EXIT_OVER_LIMIT}", "more than the limit", id="ended by its own fence"),
        pytest.param("echo '{\"error\": \"CUDA out of memory\", \"short\": true}'; sleep 9", "while the model was made", id="out of memory"),
    ],
)  # fmt: skip
def test_a_child_that_dies_of_memory_says_that_it_does_not_fit_and_another_takes_its_place(
    tmp_path: Path, end: str, words: str
) -> None:
    script = f'echo \'{READY}\'\nread batch\n[ $batch -lt 4 ] || {{ {end}; }}\necho "{{\\"batch\\": $batch, \\"fits\\": true}}"\nread more'
    one = bench(tmp_path, script)
    large, small = one.measure(4), one.measure(2)
    one.close()
    assert not large.fits and words in large.why
    assert small.fits


@pytest.mark.parametrize(
    ("script", "words"),
    [
        pytest.param("echo '{\"error\": \"ImportError: no transformers\", \"short\": false}'", "no transformers", id="a library's own words"),
        pytest.param("echo 'cannot open libcuda' >&2; exit 3", "exit status 3: cannot open libcuda", id="its last words"),
        pytest.param("kill -11 $$", "SIGSEGV", id="a crash is no lack of memory"),
    ],
)  # fmt: skip
def test_what_is_no_lack_of_memory_is_an_error(tmp_path: Path, script: str, words: str) -> None:
    one = bench(tmp_path, script)
    with pytest.raises(CannotMeasure) as caught:
        one.measure(1)
    one.close()
    assert words in str(caught.value)


def test_a_child_that_hangs_is_ended_at_the_limit(tmp_path: Path) -> None:
    one = bench(tmp_path, f"echo $$ > pid; echo '{READY}'\nread batch\nexec sleep 60", limit_s=1.0)
    with pytest.raises(OutOfTime):
        one.measure(1)
    one.close()
    assert not Path("/proc", (tmp_path / "pid").read_text().strip()).exists()


def test_an_interpreter_that_is_not_there_is_named(tmp_path: Path) -> None:
    one = Bench(asked(), "/nowhere/python", {}, tmp_path, 0, 1.0)
    with pytest.raises(CannotMeasure) as caught:
        one.measure(1)
    one.close()
    assert "/nowhere/python" in str(caught.value)


@pytest.mark.train
def test_real_steps_grow_with_the_batch_and_end_at_the_limit(tmp_path: Path) -> None:
    one = Bench(asked(), sys.executable, dict(os.environ), tmp_path, 900 * MB, 300.0)
    small, large, beyond = (one.measure(batch) for batch in (4, 256, 16384))
    one.close()
    assert small.fits and large.fits
    assert small.peak_bytes < large.peak_bytes < large.process_bytes < 900 * MB
    assert not beyond.fits
    assert "memory" in beyond.why.lower()
    assert list(tmp_path.iterdir()) == [], "nothing is written where it was started"


GUARD = "import sys; sys.path.insert(0, {root!r}); from runner.child import memory_guard as g; "


def guarded(program: str) -> subprocess.CompletedProcess[str]:
    code = GUARD.format(root=str(ROOT)) + program
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )


def test_memory_beyond_the_fence_is_refused() -> None:
    done = guarded("g.fence(50 << 20); print('a'); x = bytearray(200 << 20)")
    assert done.stdout == "a\n"
    assert "MemoryError" in done.stderr


def test_memory_within_the_fence_is_given() -> None:
    assert guarded("g.fence(400 << 20); x = bytearray(200 << 20); print(len(x))").stdout == f"{200 << 20}\n"


def test_a_process_that_the_kernel_did_not_stop_ends_itself() -> None:
    done = guarded(
        "import time; held = iter([1, 1 << 40]); g.fence(1 << 30, lambda _: next(held)); time.sleep(20)"
    )
    assert done.returncode == EXIT_OVER_LIMIT


def test_the_high_water_mark_begins_anew() -> None:
    done = guarded(
        "x = bytearray(300 << 20); del x; print(g.begin_anew(), g.status_bytes('VmHWM') < 200 << 20)"
    )
    assert done.stdout in ("True True\n", "False False\n"), "or this kernel says that it cannot"


@pytest.mark.parametrize(
    ("batch", "sizes"), [(1, [1]), (2, [1, 2]), (8, [1, 2, 4, 8]), (24, [1, 2, 4, 8, 16, 24])]
)
def test_batches_grow_up_to_the_one_asked_for(batch: int, sizes: list[int]) -> None:
    assert growing(batch) == sizes


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        pytest.param({"cards": 2}, "several cards", id="two cards"),
        pytest.param({"offload": True}, "host's memory", id="offloaded"),
        pytest.param({"offload_parameters": True}, "host's memory", id="parameters offloaded"),
        pytest.param({"spread": 2}, "several cards", id="layers over two cards"),
        pytest.param({"optimizer": "adamw-8bit"}, "bitsandbytes", id="8 bits"),
    ],
)
def test_what_one_device_cannot_show_is_refused(changes: dict[str, Any], word: str) -> None:
    refused = refusal(asked(**changes))
    assert refused is not None and word in str(refused)


def test_a_recorded_machine_is_not_measured_on() -> None:
    snapshot = load_snapshot(ROOT / "tests" / "machines" / "healthy-4090-runpod.json")
    with pytest.raises(CannotMeasure) as caught:
        place_for(asked(), snapshot, PlanOptions(recorded=True), 1.0)
    assert "--facts" in str(caught.value)


@pytest.mark.parametrize(
    ("total", "available", "limit", "state"),
    [
        pytest.param(32, 20, None, (32, 20), id="a machine of one's own"),
        pytest.param(512, 400, 64, (64, 64), id="a container with a limit"),
        pytest.param(512, 30, 64, (64, 30), id="neighbours hold more than the limit leaves"),
        pytest.param(None, None, None, None, id="nothing could be read"),
    ],
)
def test_a_cpu_has_the_machines_memory_or_what_its_container_may(
    total: int | None, available: int | None, limit: int | None, state: tuple[int, int] | None
) -> None:
    host = Host(memory_total_bytes=total, memory_available_bytes=available, cpu_flags=("avx512_bf16",))
    container = Container(memory_limit_bytes=limit)
    found = cpu_state(Facts(host=Reading(status="ok", value=host), container=Reading(status="ok", value=container)))  # fmt: skip
    assert ((found.total_bytes, found.free_bytes) if found else None) == state
    assert found is None or found.has_bf16


def test_a_limit_takes_from_what_is_free_and_never_gives() -> None:
    card = CardState(name="CPU", total_bytes=8000, free_bytes=3000)
    assert (limited(card, 2000).total_bytes, limited(card, 2000).free_bytes) == (2000, 2000)
    assert limited(card, 5000).free_bytes == 3000
    assert limited(card, None) == card


@pytest.mark.parametrize(
    ("kind", "expected"), [("d", "1024000000"), ("v", "2048000000")], ids=["ulimit -d", "ulimit -v"]
)
def test_the_sessions_own_limits_bound_what_is_measured(kind: str, expected: str) -> None:
    kilobytes = int(expected) // 1024
    code = "from doctor.measuring_place import own_limit_bytes; print(own_limit_bytes())"
    argv = ["bash", "-c", f'ulimit -{kind} {kilobytes}; exec "$0" -c "{code}"', sys.executable]
    assert subprocess.run(argv, cwd=ROOT, capture_output=True, text=True).stdout.strip() == expected


def test_the_search_begins_where_the_sessions_own_limit_lets_it(monkeypatch: pytest.MonkeyPatch) -> None:
    import doctor.measuring_place
    import doctor.tuning
    from doctor.machine import with_facts
    from doctor.model import Python, Torch

    host = Host(memory_total_bytes=64 << 30, memory_available_bytes=48 << 30, cpu_count=2)
    snapshot = with_facts(
        load_snapshot(ROOT / "tests/machines/healthy-4090-runpod.json"),
        host=Reading(status="ok", value=host), container=Reading(status="ok", value=Container()),
        python=Reading(status="ok", value=Python(executable=sys.executable)), torch=Reading(status="ok", value=Torch(version="2.13.0")),
    )  # fmt: skip
    begun: list[tuple[int | None, int]] = []
    monkeypatch.setattr(doctor.tuning, "tune", lambda _, predicted, place, *__: begun.append((predicted, place.limit_bytes)))  # fmt: skip
    for limit_bytes in (1 << 62, 1 << 30):
        monkeypatch.setattr(doctor.measuring_place, "own_limit_bytes", lambda limit=limit_bytes: limit)
        doctor.tuning.tune_here(asked(), snapshot, PlanOptions(on_cpu=True), {}, 1.0, print)
    (free, most), (less, limit) = begun
    assert (most, limit) == (int((48 << 30) * 0.9), 1 << 30)
    assert free is not None and less is not None and 0 < less < free / 2
