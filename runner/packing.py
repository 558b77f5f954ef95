"""Texts joined into rows of one length, for language modelling: nothing is padded, nothing is cut off. Pure.

Where a text begins is kept for every token, so that no text's first token is predicted from the text before it and
positions begin anew.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy


class Packed(NamedTuple):
    """Whole rows of one length, one after another."""

    rows: Any
    """The source row that each packed row begins in, int64."""
    lengths: Any
    ids: Any
    starts: Any
    """int8 as ``ids``: 1 where a text begins."""


class Packer:
    """Takes texts in their order; what does not fill a row waits for the next."""

    def __init__(self, length: int, end_id: int | None) -> None:
        self.length, self.end_id = length, end_id
        self._ids, self._starts, self._rows = _empty()

    def add(self, rows: Any, lengths: Any, ids: Any) -> Packed:
        """Take in some texts and return the rows that are full now.

        A text whose last token is not the end token gets one: the model learns where texts end.
        """
        pieces: list[tuple[Any, Any, Any]] = [(self._ids, self._starts, self._rows)]
        for number, text in zip(rows, numpy.split(ids, numpy.cumsum(lengths)[:-1]), strict=True):
            if self.end_id is not None and (not len(text) or text[-1] != self.end_id):
                text = numpy.append(text, numpy.int32(self.end_id))
            starts = numpy.zeros(len(text), "int8")
            starts[:1] = 1
            pieces.append((text, starts, numpy.full(len(text), number, "int64")))
        self._ids, self._starts, self._rows = (numpy.concatenate(part) for part in zip(*pieces, strict=True))
        return self._take(len(self._ids) // self.length * self.length)

    def rest(self) -> Packed:
        """Return what is left: one shorter row, or none."""
        return self._take(len(self._ids))

    def _take(self, count: int) -> Packed:
        ids, starts, rows = self._ids[:count], self._starts[:count], self._rows[:count]
        # A copy: a slice would keep the whole chunk in memory.
        self._ids, self._starts, self._rows = (
            part[count:].copy() for part in (self._ids, self._starts, self._rows)
        )
        begins = range(0, count, self.length)
        lengths = [min(self.length, count - begin) for begin in begins]
        return Packed(
            rows[:: self.length].astype("int64"), numpy.asarray(lengths, "int64"), ids.astype("int32"), starts
        )

    def waiting(self) -> list[list[int]]:
        """Return what waits, as JSON can hold it."""
        return [part.tolist() for part in (self._ids, self._starts, self._rows)]

    def put_back(self, waiting: list[list[int]]) -> None:
        """Take up again what :meth:`waiting` returned."""
        kinds = ("int32", "int8", "int64")
        self._ids, self._starts, self._rows = (
            numpy.asarray(part, kind) for part, kind in zip(waiting, kinds, strict=True)
        )


def _empty() -> tuple[Any, Any, Any]:
    return numpy.zeros(0, "int32"), numpy.zeros(0, "int8"), numpy.zeros(0, "int64")


def positions_of(starts: Any) -> Any:
    """Return each token's place within its text, int64: counted anew from every start and from the row's first."""
    places = numpy.arange(len(starts), dtype="int64")
    begun = numpy.where(starts == 1, places, 0)
    return places - numpy.maximum.accumulate(begun)
