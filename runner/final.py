"""The end of a run: the last checkpoint, the best weights back where wanted, and a folder that ``from_pretrained``
opens, with its labels, its tokenizer and how good it is."""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from typing import Any

import msgspec
import torch
from accelerate.utils.modeling import get_state_dict_offloaded_model

from runner.adapters import save_with_adapters
from runner.base import check_base
from runner.build import build_model
from runner.checkpoint import put_weights, read_state, take_weights
from runner.deploy.card import model_card
from runner.durable import is_full, publish_folder, seal_folder, what_is_wrong
from runner.inputs import InputError
from runner.text import t
from runner.tokenizer import save_tokenizer
from runner.workbench import Workbench

MAKING = "final.making"
WAIT_FOR_ROOM_S = 1800.0
"""How long a finished model is kept in memory alone for somebody to free some room."""
LOOK_FOR_ROOM_S = 10.0


def finish_run(bench: Workbench) -> tuple[dict[str, float], Path]:
    """Save the end, put the best weights back where wanted, write the model; return its metrics and folder."""
    state = bench.state
    if state.stopped_early:
        bench.journal.note("info", t("stopped early: {count} {count:evaluation|evaluations} without a better one",
                                     count=state.evaluations_since_best))  # fmt: skip
    bench.save_now("end")
    metrics = dict(state.metrics)
    if bench.train.restore_best and state.best_window not in (None, state.windows_done):
        metrics = _restore_best(bench)
    # Of a model cut into parts all ranks give theirs.
    weights = _whole_weights(bench) if bench.engine.placed.in_parts else None
    bench.ranks.wait_for(lambda: _write_when_there_is_room(bench, metrics, weights), everywhere=False)
    return metrics, bench.run.final


def _write_when_there_is_room(
    bench: Workbench, metrics: dict[str, float], weights: dict[str, torch.Tensor] | None
) -> None:
    """Write the model; where the disk is full and nothing else holds its weights, wait for a person to free some.

    Raises:
        InputError: a checkpoint holds them, or nobody did.
    """
    begun, step = time.monotonic(), bench.state.windows_done
    while not _is_written(bench, metrics, weights):
        path = str(bench.run.path)
        shutil.rmtree(bench.run.path / MAKING, ignore_errors=True)
        if bench.saved_at == step:
            raise InputError(t("no room for the model in {path}. The checkpoint of step {step} holds its weights: free some and go on "
                               "with: doctor run --resume RUN", path=path, step=step))  # fmt: skip
        waited = time.monotonic() - begun
        if bench.stop or waited > WAIT_FOR_ROOM_S:
            raise InputError(
                t("no room for the model in {path}, nor for a checkpoint: its weights are lost", path=path)
            )
        if waited < LOOK_FOR_ROOM_S:
            bench.journal.note("warn", t("no room for the model in {path}, and no checkpoint holds its weights: free some; it is tried "
                                         "again for {minutes} {minutes:minute|minutes}", path=path, minutes=round(WAIT_FOR_ROOM_S / 60)))  # fmt: skip
        time.sleep(LOOK_FOR_ROOM_S)


def _is_written(bench: Workbench, metrics: dict[str, float], weights: dict[str, torch.Tensor] | None) -> bool:
    try:
        write_final(bench, metrics, weights)
    except Exception as error:  # safetensors' has no base but Exception
        if not is_full(error):
            raise
        return False
    return True


def _restore_best(bench: Workbench) -> dict[str, float]:
    folder: Path = bench.run.checkpoint(int(bench.state.best_window or 0))
    if not bench.ranks.decided(folder.is_dir()):
        bench.journal.note(
            "warn", t("the best checkpoint {path} is gone: the last weights are kept", path=str(folder))
        )
        return dict(bench.state.metrics)
    if wrong := bench.ranks.told(what_is_wrong(folder) if bench.ranks.is_first else ""):
        text = t("the best checkpoint {path} is damaged ({why}): the last weights are kept",
                 path=str(folder), why=wrong)  # fmt: skip
        bench.journal.note("warn", text)
        return dict(bench.state.metrics)
    bench.load_model(folder)
    return dict(bench.ranks.told(read_state(folder).metrics if bench.ranks.is_first else {}))


def _whole_weights(bench: Workbench) -> dict[str, torch.Tensor]:
    """Return the weights put together from all ranks, tied ones under all their names; on all but the first without their
    numbers. What adapters sit on is not among them: it is opened again."""
    left_out = bench.left_out if bench.plan.profile.model.lora is not None else ()
    weights, aliases = take_weights(bench.engine.bare_model, left_out, bench.ranks.is_first, in_parts=True)
    return {**weights, **{name: weights[kept] for name, kept in aliases.items()}}


def _with_adapters_whole(bench: Workbench, weights: dict[str, torch.Tensor]) -> Any:
    """Return the base model, opened again, with trained adapters.

    Raises:
        InputError: it is not what was trained on any more.
    """
    model, _ = build_model(bench.plan, bench.data.task, bench.data.tokenizer)
    check_base(model, bench.left_out, bench.state)
    put_weights(weights, model, bench.left_out)
    return model


def write_final(bench: Workbench, metrics: dict[str, float], weights: dict[str, torch.Tensor] | None) -> None:
    """Write ``RUN_DIR/final``, whole or not at all. ``weights``: instead of the model's own, which are cut into parts.

    Raises:
        OSError, SafetensorError: no space.
    """
    run, state, model = bench.run, bench.state, bench.engine.bare_model
    lora = bench.plan.profile.model.lora
    if lora is not None and weights is not None:
        model = _with_adapters_whole(bench, weights)
    making = run.path / MAKING
    shutil.rmtree(making, ignore_errors=True)
    if lora is not None:
        save_with_adapters(model, lora, making)
    elif bench.engine.placed.is_spread:
        whole = get_state_dict_offloaded_model(model)
        model.save_pretrained(str(making), state_dict=whole)
    elif weights is not None:
        model.save_pretrained(str(making), state_dict=weights)
    else:
        model.save_pretrained(str(making))
    save_tokenizer(bench.data.tokenizer, bench.data.facts.max_length, making)
    report = msgspec.json.format(msgspec.json.encode(final_report(bench, metrics)), indent=1)
    (making / "metrics.json").write_bytes(report + b"\n")
    card = model_card(bench.plan, bench.data.facts, state, metrics)
    (making / "README.md").write_text(card, encoding="utf-8")
    seal_folder(making, state.approximate)
    publish_folder(making, run.final)


def final_report(bench: Workbench, metrics: dict[str, float]) -> dict[str, Any]:
    """Return ``metrics.json``: how good the model is, and what it was made of."""
    state, data = bench.state, bench.data
    return {
        "metrics": metrics,
        "steps": state.windows_done,
        "updates": state.updates_done,
        "samples_seen": state.samples_done,
        "train_samples": data.facts.train.samples,
        "held_out_samples": data.facts.eval.samples,
        "labels": data.task.classes,
        "best_step": state.best_window,
        "non_finite_steps": state.non_finite_windows,
        "plan_digest": bench.plan.digest,
        "seed": bench.seed,
        "approximate": state.approximate,
    }
