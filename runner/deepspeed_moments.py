"""AdamW's state under DeepSpeed, parameter by parameter and whole: what a checkpoint holds of it, and how it comes back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import torch
import torch.distributed as dist

from runner.deepspeed_parts import flat_parts, is_stage_3, is_zero_part

MOMENTS = ("exp_avg", "exp_avg_sq")


class ZeroMoments:
    """Stands for the optimizer of a run: its groups, whose rates are set, and its state, of which each rank has a part."""

    def __init__(self, zero: Any, model: torch.nn.Module) -> None:
        self._zero = zero
        self._inner: torch.optim.Optimizer = zero.optimizer
        self._names = {id(parameter): name for name, parameter in model.named_parameters()}

    @property
    def param_groups(self) -> list[dict[str, Any]]:
        groups: list[dict[str, Any]] = self._inner.param_groups
        return groups

    @property
    def state(self) -> Any:
        return self._inner.state

    def whole_moments(self) -> Iterator[tuple[str, torch.Tensor]]:
        """Yield ``(parameter|key, tensor)``, each put together from all ranks, who all go through this to its end."""
        from deepspeed.utils import safe_get_full_optimizer_state

        if not self.state:  # no update was made yet
            return
        self._link()
        for parameters, part in self._groups():
            for parameter in parameters:
                name = self._names[id(parameter)]
                yield f"{name}|step", self.state[part]["step"]
                for key in MOMENTS:
                    yield f"{name}|{key}", safe_get_full_optimizer_state(parameter, key)

    def put_moments(self, found: Iterable[tuple[str, str, torch.Tensor]]) -> None:
        """Take ``(parameter, key, whole tensor)`` in place of what is there; every rank is given all of them."""
        self.state.clear()
        places = {
            self._names[id(parameter)]: (parameter, part)
            for parameters, part in self._groups()
            for parameter in parameters
        }
        for name, key, tensor in found:
            parameter, part = places[name]
            if not self.state:
                self._make_state()
            if key == "step":  # one for all parameters of a group
                step = self.state[part]["step"]
                step.fill_(max(float(step), float(tensor)))
            else:
                put_moment(tensor.to(part.device), parameter, key)

    def take_weights(self) -> None:
        """Take the optimizer's own copy of the weights anew from the model's, which somebody has just loaded."""
        self._zero.refresh_fp32_params()

    def _groups(self) -> list[tuple[list[Any], torch.Tensor]]:
        """Return parameters and the flat part of this rank that holds what it updates of them."""
        zero = self._zero
        return list(
            zip(zero.fp16_groups if is_stage_3(zero) else zero.bit16_groups, flat_parts(zero), strict=True)
        )

    def _make_state(self) -> None:
        """Make what AdamW makes in its first update."""
        fused = bool(self.param_groups[0].get("fused"))
        for part in flat_parts(self._zero):
            step = torch.zeros((), dtype=torch.float32, device=part.device if fused else "cpu")
            self.state[part] = {"step": step} | {key: torch.zeros_like(part) for key in MOMENTS}
        self._link()

    def _link(self) -> None:
        """Let DeepSpeed find the state's present tensors: at stages 1 and 2 it remembers those of its first update."""
        if not is_stage_3(self._zero):
            self._zero._hp_optimizer_states_linked = False
            self._zero._lazy_init_hp_params_optimizer_state()


def put_moment(full: torch.Tensor, parameter: Any, key: str) -> None:
    """Take this rank's part of a whole moment in place of what is there."""
    from deepspeed.utils import safe_set_full_optimizer_state, safe_set_local_optimizer_state

    if not is_zero_part(parameter):
        safe_set_full_optimizer_state(parameter, full, key)
        return
    # DeepSpeed's own cut of a whole tensor fails where it does not come out even over the ranks.
    each = parameter.ds_tensor.numel()
    own = full.new_zeros(each)
    part = full.reshape(-1)[each * dist.get_rank() :][:each]
    own[: part.numel()] = part
    safe_set_local_optimizer_state(parameter, own, key)
