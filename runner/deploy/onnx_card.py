"""The README of an ONNX folder: how it was made, how it compares with torch, how it is loaded."""

from __future__ import annotations

from runner.deploy.records import Exported, Variant


def onnx_card(exported: Exported) -> str:
    """Return it as Markdown. English, as cards are."""
    lines = [
        "# The model for onnxruntime",
        "",
        f"Written by torch {exported.torch_version} ({exported.exporter} exporter, opset {exported.opset}); batch and length are free, up to {exported.max_length} tokens.",
        "",
        *_comparison(exported),
        *_use(exported),
        *([f"Labels, in the order of the outputs: {', '.join(' '.join(label.split()) for label in exported.labels)}", ""] if exported.labels else []),
        f"SHA-256 of the torch weights: `{exported.source_sha256}`",
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def _comparison(exported: Exported) -> list[str]:
    names = list(exported.torch_metrics)
    rows = [_row("torch", "", exported.torch_metrics, names)]
    rows += [_row(one.file, _apart(one), one.metrics, names) for one in exported.variants if one.file]
    other = exported.variants[0].first_unequal(own_side=False)
    shapes = [one for one in exported.variants[0].shapes if one.is_own_side or other is None]
    most = max((one.max_difference for one in shapes), default=0.0)
    side = "on either side" if other is None else f"as the tokenizer does; not on the {other.side}"
    return [
        f"Equal to torch in fp32 on {len({one.shape for one in shapes})} shapes, padded {side} (largest difference {most:.1e}).",
        "",
        f"| file | answers that differ from torch{''.join(f' | {name}' for name in names)} |",
        "| --- " * (2 + len(names)) + "|",
        *rows,
        "",
    ]


def _apart(one: Variant) -> str:
    if one.agreement is None:
        return "no real text was compared"
    return f"{one.agreement.disagreements} of {one.agreement.answers}"


def _row(name: str, apart: str, metrics: dict[str, float], names: list[str]) -> str:
    return f"| {name} | {apart}{''.join(f' | {metrics[one]:.4f}' for one in names)} |"


def _use(exported: Exported) -> list[str]:
    return [
        "```python",
        "import onnxruntime",
        "from transformers import AutoTokenizer",
        "",
        'tokenizer = AutoTokenizer.from_pretrained(".")',
        f'session = onnxruntime.InferenceSession("{exported.variants[0].file}", providers=["CPUExecutionProvider"])',
        f'batch = tokenizer(["..."], padding=True, truncation=True, max_length={exported.max_length}, return_tensors="np")',
        "names = {one.name for one in session.get_inputs()}",
        f'{exported.output} = session.run(["{exported.output}"], {{name: batch[name].astype("int64") for name in names}})[0]',
        "```",
        "",
    ]
