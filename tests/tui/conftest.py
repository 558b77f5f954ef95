"""English before and after each test; Chinese from the parts of the catalogue, whether or not it was compiled."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from babel.messages.catalog import Catalog
from babel.messages.mofile import write_mo

from doctor import language
from tests.catalogue import translations


@pytest.fixture(autouse=True)
def english(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv(
        "DOCTOR_CONFIG_DIR", str(tmp_path_factory.mktemp("config"))
    )  # `l` keeps its choice there
    language.use_language("en")
    yield
    language.use_language("en")


@pytest.fixture(scope="session")
def chinese_catalogue(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a locale folder with the parts compiled."""
    folder = tmp_path_factory.mktemp("locale")
    catalogue = Catalog(locale="zh_CN", charset="utf-8")
    for msgid, text in translations()[0].items():
        catalogue.add(msgid, text)
    compiled = folder / "zh_CN" / "LC_MESSAGES" / "doctor.mo"
    compiled.parent.mkdir(parents=True)
    with compiled.open("wb") as file:
        write_mo(file, catalogue)
    return folder


@pytest.fixture
def chinese(chinese_catalogue: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let use_language("zh") find the parts as they stand, and start in Chinese."""
    monkeypatch.setattr(language, "_LOCALE_DIR", chinese_catalogue)
    language.use_language("zh")
