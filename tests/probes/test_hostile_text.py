"""Whatever stands in a file of the environment, its parser answers: nothing raised, nothing that a terminal
would obey."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from doctor.probes.dist_info import (
    critical_paths,
    name_and_version,
    parse_direct_url,
    parse_headers,
    parse_requires_txt,
    read_distribution,
)
from doctor.probes.environments import kernel_python
from doctor.probes.extensions import cxx11_abi, from_tag
from doctor.probes.interpreter import parse_pyvenv
from doctor.probes.libraries import parse_loader_cache
from doctor.probes.search_path import parse_pth
from doctor.probes.toolkit import parse_nvcc, parse_version_json
from doctor.probes.torch import parse_transformers_minimum

TEXT = st.text(st.characters(exclude_categories=())) | st.text(
    '{}[]":,/\\\n argvcudaversion0123456789', max_size=60
)
BYTES = st.binary() | st.text("Name: \nRequires-Dist;,/torchlib.so\0\r").map(str.encode)


@pytest.mark.parametrize(
    "parse",
    [parse_direct_url, parse_requires_txt, kernel_python, parse_pyvenv, parse_version_json, parse_nvcc,
     parse_transformers_minimum, name_and_version],
    ids=lambda parse: str(parse.__name__),
)  # fmt: skip
@given(text=TEXT)
@settings(max_examples=150, deadline=None)
def test_a_parser_of_text_never_raises(parse: Callable[[str], object], text: str) -> None:
    parse(text)


@pytest.mark.parametrize(
    "parse", [parse_headers, parse_loader_cache, cxx11_abi], ids=lambda parse: str(parse.__name__)
)
@given(raw=BYTES)
@settings(max_examples=150, deadline=None)
def test_a_parser_of_bytes_never_raises(parse: Callable[[bytes], object], raw: bytes) -> None:
    parse(raw)


@given(raw=BYTES, name=st.sampled_from(["torch", "torchvision", "nvidia-cudnn-cu12", "numpy", ""]))
@settings(max_examples=150, deadline=None)
def test_a_record_never_raises_and_names_only_its_own_files(raw: bytes, name: str) -> None:
    top = name.partition("-")[0].encode()
    assert all(path.startswith(top + b"/") for path in critical_paths(b"\n" + raw, name))


@given(text=TEXT, version=TEXT)
@settings(max_examples=100, deadline=None)
def test_tags_and_pth_lines_never_raise(text: str, version: str) -> None:
    from_tag("x", version, text)
    assert all(path.is_dir() for path in parse_pth(text, Path("/")))


@given(metadata=st.binary(max_size=300))
@settings(max_examples=60, deadline=None)
def test_a_distribution_of_any_bytes_holds_no_control_character(
    metadata: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    site = tmp_path_factory.mktemp("site")
    folder = site / "some-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_bytes(b"Name: " + metadata + b"\nVersion: " + metadata)
    (folder / "WHEEL").write_bytes(b"Tag: " + metadata)
    (folder / "INSTALLER").write_bytes(metadata)
    item = read_distribution(os.fspath(site), folder.name)
    shown = (
        item.name,
        item.version,
        item.installer or "",
        item.metadata_error,
        *item.wheel_tags,
        *(item.requires_dist or ()),
    )
    assert all(unicodedata.category(character) not in ("Cc", "Cs") for text in shown for character in text)
