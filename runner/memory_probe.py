"""The largest micro-batch that can come, tried before the first step: memory is short now, or it never is.

The optimizer makes its moments in the first update, after the first passes; room for them is held meanwhile.
"""

from __future__ import annotations

import torch

from runner.order import Cut
from runner.recovery import float_buffers, make_room, out_of_memory_words
from runner.rehearsal import batches_of, leaving_no_trace, rehearse
from runner.text import t
from runner.workbench import Workbench


def probe_memory(bench: Workbench) -> None:
    """Try the worst micro-batch, cut smaller until it fits, where the plan wants that.

    Raises:
        runner.inputs.InputError: nothing is left that would fit.
    """
    if not bench.settings.memory_probe or bench.engine.placed.in_parts:
        return
    cut = bench.state.micro_batch_size
    while True:
        trouble = ""
        buffers = float_buffers(bench.engine.bare_model)
        samples = worst_samples(bench)
        try:
            with bench.ranks.agreement():
                _try(bench, samples)
        except (RuntimeError, MemoryError) as error:
            trouble = out_of_memory_words(error)
            if not trouble:
                raise
        # Past the except block the error, its frames and their tensors are gone, and their memory with them.
        if not trouble:
            break
        make_room(bench, trouble, buffers)
    longest = int(bench.data.train.lengths.max())
    bench.journal.note(
        "info",
        t("memory: the longest micro-batch ({samples} x {length} tokens) was tried before the first step and fits",
          samples=len(samples), length=longest) if cut == bench.state.micro_batch_size
        else t("memory: the longest micro-batch fits with {samples} x {length} tokens", samples=len(samples), length=longest),
    )  # fmt: skip


def worst_samples(bench: Workbench) -> list[int]:
    """Return the samples of the largest micro-batch that any order of the data can bring."""
    lengths = bench.data.train.lengths
    longest = lengths.argsort(kind="stable")[::-1][
        : min(bench.state.micro_batch_size, -(-bench.train.batch_size // bench.ranks.size))
    ]
    cut = Cut(len(longest), bench.train.micro_batch_tokens or 0, lengths, bench.data.width)
    windows = cut.window([int(index) for index in longest])
    return max(windows, key=lambda part: len(part) * max(map(cut.padded, part)))


def _try(bench: Workbench, samples: list[int]) -> None:
    with leaving_no_trace(bench), bench.engine.keeping_gradients():
        room = _room_for_moments(bench)
        for batch in batches_of(bench, [samples]):
            rehearse(bench, batch)
        del room


def _room_for_moments(bench: Workbench) -> list[torch.Tensor]:
    """Hold what the optimizer will: two numbers a parameter, where it has none yet and they lie on the device."""
    if bench.optimizer.state or bench.settings.offload != "none":
        return []
    moving = [one for one in bench.engine.bare_model.parameters() if one.requires_grad]
    return [torch.empty_like(one) for one in moving for _ in range(2)]
