"""The parsed copy of the tables: never believed when a table has changed, and up to date when it ships."""

from __future__ import annotations

from pathlib import Path

import pytest

from doctor import tables
from tests.tables import current


@pytest.fixture(autouse=True)
def _forget() -> None:
    tables.load.cache_clear()
    tables._ready.cache_clear()


def test_the_parsed_copy_is_up_to_date() -> None:
    assert tables.READY.read_bytes() == current(), "run: python -m tests.tables --write"


@pytest.mark.parametrize("path", sorted(tables.READY.parent.glob("*.toml")), ids=lambda path: str(path.stem))
def test_a_table_is_the_same_parsed_or_ready(path: Path) -> None:
    assert tables.load(path.stem) == tables.parse(path.read_bytes())


@pytest.mark.parametrize(
    "ready", [b"", b"[]", b"{", b'{"drivers": {}}', b'{"drivers": {"mark": "1-0", "table": {"x": 1}}}']
)
def test_a_stale_or_broken_copy_is_not_believed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ready: bytes
) -> None:
    (tmp_path / "ready.json").write_bytes(ready)
    monkeypatch.setattr(tables, "READY", tmp_path / "ready.json")
    assert tables.load("drivers") == tables.parse((tables._FOLDER / "drivers.toml").read_bytes())


def test_without_the_copy_tables_are_parsed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "READY", tmp_path / "gone.json")
    assert tables.load("gpus") == tables.parse((tables._FOLDER / "gpus.toml").read_bytes())


def test_an_unknown_table_is_an_error() -> None:
    with pytest.raises(FileNotFoundError):
        tables.load("unheard-of")
