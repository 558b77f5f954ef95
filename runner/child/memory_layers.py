"""The memory of a deep model from two shallow ones: its layers are alike, so every number of a step is a line in their count.

In each segment of a step (see :mod:`runner.child.memory_tracker`) the bytes alive grow by the same amount with every
layer that stands before it. Three and four layers give that line; the four-layered model's two middle layers must be
equal to the byte, else nothing is extended. A phase's peak is the largest of its segments' peaks, each on its own line.
"""

from typing import Any, Dict, List, Optional, Tuple

SHALLOW = (3, 4)
WORTH_IT = 8
"""With fewer layers the whole model is walked as fast."""
ALIKE = {
    "bert": "num_hidden_layers", "roberta": "num_hidden_layers", "xlm-roberta": "num_hidden_layers",
    "camembert": "num_hidden_layers", "electra": "num_hidden_layers", "deberta-v2": "num_hidden_layers",
    "distilbert": "n_layers", "gpt2": "n_layer", "llama": "num_hidden_layers", "mistral": "num_hidden_layers",
    "qwen2": "num_hidden_layers", "qwen3": "num_hidden_layers", "gemma": "num_hidden_layers", "ernie": "num_hidden_layers",
}  # fmt: skip
"""Architectures whose layers are all alike, and the key that counts them. ALBERT's share weights, ModernBERT's differ."""
Row = Tuple[str, int, int, int]
"""Phase, layer, bytes alive at the segment's beginning, most bytes in it."""


def shallow_configs(config: Dict[str, Any], layers: int) -> List[Dict[str, Any]]:
    """Return the same model of ``layers`` layers with three and with four; nothing: it is no such model, or not deep enough."""
    key = ALIKE.get(config.get("model_type", ""))
    mixed = len(set(config.get("layer_types") or [])) > 1 or config.get("use_sliding_window")
    if key is None or mixed or layers < WORTH_IT:
        return []
    bare = {name: value for name, value in config.items() if name != "layer_types"}
    return [dict(bare, **{key: count}) for count in SHALLOW]


def roles(layer: int, layers: int) -> List[str]:
    """Return what a layer is in a model of any depth: one of the two at either end, or nothing of note."""
    if layer < 0:
        return ["outside"]
    ends = {"first": 0, "second": 1, "before last": layers - 2, "last": layers - 1}
    return [name for name, index in ends.items() if index == layer]


def by_role(rows: List[Row], layers: int) -> Dict[Tuple[str, str, int], int]:
    """Return the peak of each segment by phase, role and turn: the same segment comes again with each micro-batch."""
    found: Dict[Tuple[str, str, int], int] = {}
    turns: Dict[Tuple[str, str], int] = {}
    for phase, layer, _, peak in rows:
        for role in roles(layer, layers):
            turn = turns[phase, role] = turns.get((phase, role), -1) + 1
            found[phase, role, turn] = peak
    return found


def are_alike(rows: List[Row]) -> bool:
    """Do the second and third of four layers take the same, to the byte, in every pass?"""
    passes: Dict[Tuple[str, int], List[Tuple[int, int]]] = {}
    for index, (phase, layer, entry, peak) in enumerate(rows[:-1]):
        if layer in (1, 2):
            passes.setdefault((phase, layer), []).append((rows[index + 1][2] - entry, peak - entry))
    phases = {phase for phase, _ in passes}
    return bool(phases) and all(passes.get((phase, 1)) == passes.get((phase, 2)) for phase in phases)


def extended(three: Dict[str, Any], four: Dict[str, Any], layers: int) -> Optional[Dict[str, Any]]:
    """Return the row of a model with ``layers`` layers from those of three and four; None: their layers are not alike."""
    first, second = by_role(three["segments"], SHALLOW[0]), by_role(four["segments"], SHALLOW[1])
    if not are_alike(four["segments"]) or set(first) != set(second):
        return None

    def line(low: int, high: int) -> int:
        return low + (high - low) * (layers - SHALLOW[0])

    peaks: Dict[str, int] = {}
    for key, low in first.items():
        peaks[key[0]] = max(peaks.get(key[0], 0), line(low, second[key]))
    grown = four["layers_bytes"]
    numbers = {
        name: line(value, four[name])
        for name, value in three.items()
        if isinstance(value, int) and name not in ("batch", "layers", "peak_bytes")
    }
    return {
        **four, **numbers, "phases": peaks, "peak_bytes": max(peaks.values()), "layers": layers, "segments": [],
        "layers_bytes": grown[:1] + grown[1:2] * (layers - 2) + grown[-1:],
    }  # fmt: skip
