"""RECORD out of a wheel at an index by parts: exact where it can be had, none where it cannot, never the whole file."""

from __future__ import annotations

import random
import zipfile
from pathlib import Path

import pytest

from doctor.probes.record_digest import record_digest
from doctor.remote_wheel import LIMIT_BYTES, as_installed, read_record
from tests.snapshots.wheels import contents_of, make_wheel


class Server:
    """Serves ranges of a file as an index does, and counts what it sent."""

    def __init__(self, path: Path) -> None:
        self.raw, self.sent = path.read_bytes(), 0

    def __call__(self, url: str, wanted: str) -> tuple[bytes, int]:
        first, _, last = wanted.removeprefix("bytes=").partition("-")
        begin = int(first) if first else max(0, len(self.raw) - int(last))
        end = int(last) + 1 if first and last else len(self.raw)
        self.sent += end - begin
        return self.raw[begin:end], len(self.raw)


def big_wheel(folder: Path) -> Path:
    noise = random.Random(0).randbytes(3 << 20)
    return make_wheel(
        folder,
        "one",
        "1.0",
        {"one.py": b"x = 1\n", "one.bin": noise, **{f"many/{n}.py": b"y" for n in range(3000)}},
    )


def test_record_is_the_wheels_own_and_little_else_is_fetched(tmp_path: Path) -> None:
    path = big_wheel(tmp_path)
    server = Server(path)
    record = read_record("https://h.example/one.whl", server)
    with zipfile.ZipFile(path) as wheel:
        assert record == wheel.read("one-1.0.dist-info/RECORD")
    assert server.sent < len(server.raw) / 2


def test_its_digest_is_that_of_the_installed_one(tmp_path: Path) -> None:
    files = {"one.py": b"x = 1\n"}
    record = read_record("https://h.example/one.whl", Server(make_wheel(tmp_path, "one", "1.0", files)))
    assert record is not None
    assert record_digest(record) == record_digest(
        contents_of("one", "1.0", files)["one-1.0.dist-info/RECORD"]
    )


def no_ranges(url: str, wanted: str) -> tuple[bytes, int]:
    raise OSError("no range requests")


def test_a_server_without_ranges_gives_none() -> None:
    assert read_record("https://h.example/one.whl", no_ranges) is None


@pytest.mark.parametrize("damage", ["no zip", "cut short", "no RECORD", "two RECORDs"])
def test_what_is_no_wheel_gives_none(tmp_path: Path, damage: str) -> None:
    path = make_wheel(tmp_path, "one", "1.0")
    if damage == "no zip":
        path.write_bytes(b"x" * 100_000)
    elif damage == "cut short":
        path.write_bytes(path.read_bytes()[:-30])
    else:
        with zipfile.ZipFile(path, "w") as wheel:
            for info in () if damage == "no RECORD" else ("a-1.dist-info", "b-1.dist-info"):
                wheel.writestr(f"{info}/RECORD", "")
    assert read_record("https://h.example/one.whl", Server(path)) is None


def test_a_server_that_sends_without_end_is_left() -> None:
    def endless(url: str, wanted: str) -> tuple[bytes, int]:
        return b"x" * (LIMIT_BYTES + 1), 1 << 40

    assert read_record("https://h.example/one.whl", endless) is None


def test_what_a_wheel_puts_elsewhere_is_not_what_is_compared() -> None:
    record = b"lib/x.py,sha256=A,1\r\nlib-1.data/purelib/lib/y.py,sha256=B,1\r\nlib-1.data/scripts/lib,sha256=C,1\r\nlib-1.data/data/share/z,sha256=D,1\r\nlib-1.dist-info/RECORD,,\r\n"
    left = b"lib/x.py,sha256=A,1\nlib/y.py,sha256=B,1\n../../../bin/lib,sha256=E,1\n../../../share/z,sha256=D,1\nlib-1.dist-info/RECORD,,\nlib-1.dist-info/INSTALLER,sha256=F,3\n"
    assert record_digest(as_installed(record)) == record_digest(left) and record_digest(left)[1] == 2
