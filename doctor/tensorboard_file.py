"""TensorBoard's event files read without TensorBoard: a record's length and bytes, and of its message the scalars alone. Pure.

A file is a row of TFRecords (length as 8 bytes little-endian, its masked CRC-32C, the bytes, their CRC); each holds an
``Event`` (tensorflow/core/util/event.proto): 1 wall_time, 2 step, 5 summary; a summary's 1 value: 1 tag, 2 simple_value,
8 tensor (1 dtype, 4 tensor_content, 5 float_val, 6 double_val). The numbers of fields are protobuf's own contract.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

LONGEST_RECORD = 64 << 20
"""Bytes; pictures and histograms are smaller. A larger length is a damaged file."""
_HEAD, _TAIL = 12, 4
_FLOAT, _DOUBLE = 1, 2


class Damaged(ValueError):  # noqa: N818 - it is what it says
    """Not a TensorBoard file, or not from here on."""


@dataclass(frozen=True)
class Scalars:
    """What one event says in numbers."""

    wall_time: float
    """Seconds since the epoch."""
    step: int
    values: dict[str, float]
    """By tag."""


def read_scalars(content: bytes) -> tuple[list[Scalars], int]:
    """Return the events with scalars among the whole records of ``content``, and how many bytes those take.

    Raises:
        Damaged: the first record's length does not fit its own check. (A later one ends the reading: it is the first of
            what is left.)
    """
    found, at = [], 0
    while at + _HEAD <= len(content):
        (length,) = struct.unpack_from("<Q", content, at)
        (check,) = struct.unpack_from("<I", content, at + 8)
        if check != _masked_crc(content[at : at + 8]) or length > LONGEST_RECORD:
            if at:
                break
            raise Damaged
        end = at + _HEAD + length + _TAIL
        if end > len(content):
            break
        event = _event(content[at + _HEAD : end - _TAIL])
        if event is not None and event.values:
            found.append(event)
        at = end
    return found, at


def _event(message: bytes) -> Scalars | None:
    wall_time, step, values = 0.0, 0, dict[str, float]()
    try:
        for number, item in _fields(message):
            if number == 1 and isinstance(item, bytes) and len(item) == 8:
                (wall_time,) = struct.unpack("<d", item)
            elif number == 2 and isinstance(item, int):
                step = item if item < 1 << 63 else item - (1 << 64)
            elif number == 5 and isinstance(item, bytes):
                values.update(_summary(item))
    except (IndexError, struct.error):  # a message cut within: its record was whole, so it is none of ours
        return None
    return Scalars(wall_time, step, values)


def _summary(message: bytes) -> Iterator[tuple[str, float]]:
    for number, item in _fields(message):
        if number != 1 or not isinstance(item, bytes):
            continue
        tag, value = "", None
        for part, content in _fields(item):
            if part == 1 and isinstance(content, bytes):
                tag = content.decode("utf-8", "replace")
            elif part == 2 and isinstance(content, bytes):
                (value,) = struct.unpack("<f", content)
            elif part == 8 and isinstance(content, bytes):
                value = _tensor(content)
        if tag and value is not None:
            yield tag, value


def _tensor(message: bytes) -> float | None:
    """Return the one number of a tensor; None: it holds another kind, or more than one."""
    kind, raw = 0, b""
    for number, item in _fields(message):
        if number == 1 and isinstance(item, int):
            kind = item
        elif number in (4, 5, 6) and isinstance(item, bytes):
            raw = item
    if kind == _FLOAT and len(raw) == 4:
        return float(struct.unpack("<f", raw)[0])
    if kind == _DOUBLE and len(raw) == 8:
        return float(struct.unpack("<d", raw)[0])
    return None


def _fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield number and value of each field: an int of a varint, else its bytes."""
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        wire = key & 7
        if wire == 0:
            value, at = _varint(message, at)
            yield key >> 3, value
            continue
        if wire == 2:
            size, at = _varint(message, at)
        elif wire in (1, 5):
            size = 8 if wire == 1 else 4
        else:
            raise IndexError("a wire type that event files do not use")
        if at + size > len(message):
            raise IndexError("a field longer than its message")
        yield key >> 3, message[at : at + size]
        at += size


def _varint(message: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at
        if shift > 63:
            raise IndexError("a varint without end")


def _crc_table() -> list[int]:
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)  # Castagnoli's polynomial, reversed
        table.append(byte)
    return table


_TABLE = _crc_table()


def _masked_crc(content: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in content:
        crc = _TABLE[(crc ^ byte) & 0xFF] ^ crc >> 8
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
