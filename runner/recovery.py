"""What is done when a window cannot be: memory was short, or its numbers were none. Back to a state that is known."""

from __future__ import annotations

import msgspec
import torch

from runner.build import build_model, checkpoint_activations
from runner.checkpoint import read_state
from runner.inputs import InputError
from runner.oom import is_out_of_memory, next_smaller
from runner.text import t
from runner.workbench import Workbench


def out_of_memory_words(error: BaseException) -> str:
    """Return the first line of an error that says memory was short; empty: it says something else."""
    return str(error).partition("\n")[0][:200] or "MemoryError" if is_out_of_memory(error) else ""


def float_buffers(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    """Return copies of what a forward pass may change without a gradient (running means and the like)."""
    saved = model.state_dict()
    return {
        name: tensor.clone()
        for name, tensor in model.named_buffers()
        if name in saved and tensor.is_floating_point()
    }


def make_room(bench: Workbench, trouble: str, buffers: dict[str, torch.Tensor]) -> None:
    """Go back to before the window and take the next smaller way to do it.

    Raises:
        InputError: when there is none.
    """
    if bench.engine.placed.in_parts:
        raise InputError(t("rank {rank}: out of memory ({why}) in the midst of an exchange: the others cannot take another way. Take a "
                           "smaller train.micro_batch_size, gradient_checkpointing, or more cards", rank=bench.ranks.rank, why=trouble))  # fmt: skip
    bench.engine.forget_window(bench.optimizer)
    bench.engine.meet_anew()
    bench.engine.free_memory()
    if bench.updating:
        bench.updating = False
        go_back_to_last_good(bench)
    else:
        bench.engine.bare_model.load_state_dict(buffers, strict=False)
    _cut_smaller(bench, trouble)


def _cut_smaller(bench: Workbench, trouble: str) -> None:
    state, step = bench.state, bench.state.windows_done + 1
    share = -(-bench.train.batch_size // bench.ranks.size)
    smaller = next_smaller(min(state.micro_batch_size, share), bench.train.batch_size)
    if smaller is not None:
        text = t(
            "step {step}: out of memory ({why}); the same batch again in micro-batches of {smaller} instead of {size}",
            step=step,
            why=trouble,
            smaller=smaller,
            size=state.micro_batch_size,
        )
        state.micro_batch_size = smaller
    elif not state.gradient_checkpointing:
        text = t("step {step}: out of memory even one by one ({why}); gradient checkpointing is switched on",
                 step=step, why=trouble)  # fmt: skip
        state.gradient_checkpointing = True
        checkpoint_activations(bench.engine.bare_model)
    else:
        raise InputError(t("step {step}: out of memory even one sample at a time with gradient checkpointing ({why}); "
                           "take a smaller model or a smaller train.max_length", step=step, why=trouble))  # fmt: skip
    bench.journal.note("warn", text, step)


def roll_back(bench: Workbench) -> None:
    """Take weights, moments and schedule of the last good checkpoint (or of the beginning), and go on from
    here in the data: what led to this window is left out with it."""
    state = bench.state
    go_back_to_last_good(bench)
    went_back_to = bench.state.windows_done
    state.updates_done = bench.state.updates_done
    bench.state, bench.saved_at = state, -1
    text = t("step {step}: weights and schedule of step {before} put back; the data goes on from here",
             step=state.windows_done + 1, before=went_back_to)  # fmt: skip
    bench.journal.note("warn", text, state.windows_done + 1)


def go_back_to_last_good(bench: Workbench) -> None:
    """An update was cut off half-way: some weights have it, some do not. Take the last good ones."""
    bench.wait_for_saves()
    folder = bench.newest_good()
    if folder is not None:
        bench.load(folder, bench.ranks.told(read_state(folder) if bench.ranks.is_first else None))
        return
    bench.load_weights(lambda: _weights_of_the_beginning(bench))
    bench.optimizer.state.clear()
    bench.state = msgspec.structs.replace(bench.state, windows_done=0, updates_done=0, samples_done=0)


def _weights_of_the_beginning(bench: Workbench) -> dict[str, torch.Tensor]:
    fresh, _ = build_model(bench.plan, bench.data.task, bench.data.tokenizer)
    return {name: one for name, one in fresh.state_dict().items() if name not in bench.left_out}
