"""A run's model without its final folder: built from the plan, with the weights of a checkpoint that is as it was written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from runner.base import check_base, still_names
from runner.build import build_model
from runner.checkpoint import checkpoint_folders, load_model, newest_good, read_state
from runner.data import DataFacts
from runner.deploy.adapter_folder import WEIGHTS
from runner.deploy.card import model_card
from runner.deploy.opening import as_trained, check_folder
from runner.deploy.place import CARD
from runner.deploy.trained import Trained
from runner.durable import seal_folder, what_is_wrong
from runner.freeze import FreezePlan
from runner.inputs import InputError
from runner.plan import Plan, decode_plan
from runner.prepare import task_of
from runner.rundir import RunDir
from runner.text import Text, t
from runner.tokenizer import load_tokenizer, save_tokenizer


def choose_checkpoint(run: RunDir, asked: str) -> tuple[Path, Text]:
    """Return the checkpoint that ``best``, ``last``, a step or (an adapter alone) ``final`` means, compared with its hashes, and a sentence about it.

    Raises:
        InputError: there is none, or it is damaged.
    """
    if asked == "final":  # what the run ended with
        check_folder(run.final)
        return run.final, t("the adapter is merged into its base model")
    if asked.isdigit():
        return _exactly(run, int(asked))
    if asked not in ("best", "last"):
        raise InputError(t("--checkpoint takes best, last or a step, not {given}", given=asked))
    newest = newest_good(run, lambda bad: None)
    if newest is None:
        raise InputError(t("{run} has no checkpoint that is as it was written", run=run.name))
    step, state = _step(newest), read_state(newest)
    if asked == "last" or state.best_window is None:
        return newest, t("the newest checkpoint, step {step}, is used", step=step)
    best = run.checkpoint(state.best_window)
    if best.is_dir() and not what_is_wrong(best):
        return best, t("the best checkpoint, step {step}, is used", step=state.best_window)
    return newest, t("the best checkpoint, step {best}, is not there any more or damaged: the newest, step {step}, is used",
                     best=state.best_window, step=step)  # fmt: skip


def _step(folder: Path) -> int:
    return int(folder.name.removeprefix("step-"))


def _exactly(run: RunDir, step: int) -> tuple[Path, Text]:
    folder = run.checkpoint(step)
    if not folder.is_dir():
        there = ", ".join(str(number) for number, _ in checkpoint_folders(run)) or "-"
        raise InputError(t("{run} has no checkpoint of step {step}; there are: {there}", run=run.name, step=step, there=there))  # fmt: skip
    if wrong := what_is_wrong(folder):
        raise InputError(t("{path} cannot be believed: {why}", path=str(folder), why=wrong))
    return folder, t("the checkpoint of step {step} is used", step=step)


def open_checkpoint(run: RunDir, folder: Path, max_length: int | None = None, attention: str = "") -> Trained:
    """Build the run's model and put the weights of ``folder`` (a checkpoint, or an adapter of its end) into it.

    Raises:
        InputError: its data is not prepared yet, or its base model is gone or not the same any more.
        OSError, msgspec.MsgspecError: a file of the run cannot be read.
    """
    plan, facts = read_run(run)
    if attention:
        model_section = replace(plan.profile.model, attention=attention)
        plan = replace(plan, profile=replace(plan.profile, model=model_section))
    check_folder(run.tokenizer)
    tokenizer = load_tokenizer(plan, run)
    # The loss, which may be the user's own, is for training alone.
    shape = replace(plan, profile=replace(plan.profile, train=replace(plan.profile.train, loss="")))
    model, _ = build_model(
        plan, task_of(shape, facts.classes, facts.train.class_counts, tokenizer), tokenizer
    )
    _put(plan, folder, model)
    if plan.profile.model.lora is not None:
        model = model.merge_and_unload()
    return as_trained(folder, model, tokenizer, max_length or facts.max_length)


def _put(plan: Plan, folder: Path, model: Any) -> None:
    if (folder / WEIGHTS).is_file():
        import peft
        import safetensors.torch

        peft.set_peft_model_state_dict(model, safetensors.torch.load_file(folder / WEIGHTS))
        return
    FreezePlan(model, plan.profile.train.freeze)
    still = still_names(model)
    check_base(model, still, read_state(folder))
    load_model(folder, model, still)


def read_run(run: RunDir) -> tuple[Plan, DataFacts]:
    """Return a run's plan and what its rows are. Raises InputError, OSError, PlanError."""
    plan, path = decode_plan(run.plan.read_bytes()), run.data / "data.json"
    if not path.is_file():
        raise InputError(t("{run} has not prepared its data yet: there is nothing trained", run=run.name))
    return plan, msgspec.json.decode(path.read_bytes(), type=DataFacts)


class Assembly(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A checkpoint that is to be a folder as the end of a run is."""

    run: str
    checkpoint: str
    target: str


def assemble(request: Assembly, tell: Callable[[Text], None]) -> None:
    """Write a checkpoint as the end of a run is written: ``from_pretrained`` opens it, with its card and metrics.

    Raises:
        InputError, OSError: as :func:`open_checkpoint`; no space.
    """
    run, target = RunDir(request.run), Path(request.target)
    checkpoint, why = choose_checkpoint(run, request.checkpoint)
    tell(why)
    plan, facts = read_run(run)
    trained, state = open_checkpoint(run, checkpoint), read_state(checkpoint)
    trained.model.save_pretrained(str(target))
    save_tokenizer(trained.tokenizer, facts.max_length, target)
    report = {
        "metrics": state.metrics, "steps": state.windows_done, "updates": state.updates_done,
        "samples_seen": state.samples_done, "train_samples": facts.train.samples, "held_out_samples": facts.eval.samples,
        "labels": facts.classes, "non_finite_steps": state.non_finite_windows, "plan_digest": plan.digest,
        "seed": plan.profile.run.seed, "approximate": state.approximate, "is_finished": False,
    }  # fmt: skip
    (target / "metrics.json").write_bytes(msgspec.json.format(msgspec.json.encode(report), indent=1) + b"\n")
    (target / CARD).write_text(
        model_card(plan, facts, state, state.metrics, is_finished=False), encoding="utf-8"
    )
    seal_folder(target, state.approximate)
