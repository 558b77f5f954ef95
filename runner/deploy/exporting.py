"""The whole export: open, write, compare, convert, compare again, time; into a folder that is whole or not there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import msgspec
import torch

from runner.deploy.foreign import pickle_note
from runner.deploy.from_run import choose_checkpoint, open_checkpoint
from runner.deploy.held_out import GivenTexts, HeldOut, open_held_out
from runner.deploy.latency import measure
from runner.deploy.onnx_card import onnx_card
from runner.deploy.onnx_file import ExportFailed, Written, choose_exporter, write_onnx
from runner.deploy.opening import open_trained
from runner.deploy.parity import compare_shapes, shapes_for
from runner.deploy.place import CARD, check_target, new_folder, path_key, short_name, weights_sha256
from runner.deploy.records import REPORT, Exported, Latency, ShapeParity, Variant
from runner.deploy.session import ask, check_provider, open_session, require_onnx, runtime_version
from runner.deploy.trained import Trained
from runner.deploy.trials import Trial, converted, plain, try_all
from runner.durable import write_durably
from runner.inputs import InputError
from runner.plan import PlanError
from runner.rundir import RunDir
from runner.text import Text, t
from runner.tokenizer import save_tokenizer

ONNX_FILE = "model.onnx"
LATENCY_LENGTH = 128
Tell = Callable[[Text], None]


class Request(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is to be exported, and how."""

    folder: str
    """With the model, as ``save_pretrained`` wrote it."""
    out: str
    run: str = ""
    """The run whose held-out rows the files are tried on; empty: none."""
    checkpoint: str = ""
    """``best``, ``last`` or a step of the run, in place of ``folder``'s weights."""
    texts: list[str] = []
    """Real texts to try where there is no run."""
    max_length: int | None = None
    exporter: str = "auto"
    opset: int | None = None
    variants: list[str] = []
    with_latency: bool = True
    provider: str = "CPUExecutionProvider"


def export(request: Request, tell: Tell) -> Exported:
    """Write ``request.out``: ``model.onnx``, its variants, the tokenizer, the configuration and ``export.json``.

    Raises:
        InputError: the folder holds no model that is known here, or ``out`` something else.
        ExportFailed: no exporter wrote a file that answers as torch does.
        OSError: no space.
    """
    require_onnx("onnx", "onnxruntime")
    check_provider(request.provider)
    source = _source(request, tell)
    check_target(Path(request.out), str(source.weights), request.run)
    with new_folder(Path(request.out)) as making:
        exported = _into(making, request, source, tell)
        write_durably(making / REPORT, msgspec.json.format(msgspec.json.encode(exported), indent=1) + b"\n")
        write_durably(making / CARD, onnx_card(exported).encode())
    return exported


class _Source(NamedTuple):
    """The torch model: where its weights lie, and what opens it with an attention of a name."""

    weights: Path
    opener: Callable[[str], Trained]


def _source(request: Request, tell: Tell) -> _Source:
    """Return the model of a folder, or of a checkpoint of the run. Raises InputError."""
    if not request.checkpoint:
        folder = Path(request.folder)
        if note := pickle_note(folder):
            tell(note)
        return _Source(folder, lambda attention: open_trained(folder, request.max_length, attention))
    run = RunDir(request.run)
    checkpoint, why = choose_checkpoint(run, request.checkpoint)
    tell(why)
    return _Source(
        checkpoint, lambda attention: open_checkpoint(run, checkpoint, request.max_length, attention)
    )


def _into(making: Path, request: Request, source: _Source, tell: Tell) -> Exported:
    trained, written, shapes = _write(making, request, source, tell)
    save_tokenizer(trained.tokenizer, trained.max_length, making)
    trained.model.config.save_pretrained(str(making))
    texts, no_texts = _texts(request, trained)
    variants, torch_metrics = _variants(trained, written.path, shapes, texts, request, tell)
    return Exported(
        kind=trained.kind,
        exporter=written.exporter,
        opset=written.opset,
        why=written.why,
        inputs=trained.input_names,
        output=trained.output_name,
        max_length=trained.max_length,
        labels=tuple(trained.labels),
        torch_version=str(torch.__version__),
        onnxruntime_version=runtime_version(),
        source=short_name(source.weights),
        source_key=path_key(str(source.weights)),
        source_sha256=weights_sha256(source.weights),
        run_key=path_key(request.run),
        variants=tuple(variants),
        torch_metrics=torch_metrics,
        no_texts=no_texts,
        latencies=tuple(_latencies(making, trained, variants, request, tell)),
    )


def _variants(
    trained: Trained, fp32: Path, shapes: tuple[ShapeParity, ...], texts: HeldOut | GivenTexts, request: Request, tell: Tell
) -> tuple[list[Variant], dict[str, float]]:  # fmt: skip
    """Convert the file, try all of them on the texts together, and return what was found, with torch's own metrics."""
    first, torch_metrics = Trial("fp32", fp32, trained, request.provider, texts.metrics()), texts.metrics()
    made: list[Trial | Variant] = []
    for name in request.variants:
        tell(t("converting to {precision}", precision=name))
        made.append(converted(name, fp32, trained, request.provider, texts.metrics()))
    tell(t("comparing the answers with torch's"))
    trials = [one for one in made if isinstance(one, Trial)]
    failed = try_all(trained, first, trials, texts.batches(), torch_metrics)
    others = [one if isinstance(one, Variant) else failed.get(one.name) or one.variant() for one in made]
    return [first.variant(shapes), *others], plain(torch_metrics)


def _write(
    making: Path, request: Request, source: _Source, tell: Tell
) -> tuple[Trained, Written, tuple[ShapeParity, ...]]:
    """Write a file that answers as torch does: by the next exporter, then with plain attention, where one does not."""
    failure: ExportFailed | None = None
    used = ""
    for attention in ("", "eager"):
        trained = source.opener(attention)
        if failure is not None and used == getattr(trained.config, "_attn_implementation", "eager"):
            break  # it has no other
        used = getattr(trained.config, "_attn_implementation", "eager")
        order, why = choose_exporter(request.exporter)
        for exporter in order:
            tell(t("writing the ONNX file ({exporter} exporter)", exporter=exporter))
            try:
                return (trained, *_proven(trained, making / ONNX_FILE, exporter, request, why))
            except ExportFailed as failed:
                failure = failure or failed
                why = t("the other one did not do: {why}", why=str(failed))
                _clear(making)
    assert failure is not None, "an exporter is always tried"
    raise failure


def _proven(trained: Trained, path: Path, exporter: str, request: Request, why: Text) -> tuple[Written, tuple[ShapeParity, ...]]:  # fmt: skip
    """Write the file and hold it against torch. Raises ExportFailed."""
    written = write_onnx(trained, path, exporter, request.opset, why)
    try:
        session = open_session(path, request.provider)
        shapes = tuple(compare_shapes(trained, session, shapes_for(trained)))
    except InputError:
        raise
    except Exception as error:  # onnxruntime's errors have no common base but Exception
        words = " ".join(str(error).split())[:400]
        raise ExportFailed(t("onnxruntime cannot run what the {exporter} exporter wrote: {why}", exporter=exporter, why=words)) from error  # fmt: skip
    bad = next((one for one in shapes if one.is_own_side and not one.is_equal), None)
    if bad is not None:
        raise ExportFailed(
            t("the file of the {exporter} exporter does not answer as torch does: {texts} x {tokens} tokens (padding: {side}), {difference}",
              exporter=exporter, texts=bad.shape[0], tokens=bad.shape[1], side=bad.side, difference=bad.first_difference)
        )  # fmt: skip
    return written, shapes


def _clear(making: Path) -> None:
    for path in making.glob(f"{ONNX_FILE}*"):
        path.unlink()


def _texts(request: Request, trained: Trained) -> tuple[HeldOut | GivenTexts, Text | None]:
    """Return the real texts to try, and why there are none."""
    given = GivenTexts(request.texts, trained)
    if not request.run:
        return given, None if request.texts else t("no run and no --samples were given")
    try:
        return open_held_out(Path(request.run), trained), None
    except (OSError, InputError, PlanError) as error:
        why = error.problem if isinstance(error, (InputError, PlanError)) else error
        return given, t("the run's held-out rows cannot be read: {why}", why=str(why))


def _latencies(making: Path, trained: Trained, variants: list[Variant], request: Request, tell: Tell) -> list[Latency]:  # fmt: skip
    if not request.with_latency:
        return []
    tell(t("timing torch and each file"))
    sessions = {one.file: open_session(making / one.file, request.provider, torch.get_num_threads()) for one in variants if one.file}  # fmt: skip
    engines = {name: lambda batch, session=session: ask(session, batch) for name, session in sessions.items()}
    return measure(trained, {"torch": trained.answer, **engines}, min(LATENCY_LENGTH, trained.max_length))
