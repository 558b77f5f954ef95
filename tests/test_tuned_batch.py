"""``train.micro_batch_size = "auto"``: what doctor tune found for this model and device, as an equal part of the batch."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import msgspec
import pytest

from doctor.card_state import CPU
from doctor.corrections import Tuned, key_of, remember, store_path
from doctor.machine import with_facts
from doctor.model import Container, Host, Python, Reading, Snapshot, Torch
from doctor.tuned_batch import facts_for
from runner.choices import tuned_micro_batch
from runner.estimate import MemoryRequest
from runner.plan import make_plan
from runner.profile import load_profile
from tests.runner.tiny import PROFILE

GIB = 1 << 30


@pytest.mark.parametrize(
    ("batch", "tuned", "micro"),
    [
        pytest.param(32, 100, 32, id="all of it fits"),
        pytest.param(32, 20, 16, id="equal parts, not twenty and twelve"),
        pytest.param(30, 20, 15, id="a half"),
        pytest.param(31, 20, 1, id="a prime has no other part"),
        pytest.param(32, 0, 32, id="nobody tried"),
    ],
)
def test_the_micro_batch_is_the_largest_equal_part_that_was_found_to_fit(
    batch: int, tuned: int, micro: int
) -> None:
    found, why = tuned_micro_batch(batch, tuned)
    assert found == micro
    assert "doctor tune" in str(why)


@pytest.fixture
def machine() -> Snapshot:
    host = Host(memory_total_bytes=16 * GIB, memory_available_bytes=8 * GIB, cpu_count=2)
    bare = msgspec.structs.replace(_empty(), label="here")
    return with_facts(
        bare, host=Reading(status="ok", value=host), container=Reading(status="ok", value=Container()),
        python=Reading(status="ok", value=Python(executable="/usr/bin/python3", version="3.11.7")),
        torch=Reading(status="ok", value=Torch(version="2.13.0+cpu")),
    )  # fmt: skip


def _empty() -> Snapshot:
    from doctor.model import Facts

    return Snapshot(taken_at=datetime.now(timezone.utc).isoformat(), facts=Facts())


def kept(environ: dict[str, str], batch: int, record: dict[str, Any], **changes: Any) -> None:
    config = {
        "vocab_size": 200, "model_type": "bert", "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2,
        "intermediate_size": 64, "max_position_embeddings": 64,
    }  # fmt: skip
    request = MemoryRequest(
        config=config, batch_size=8, sequence_length=32, optimizer="adamw", accumulation=2, device="cpu"
    )
    card, torch = changes.pop("card", CPU), changes.pop("torch", "2.13.0+cpu")
    key = key_of(msgspec.structs.replace(request, **changes), card, torch)
    tuned = Tuned(key=key, at="2026-11-30T10:00:00+00:00", length=32, batch=batch, process_bytes=1, limit_bytes=2, complete=True)  # fmt: skip
    remember(store_path(environ), msgspec.structs.replace(tuned, **record))


@pytest.mark.parametrize(
    ("micro", "changes", "record", "batch", "taken"),
    [
        pytest.param('"auto"', {}, {}, 5, 4, id="found for this very model"),
        pytest.param('"auto"', {}, {}, None, 8, id="never tried: the whole batch"),
        pytest.param('"auto"', {"precision": "bf16"}, {}, 5, 8, id="tried in another precision only"),
        pytest.param('"auto"', {"accumulation": 1}, {}, 5, 8, id="tried only with the whole batch at once"),
        pytest.param('"auto"', {}, {"capped": True}, 5, 8, id="found under a limit that was asked for"),
        pytest.param('"auto"', {}, {"process_bytes": 9 * GIB}, 5, 8, id="others hold now what it took"),
        pytest.param("2", {}, {}, 5, 2, id="asked for otherwise"),
    ],
)
def test_a_profile_that_leaves_it_to_us_takes_what_was_found(
    tmp_path: Path,
    machine: Snapshot,
    micro: str,
    changes: dict[str, Any],
    record: dict[str, Any],
    batch: int | None,
    taken: int,
) -> None:
    environ = {"DOCTOR_STATE_DIR": str(tmp_path / "state")}
    if batch is not None:
        kept(environ, batch, record, **changes)
    (tmp_path / "tiny.toml").write_text(PROFILE)
    profile = load_profile(tmp_path / "tiny.toml", [f"train.micro_batch_size={micro}"])
    plan = make_plan(profile, facts_for(profile, machine, environ), "")
    assert plan.settings.micro_batch_size == taken


@pytest.mark.parametrize(
    ("changes", "record", "words"),
    [
        pytest.param({}, {"length": 16}, "at 16 tokens, and 32 are asked for", id="shorter samples"),
        pytest.param({"precision": "bf16"}, {}, "another way of training (precision)", id="another precision"),
        pytest.param({}, {"capped": True}, "under a limit that was asked for", id="a limit of the asker's"),
        pytest.param({}, {"process_bytes": 9 * GIB}, "held 9.0 GB, and 8.0 GB are free now", id="others hold it now"),
        pytest.param({"torch": "2.12.0+cpu"}, {}, "with torch 2.12.0+cpu, and this is 2.13.0+cpu", id="another torch"),
        pytest.param({"card": "NVIDIA A100"}, {}, "on NVIDIA A100, which says nothing of CPU", id="another card"),
    ],
)  # fmt: skip
def test_what_was_found_for_something_else_is_not_taken_and_the_plan_says_why(
    tmp_path: Path, machine: Snapshot, changes: dict[str, Any], record: dict[str, Any], words: str
) -> None:
    environ = {"DOCTOR_STATE_DIR": str(tmp_path / "state")}
    kept(environ, 5, record, **changes)
    (tmp_path / "tiny.toml").write_text(PROFILE)
    profile = load_profile(tmp_path / "tiny.toml", ['train.micro_batch_size="auto"'])
    plan = make_plan(profile, facts_for(profile, machine, environ), "")
    assert plan.settings.micro_batch_size == 8
    why = next(one.why for one in plan.decisions if one.name == "train.micro_batch_size")
    assert words.lower() in str(why).lower()
