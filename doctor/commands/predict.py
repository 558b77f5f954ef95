"""``doctor predict``: what a trained model says of texts; from a run, a folder, or an ONNX file, the same answers."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from doctor.commands import CommandError, Exit
from doctor.commands.trained import source_named
from doctor.language import say
from runner.deploy.records import TABLES
from runner.strings import shown
from runner.text import Text, t

if TYPE_CHECKING:
    from doctor.model_work import Source


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
    source = source_named(namespace.name, namespace.checkpoint)
    try:
        for line in service.predict(source, _request(source, namespace), namespace.python):
            _show(line, namespace.json)
    except (LaunchError, BadPython) as error:
        raise CommandError(error.text) from None
    return Exit.OK


def _request(source: Source, namespace: argparse.Namespace) -> dict[str, Any]:
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
        "texts": namespace.texts or ([] if namespace.file else _typed()),
        "file": str(Path(namespace.file).absolute()) if namespace.file else "",
        "column": namespace.column,
        "pair_column": namespace.pair_column,
        "encoding": namespace.encoding,
        "out": str(Path(output).absolute()) if output else "",
        "top": namespace.top,
        "new_tokens": namespace.new_tokens,
        "batch_size": namespace.batch_size,
    }


def _typed() -> list[str]:
    if sys.stdin is None:
        raise CommandError(say("there is no text to answer"), Exit.USAGE)
    if sys.stdin.isatty():
        print(say("one text a line; Ctrl-D answers them:"), file=sys.stderr, flush=True)
    texts = [line.rstrip("\r\n") for line in sys.stdin if line.strip()]
    if not texts:
        raise CommandError(say("there is no text to answer"), Exit.USAGE)
    return texts


def _show(line: dict[str, Any], as_json: bool) -> None:
    if "answer" in line:
        if as_json:
            import msgspec

            print(msgspec.json.encode(line["answer"]).decode(), flush=True)
        else:
            print("\n".join(answer_lines(line["answer"])), flush=True)
    elif "written" in line:
        print(
            say(
                t("{count} {count:answer|answers} in {path}", count=line["done"], path=shown(line["written"]))
            )
        )
    elif "doing" in line:
        import msgspec

        print(say(msgspec.convert(line["doing"], Text)), file=sys.stderr, flush=True)
    elif "done" in line and sys.stderr.isatty():
        print("\r" + say(t("{count} answered", count=line["done"])), end="\r", file=sys.stderr, flush=True)
    if line.get("left_out"):
        words = t("{count} {count:row has|rows have} more or fewer fields than the header, and no answer", count=line["left_out"])  # fmt: skip
        print(say(words), file=sys.stderr, flush=True)


def answer_lines(answer: dict[str, Any]) -> Iterator[str]:
    """Yield an answer as a person reads it: the answer first, then the text."""
    text = shown(" ".join(str(answer["text"]).split()))
    brief = text if len(text) <= 60 else text[:59] + "…"
    if "label" in answer:
        others = list(answer["scores"].items())[1:]
        rest = "  ".join(f"{shown(name)} {score:.3f}" for name, score in others)
        yield f"{shown(answer['label'])}  {answer['score']:.3f}  {brief}" + (f"\n    {rest}" if rest else "")
    elif "labels" in answer:
        yield f"{shown(', '.join(answer['labels'])) or '-'}  {brief}"
        yield "    " + "  ".join(f"{shown(name)} {score:.3f}" for name, score in answer["scores"].items())
    elif "tags" in answer:
        yield " ".join(f"{shown(word)}/{shown(tag)}" for word, tag in zip(answer["words"], answer["tags"], strict=True))  # fmt: skip
    elif "gaps" in answer:
        yield brief
        for gap in answer["gaps"]:
            yield "    " + "  ".join(f"{shown(name)} {score:.3f}" for name, score in gap.items())
    elif "continuation" in answer:
        yield text + shown(answer["continuation"])
    else:
        value = answer.get("value", answer.get("values"))
        yield f"{value}  {brief}"
