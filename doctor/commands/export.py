"""``doctor export``: a trained model as ONNX that answers as torch does, or its folder to where it is shared."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from doctor.commands import CommandError, Exit
from doctor.commands.export_share import share
from doctor.commands.trained import require_length, source_named
from doctor.language import say
from runner.text import Text, t

if TYPE_CHECKING:
    from doctor.model_source import Source


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "name", nargs="?", default="last", metavar="RUN|FOLDER",
        help=say("a run, or a folder with a model as save_pretrained writes it (default: the last run)"),
    )  # fmt: skip
    parser.add_argument("--checkpoint", default="", metavar="STEP|best|last", help=say("a checkpoint of the run in place of its end (default where it has not ended: best)"))  # fmt: skip
    parser.add_argument(
        "--onnx", action="store_true", help=say("as ONNX, compared with torch before it is believed")
    )
    parser.add_argument("-o", "--output", metavar="DIR", help=say("where the ONNX files go (default: onnx beside the model)"))  # fmt: skip
    parser.add_argument("--fp16", action="store_true", help=say("also in half precision, with its accuracy"))
    parser.add_argument("--int8", action="store_true", help=say("also with int8 weights, with its accuracy"))
    parser.add_argument(
        "--exporter", choices=("auto", "dynamo", "torchscript"), default="auto",
        help=say("which of torch's exporters (default: by the version of torch, the other where that one fails)"),
    )  # fmt: skip
    parser.add_argument("--opset", type=int, metavar="N", help=say("the ONNX operator set (default: 18, TorchScript 17)"))  # fmt: skip
    parser.add_argument("--samples", metavar="FILE", help=say("real texts to compare on, one a line, where there is no run"))  # fmt: skip
    parser.add_argument("--cuda", action="store_true", help=say("compare on the GPU (onnxruntime-gpu), never silently on the CPU"))  # fmt: skip
    parser.add_argument("--max-length", type=int, metavar="N", help=say("read no more than N tokens of a text (default: as many as in training)"))  # fmt: skip
    parser.add_argument("--no-latency", action="store_true", help=say("do not time torch and the files"))
    parser.add_argument("--python", metavar="PATH", help=say("the interpreter or environment that has torch"))
    parser.add_argument("--to", metavar="DIR|USER/REPO", help=say("copy the finished folder there, or to the hub (asks first)"))  # fmt: skip
    parser.add_argument("--public", action="store_true", help=say("a new hub repository is public (default: private)"))  # fmt: skip
    parser.add_argument("--dry-run", action="store_true", help=say("with --to: list the files, send nothing"))
    parser.add_argument("-y", "--yes", action="store_true", help=say("do not ask"))
    parser.add_argument("--json", action="store_true", help=say("as JSON"))


def run(namespace: argparse.Namespace) -> int:
    from doctor import service
    from doctor.launch import LaunchError
    from doctor.probes.target import BadPython

    if not namespace.onnx and not namespace.to:
        raise CommandError(say("say what is wanted: --onnx, or --to DIR|USER/REPO"), Exit.USAGE)
    require_length(namespace.max_length)
    source = source_named(namespace.name, namespace.checkpoint)
    try:
        if namespace.onnx and not _export(source, namespace):
            return Exit.FOUND
        if not namespace.to:
            return Exit.OK
        with service.finished_model(source, namespace.python, _tell) as folder:
            return share(folder, namespace)
    except (LaunchError, BadPython) as error:
        raise CommandError(error.text) from None


def _export(source: Source, namespace: argparse.Namespace) -> bool:
    """Write the ONNX files and say how they compare; return whether they answer as torch does."""
    from doctor import service
    from doctor.model_export import OnnxOptions

    options = OnnxOptions(
        output=_output(source, namespace.output),
        variants=[name for name in ("fp16", "int8") if getattr(namespace, name)],
        exporter=namespace.exporter,
        opset=namespace.opset,
        texts=_samples(namespace.samples),
        max_length=namespace.max_length,
        with_latency=not namespace.no_latency,
        provider="CUDAExecutionProvider" if namespace.cuda else "CPUExecutionProvider",
    )
    exported = service.export_onnx(source, options, namespace.python, _tell)
    if namespace.json:
        import msgspec

        print(msgspec.json.format(msgspec.json.encode(exported), indent=1).decode())
    else:
        from doctor.render.export_text import export_lines

        print("\n".join(export_lines(exported, options.output)))
    return exported.variants[0].is_equal


def _tell(text: Text) -> None:
    print(say(text), file=sys.stderr, flush=True)


def _output(source: Source, asked: str | None) -> Path:
    if asked:
        return Path(asked).absolute()
    if source.onnx is not None:
        raise CommandError(t("{path} is an ONNX file already", path=str(source.onnx)), Exit.USAGE)
    return source.run.path.absolute() / "onnx" if source.run else source.folder.with_name(source.folder.name + "-onnx")  # fmt: skip


def _samples(name: str | None) -> list[str]:
    if name is None:
        return []
    try:
        lines = Path(name).read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(
            t("{path} cannot be read: {error}", path=name, error=str(error)), Exit.USAGE
        ) from None
    return [line for line in lines if line.strip()][:1000]
