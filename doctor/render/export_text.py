"""What an ONNX export found out, as a few lines: equal or not, the other precisions, the speed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from doctor.language import say
from doctor.render.layout import human_bytes
from runner.deploy.records import Agreement, Exported, Latency, Variant
from runner.strings import shown
from runner.text import Param, t


def export_lines(exported: Exported, folder: Path) -> Iterator[str]:
    """Yield the lines of an export that lies in ``folder``."""
    first = exported.variants[0]
    yield say(
        t("{path}: {exporter} exporter, opset {opset} ({why})", path=shown(str(folder / first.file)),
          exporter=exported.exporter, opset=exported.opset, why=say(exported.why))
    )  # fmt: skip
    yield from _parity(first)
    if exported.no_texts is not None:
        yield "  " + say(t("no real text was compared: {why}", why=say(exported.no_texts)))
    if exported.torch_metrics:
        yield f"  {'torch':<6}            {_metrics(exported.torch_metrics)}"
    for variant in exported.variants:
        yield "  " + _variant(variant)
    yield from _latencies(exported.latencies)


def _parity(fp32: Variant) -> Iterator[str]:
    """What a shape gives on the side where the tokenizer does not pad is no condition, and is said."""
    other = fp32.first_unequal(own_side=False)
    own = [one for one in fp32.shapes if one.is_own_side or other is None]
    facts: dict[str, Param] = {
        "count": len({one.shape for one in own}), "texts": max(one.shape[0] for one in own),
        "tokens": max(one.shape[1] for one in own), "most": f"{max((one.max_difference for one in own), default=0.0):.1e}",
    }  # fmt: skip
    if other is None:
        yield "  " + say(t("equal to torch on {count} {count:shape|shapes}, padded on either side, up to {texts} x {tokens} tokens (largest difference {most})", **facts))  # fmt: skip
        return
    yield "  " + say(t("equal to torch on {count} {count:shape|shapes} with padding, up to {texts} x {tokens} tokens (largest difference {most})", **facts))  # fmt: skip
    yield "  " + say(
        t("not equal where it is padded on the {side}, which this tokenizer does not do ({texts} x {tokens} tokens, {difference}): leave padding_side as it is",
          side=other.side, texts=other.shape[0], tokens=other.shape[1], difference=other.first_difference)
    )  # fmt: skip


def _variant(variant: Variant) -> str:
    if variant.trouble is not None:
        return f"{variant.name:<6} " + say(t("could not be made: {why}", why=say(variant.trouble)))
    words = [f"{variant.name:<6} {human_bytes(variant.bytes):>9} ", _metrics(variant.metrics)]
    if variant.agreement is not None:
        words.append(_agreement(variant.agreement))
    return " ".join(filter(None, [*words, f"({variant.provider})"]))


def _agreement(found: Agreement) -> str:
    if not found.disagreements:
        return say(t("the same answer for all {count} {count:text|texts}", count=found.samples))
    return say(
        t("{apart} of {count} answers differ, the first in {place}",
          apart=found.disagreements, count=found.answers, place=found.first_disagreement)
    )  # fmt: skip


def _metrics(metrics: dict[str, float]) -> str:
    return " ".join(f"{name} {value:.4f}" for name, value in metrics.items() if name != "loss")


def _latencies(latencies: tuple[Latency, ...]) -> Iterator[str]:
    if not latencies:
        return
    yield say(t("milliseconds a call, {length} tokens, half of the calls / 95% of them below:", length=latencies[0].length))  # fmt: skip
    sizes = sorted({one.batch_size for one in latencies})
    yield f"  {'':<16}" + "".join(f"{say(t('batch {size}', size=size)):>20}" for size in sizes)
    for engine in dict.fromkeys(one.engine for one in latencies):
        own = {one.batch_size: one for one in latencies if one.engine == engine}
        yield f"  {engine:<16}" + "".join(f"{own[size].p50_ms:>11.1f} / {own[size].p95_ms:.1f}" for size in sizes)  # fmt: skip
