"""What ``doctor predict`` shows: each answer as a person reads it, how far it is, what was left out or cut."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, TextIO

from doctor.language import say
from runner.strings import shown
from runner.text import Text, t

_EVERY_S, _EVERY_S_IN_A_LOG = 0.5, 60.0
"""How often progress is said: over a slow line, and to a file."""


class Progress:
    """Says on stderr how many are answered and how fast: in place on a terminal, now and then a line elsewhere."""

    def __init__(self, clock: Callable[[], float] = time.monotonic, stream: TextIO | None = None) -> None:
        self._clock, self._stream = clock, stream or sys.stderr
        self._in_place = self._stream.isatty()
        self._said_at = self._began_at = clock()
        self._began_with: int | None = None
        self._width = 0

    def answered(self, count: int) -> None:
        """Take note that ``count`` are answered; say it where it is time."""
        now = self._clock()
        if self._began_with is None:  # before it the model was loaded
            self._began_with, self._began_at, self._said_at = count, now, now
        if now - self._said_at < (_EVERY_S if self._in_place else _EVERY_S_IN_A_LOG):
            return
        self._said_at = now
        rate = (count - self._began_with) / (now - self._began_at)
        words = say(t("{count} answered, {rate} a second", count=count, rate=f"{rate:.1f}"))
        self._print("\r" + words.ljust(self._width) if self._in_place else words + "\n")
        self._width = len(words) if self._in_place else 0

    def end(self) -> None:
        """Clear the line."""
        if self._width:
            self._print("\r" + " " * self._width + "\r")
            self._width = 0

    def _print(self, words: str) -> None:
        print(words, end="", file=self._stream, flush=True)


def show(line: dict[str, Any], as_json: bool, progress: Progress) -> None:
    """Show one line of the child that answers (see :func:`runner.deploy.predicting.predict`)."""
    if "answer" in line:
        _show_answer(line["answer"], as_json)
    elif "written" in line:
        progress.end()
        print(
            say(
                t("{count} {count:answer|answers} in {path}", count=line["done"], path=shown(line["written"]))
            )
        )
    elif "kept" in line:
        progress.end()
        _talk(t("{count} {count:answer is|answers are} kept in {path}: the same line with --resume goes on from there",
                count=line["kept"], path=shown(line["part"])))  # fmt: skip
    elif "doing" in line:
        import msgspec

        progress.end()
        _talk(msgspec.convert(line["doing"], Text))
    elif "done" in line:
        progress.answered(line["done"])
    if line.get("left_out"):
        _talk(t("{count} {count:row has|rows have} more or fewer fields than the header, and no answer", count=line["left_out"]))  # fmt: skip
    if line.get("cut_rows"):
        _talk(t("of {count} {count:text|texts} only the first {length} tokens were read (the column cut_tokens says how many were not)",
                count=line["cut_rows"], length=line["max_length"]))  # fmt: skip


def _talk(text: Text) -> None:
    print(say(text), file=sys.stderr, flush=True)


def _show_answer(answer: dict[str, Any], as_json: bool) -> None:
    if as_json:
        import msgspec

        print(msgspec.json.encode(answer).decode(), flush=True)
        return
    print("\n".join(answer_lines(answer)), flush=True)
    if answer["cut_tokens"]:
        print("    " + say(t("cut: the last {count} {count:token|tokens} of the text were not read", count=answer["cut_tokens"])), flush=True)  # fmt: skip


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
