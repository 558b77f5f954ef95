"""What an export found out, as records: written by the child that has torch, read by whoever shows it. No torch."""

from __future__ import annotations

import msgspec

from runner.text import Text

REPORT = "export.json"
TABLES = (".csv", ".jsonl", ".ndjson", ".parquet")
"""What a name ends with that answers can be written to."""


class ShapeParity(msgspec.Struct, frozen=True, kw_only=True):
    """One shape, on made-up tokens."""

    shape: tuple[int, int]
    """(texts, tokens of the longest)"""
    side: str = "right"
    """Where shorter texts were padded; a single text never is."""
    is_own_side: bool = True
    """The model's tokenizer pads there. On the other side some models read padding in torch, too: what they say then is anything."""
    max_difference: float
    is_equal: bool
    first_difference: str = ""
    """The first value that differs by more than rounding: ``logits[2, 0]: torch 0.12, ONNX 0.31``."""


class Agreement(msgspec.Struct, frozen=True, kw_only=True):
    """Real texts: how many get the same answer from both."""

    samples: int
    answers: int
    """What was compared: one a text, or one a token."""
    disagreements: int
    max_difference: float
    first_disagreement: str = ""


class Latency(msgspec.Struct, frozen=True, kw_only=True):
    """How long one call takes."""

    engine: str
    """``torch``, or the ONNX file's name."""
    batch_size: int
    length: int
    """Tokens a text."""
    p50_ms: float
    p95_ms: float
    calls: int


class Variant(msgspec.Struct, frozen=True, kw_only=True):
    """One ONNX file, and how it answers beside the torch model."""

    name: str
    """``fp32``, ``fp16`` or ``int8``."""
    file: str
    bytes: int
    provider: str
    """onnxruntime's, as it was really used."""
    shapes: tuple[ShapeParity, ...] = ()
    """Asked of fp32 only: other precisions round by design."""
    agreement: Agreement | None = None
    """None: there were no real texts to try."""
    metrics: dict[str, float] = {}
    """On the held-out rows of the run; empty where there are none."""
    trouble: Text | None = None
    """Why this variant could not be made or tried."""

    @property
    def is_equal(self) -> bool:
        """The file gives the torch model's answers."""
        apart = self.agreement.disagreements if self.agreement else 0
        return self.trouble is None and not apart and self.first_unequal(own_side=True) is None

    def first_unequal(self, own_side: bool) -> ShapeParity | None:
        """Return the first shape, padded where the tokenizer pads or on the other side, with another answer; None: there is none."""
        return next((one for one in self.shapes if not one.is_equal and one.is_own_side == own_side), None)


class Exported(msgspec.Struct, frozen=True, kw_only=True):
    """``export.json``: what lies in the folder, how it was made and how good it is."""

    kind: str
    exporter: str
    opset: int
    why: Text
    """Why this exporter."""
    inputs: tuple[str, ...]
    output: str
    max_length: int
    labels: tuple[str, ...]
    torch_version: str
    onnxruntime_version: str
    source: str
    """The folder of the torch model, or of the checkpoint: its last two names, since the file may be shared."""
    source_key: str
    """Tells that folder's path from another without naming it (:func:`runner.deploy.place.path_key`)."""
    source_sha256: str
    """Of its weights."""
    run_key: str = ""
    """Of the run that it is of."""
    variants: tuple[Variant, ...] = ()
    torch_metrics: dict[str, float] = {}
    """The torch model's own, on the same rows as each variant's."""
    no_texts: Text | None = None
    """Why no real text was tried."""
    latencies: tuple[Latency, ...] = ()
