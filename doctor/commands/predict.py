"""``doctor predict``: what a trained model says of texts; from a run, a folder, or an ONNX file, the same answers."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Any

from doctor.commands import CommandError, Exit
from doctor.commands.predict_show import Progress, show
from doctor.commands.trained import require_length, source_named
from doctor.language import say
from runner.deploy.records import TABLES
from runner.text import t


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "name", metavar="RUN|FOLDER|MODEL.onnx",
        help=say("a run (or last), a folder with a model, or an ONNX file of `doctor export`"),
    )  # fmt: skip
    parser.add_argument("texts", nargs="*", metavar="TEXT", help=say("texts to answer (none: one a line from standard input)"))  # fmt: skip
    parser.add_argument("--checkpoint", default="", metavar="STEP|best|last", help=say("a checkpoint of the run in place of its end (default where it has not ended: best)"))  # fmt: skip
    parser.add_argument("--file", metavar="FILE", help=say("a CSV, TSV, JSONL, Parquet or text file instead"))
    parser.add_argument("--column", default="text", metavar="NAME", help=say("its column with the text (default: text)"))  # fmt: skip
    parser.add_argument("--pair-column", default="", metavar="NAME", help=say("its column with the second text, where there are two"))  # fmt: skip
    parser.add_argument(
        "--encoding", default="auto", metavar="NAME", help=say("its encoding (default: found out)")
    )
    parser.add_argument("-o", "--output", metavar="FILE", help=say("write the answers there: .csv, .jsonl or .parquet"))  # fmt: skip
    parser.add_argument("--resume", action="store_true", help=say("with -o: go on from what an interrupted call answered"))  # fmt: skip
    parser.add_argument("--max-length", type=int, metavar="N", help=say("read no more than N tokens of a text (default: as many as in training)"))  # fmt: skip
    parser.add_argument("--top", type=int, default=5, metavar="N", help=say("how many classes or tokens are shown (default: 5)"))  # fmt: skip
    parser.add_argument("--new-tokens", type=int, default=50, metavar="N", help=say("how far a text is continued (default: 50)"))  # fmt: skip
    parser.add_argument(
        "--batch-size", type=int, default=16, metavar="N", help=say("texts at a time (default: 16)")
    )
    parser.add_argument("--python", metavar="PATH", help=say("the interpreter or environment that has torch"))
    parser.add_argument("--json", action="store_true", help=say("one JSON object a line"))


def run(namespace: argparse.Namespace) -> int:
    from doctor import service
    from doctor.launch import LaunchError
    from doctor.probes.target import BadPython

    if min(namespace.top, namespace.new_tokens, namespace.batch_size) < 1:
        raise CommandError(say("--top, --new-tokens and --batch-size take a number from 1 up"), Exit.USAGE)
    require_length(namespace.max_length)
    if namespace.resume and not namespace.output:
        raise CommandError(say("--resume goes on with the file that -o names"), Exit.USAGE)
    source, progress = source_named(namespace.name, namespace.checkpoint), Progress()
    try:
        for line in service.predict(source, _request(namespace), namespace.python):
            show(line, namespace.json, progress)
    except (LaunchError, BadPython) as error:
        raise CommandError(error.text) from None
    return Exit.OK


def _request(namespace: argparse.Namespace) -> dict[str, Any]:
    if namespace.file and namespace.texts:
        raise CommandError(say("give texts or --file, not both"), Exit.USAGE)
    if namespace.file and not Path(namespace.file).is_file():
        raise CommandError(t("there is no file {path}", path=namespace.file), Exit.USAGE)
    output = namespace.output
    if output and Path(output).suffix.lower() not in TABLES:
        raise CommandError(
            t("{path}: the answers are written as .csv, .jsonl or .parquet", path=output), Exit.USAGE
        )
    return {
        "texts": _texts(namespace),
        "file": str(Path(namespace.file).absolute()) if namespace.file else "",
        "column": namespace.column,
        "pair_column": namespace.pair_column,
        "encoding": namespace.encoding,
        "out": str(Path(output).absolute()) if output else "",
        "resume": namespace.resume,
        "max_length": namespace.max_length,
        "top": namespace.top,
        "new_tokens": namespace.new_tokens,
        "batch_size": namespace.batch_size,
    }


def _texts(namespace: argparse.Namespace) -> list[str]:
    if namespace.file:
        return []
    if not namespace.texts:
        return _typed(namespace.encoding)
    # What a terminal that is not UTF-8 typed comes as bytes in disguise.
    return [_decoded(os.fsencode(text), namespace.encoding, "TEXT") for text in namespace.texts]


def _typed(encoding: str) -> list[str]:
    """Return the lines of standard input that hold a text; its encoding is found as that of a file is."""
    if sys.stdin.isatty():
        print(say("one text a line; Ctrl-D answers them:"), file=sys.stderr, flush=True)
    lines = _decoded(sys.stdin.buffer.read(), encoding, say("standard input")).removesuffix("\n").split("\n")
    texts = [line.rstrip("\r") for line in lines if line.strip()]
    if not texts:
        raise CommandError(say("there is no text to answer"), Exit.USAGE)
    if left_out := len(lines) - len(texts):
        words = t(
            "{count} empty {count:line of standard input has|lines of standard input have} no answer",
            count=left_out,
        )
        print(say(words), file=sys.stderr, flush=True)
    return texts


def _decoded(data: bytes, encoding: str, place: str) -> str:
    from runner.encodings import decode_bytes

    try:
        return decode_bytes(data)[0] if encoding == "auto" else data.decode(encoding)
    except (ValueError, LookupError) as error:
        raise CommandError(
            t("{path} cannot be read: {error}", path=place, error=str(error)), Exit.USAGE
        ) from None
