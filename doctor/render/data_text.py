"""A profile's rows as lines of text. Pure but for the width."""

from __future__ import annotations

from collections.abc import Iterator

from doctor.language import say
from doctor.render.layout import indent, pad
from runner.data_page import ClassRows, DataPage
from runner.strings import printable
from runner.text import t

CLASSES_SHOWN = 20
NAME_WIDTH = 30


def data_lines(page: DataPage, width: int) -> Iterator[str]:
    """Yield how many rows there are, of which classes, and what is odd, the worst first."""
    if page.can_train:
        yield say(t("{train} {train:row|rows} to train on, {held_out} held out, {classes} {classes:class|classes}",
                    train=page.train, held_out=page.held_out, classes=len(page.classes)))  # fmt: skip
        yield from _class_lines(page.classes)
    marks = {"fail": say("cannot train:"), "warn": say("mind:"), "info": say("note:")}
    for level, mark in marks.items():
        for note in page.notes:
            if note.level == level:
                yield from indent(say(note.text), width, f"  {mark} ", "    ")


def _class_lines(classes: list[ClassRows]) -> Iterator[str]:
    if not classes:
        return
    names = [printable(one.name)[:NAME_WIDTH] for one in classes[:CLASSES_SHOWN]]
    widest = max(map(len, names))
    yield f"  {pad('', widest)}  {say('train'):>9} {say('held out'):>9}"
    for name, one in zip(names, classes, strict=False):
        yield f"  {pad(name, widest)}  {one.train:>9} {one.held_out:>9}"
    if len(classes) > CLASSES_SHOWN:
        yield "  " + say(t("and {count} more", count=len(classes) - CLASSES_SHOWN))
