"""Which texts were met before, in 12 bytes of flat memory a slot: a data set larger than memory has millions of
them. Pure."""

from __future__ import annotations

import hashlib
from array import array

_FULLEST = 0.7
"""Share of slots in use beyond which the table doubles: linear probing stays at a few looks."""


def text_key(text: str, pair: str) -> int:
    """Return a 64-bit hash of a row's texts, never 0: 0 marks a free slot."""
    content = f"{text}\0{pair}".encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(content, digest_size=8).digest(), "big") or 1


class RowDigest:
    """One hash over all rows in their order: were they the same the second time?"""

    def __init__(self) -> None:
        self._hash = hashlib.blake2b(digest_size=16)

    def add(self, row: str) -> None:
        self._hash.update(row.encode("utf-8", "surrogatepass") + b"\0")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RowDigest) and self._hash.digest() == other._hash.digest()

    __hash__ = None  # type: ignore[assignment]

    def hex(self) -> str:
        return self._hash.hexdigest()


class SeenTexts:
    """Maps a text's key to a small number (its label's); open addressing over two flat arrays."""

    def __init__(self, slots: int = 1 << 12) -> None:
        self._used = 0
        self._keys, self._values = array("Q", bytes(8 * slots)), array("i", bytes(4 * slots))

    def __len__(self) -> int:
        return self._used

    def get(self, key: int) -> int | None:
        slot = self._slot(key)
        return self._values[slot] if self._keys[slot] else None

    def add(self, key: int, value: int) -> None:
        """Set the number of a key, whether or not it was there."""
        slot = self._slot(key)
        if not self._keys[slot]:
            self._used += 1
        self._keys[slot], self._values[slot] = key, value
        if self._used > _FULLEST * len(self._keys):
            self._grow()

    def _slot(self, key: int) -> int:
        """Return the key's slot, or the free one where it would stand."""
        last = len(self._keys) - 1
        slot = key & last
        while self._keys[slot] not in (0, key):
            slot = (slot + 1) & last
        return slot

    def _grow(self) -> None:
        keys, values = self._keys, self._values
        slots = 2 * len(keys)
        self._keys, self._values = array("Q", bytes(8 * slots)), array("i", bytes(4 * slots))
        for key, value in zip(keys, values, strict=True):
            if key:
                slot = self._slot(key)
                self._keys[slot], self._values[slot] = key, value
