"""What of a model is trained in a step whose memory is asked for: adapters and the head, or all but what is frozen."""

from fnmatch import fnmatchcase
from typing import Any, Dict

ALL_LINEAR = "all-linear"
"""peft's word for every linear layer but the head."""
USUAL_TARGETS = (
    "query", "value", "q_proj", "v_proj", "q_lin", "v_lin", "query_proj", "value_proj", "c_attn", "Wqkv",
)  # fmt: skip
HEADS = ("classifier", "score", "pooler", "pre_classifier")


def add_lora(torch: Any, model: Any, request: Dict[str, Any]) -> None:
    """Freeze all but the head, and add two thin matrices to the projections named (peft's default: queries and values)."""
    targets = [name.rpartition(".")[2] for name in request.get("lora_targets") or USUAL_TARGETS]
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(name.split(".")[0] in HEADS)
    for path, module in list(model.named_modules()):
        for name, layer in list(module.named_children()):
            named = name in targets or (
                ALL_LINEAR in targets and type(layer).__name__ in ("Linear", "Conv1D")
            )
            if (
                not named
                or getattr(layer, "weight", None) is None
                or (path or name).split(".")[0] in (*HEADS, "lm_head")
            ):
                continue
            wide = layer.weight.shape
            rows, out = (wide[0], wide[1]) if type(layer).__name__ == "Conv1D" else (wide[1], wide[0])
            setattr(module, name, lora_layer(torch, layer, rows, out, request))
    if hasattr(model, "enable_input_require_grads"):
        model.enable_input_require_grads()  # what peft asks for too: checkpointing needs an input that has a gradient


def lora_layer(torch: Any, base: Any, rows: int, out: int, request: Dict[str, Any]) -> Any:
    rank, share = request["lora_rank"], request.get("lora_dropout") or 0.0

    class Lora(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.base = base
            self.down = torch.nn.Linear(rows, rank, bias=False)
            self.up = torch.nn.Linear(rank, out, bias=False)

        def forward(self, x: Any) -> Any:
            dropped = torch.nn.functional.dropout(x, share, True) if share else x
            return self.base(x) + self.up(self.down(dropped)) * 2.0

    return Lora()


def settle_trained(torch: Any, model: Any, request: Dict[str, Any]) -> None:
    """Freeze, and put adapters on, as the request says. The last rule that matches a name counts, as in the trainer."""
    if request["lora_rank"]:
        add_lora(torch, model, request)
        return
    rules = request.get("freeze") or []
    for name, parameter in model.named_parameters():
        matching = [rule for rule in rules if fnmatchcase(name, rule["parameters"])]
        if matching and matching[-1].get("until") is None:
            parameter.requires_grad_(False)
