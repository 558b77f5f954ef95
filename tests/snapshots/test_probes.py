"""Data fingerprints, index configuration, conda's records, system packages: each from a small tree or a literal text."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest

from doctor.model import IndexLine, Provenance, Text
from doctor.probes import Context, data_prints, read_facts
from doctor.probes.conda_meta import read_conda
from doctor.probes.data_prints import fingerprint, sample_places
from doctor.probes.index_config import lines_of, parse_pip, parse_uv, read_indexes
from doctor.probes.os_packages import parse_dpkg
from tests.snapshots.wheels import install


# ---------------------------------------------------------------------------------------- data
def test_a_small_file_is_read_whole_and_one_byte_changes_it(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_bytes(b"a,1\n" * 100)
    before = fingerprint(path)
    path.write_bytes(b"a,1\n" * 99 + b"a,2\n")
    after = fingerprint(path)
    assert before.how == "whole" and before.size_bytes == 400 and before.sha256 != after.sha256


def test_a_large_file_is_sampled_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data_prints, "WHOLE_LIMIT_BYTES", 1000)
    monkeypatch.setattr(data_prints, "BLOCK_BYTES", 100)
    path = tmp_path / "big.bin"
    path.write_bytes(bytes(10_000))
    before = fingerprint(path)
    path.write_bytes(bytes(9_999) + b"\1")
    assert before.how == "sampled" and fingerprint(path).sha256 != before.sha256
    path.write_bytes(bytes(10_001))
    assert fingerprint(path).sha256 != before.sha256


def test_samples_cover_both_ends_and_do_not_overlap() -> None:
    places = sample_places(1 << 40)
    assert places[0][0] == 0 and sum(places[-1]) == 1 << 40
    assert all(a + length <= b for (a, length), (b, _) in pairwise(places))


def test_a_folder_is_its_names_sizes_and_contents(tmp_path: Path) -> None:
    (tmp_path / "d/x").mkdir(parents=True)
    (tmp_path / "d/x/1.txt").write_text("one")
    (tmp_path / "d/2.txt").write_text("two")
    before = fingerprint(tmp_path / "d")
    (tmp_path / "d/2.txt").rename(tmp_path / "d/3.txt")
    assert (
        before.files == 2 and before.size_bytes == 6 and fingerprint(tmp_path / "d").sha256 != before.sha256
    )


def test_data_that_is_not_there_is_said(tmp_path: Path) -> None:
    found = fingerprint(tmp_path / "gone")
    assert found.sha256 == "" and "gone" in str(found.why)


# ---------------------------------------------------------------------------------------- indexes
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[global]\nindex-url = https://u:pw@h/simple\n", [("index-url", "https://h/simple")]),
        ("[install]\nextra_index_url =\n  https://a/s\n  https://b/s\n", [("extra-index-url", "https://a/s"), ("extra-index-url", "https://b/s")]),
        ("[global]\nfind-links = /opt/wheels\n", [("find-links", "/opt/wheels")]),
        ("this is no configuration", []),
    ],
)  # fmt: skip
def test_pips_configuration(text: str, expected: list[tuple[str, str]]) -> None:
    assert [(line.option, line.url) for line in parse_pip(text, "f")] == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('index-url = "https://h/simple"\n', [("index-url", "https://h/simple")]),
        (
            '[[index]]\nname = "t"\nurl = "https://h/whl/cu124"\n',
            [("extra-index-url", "https://h/whl/cu124")],
        ),
        ('[[index]]\nurl = "https://m/simple"\ndefault = true\n', [("index-url", "https://m/simple")]),
        ("broken = [", []),
    ],
)
def test_uvs_configuration(text: str, expected: list[tuple[str, str]]) -> None:
    assert [(line.option, line.url) for line in parse_uv(text, "f")] == expected


def test_variables_name_indexes_and_lose_credentials(tmp_path: Path) -> None:
    environ = {
        "PIP_INDEX_URL": "https://me:s3cret@pypi.example/simple",
        "UV_INDEX": "torch=https://h/whl/cu124",
    }
    context = Context(root=tmp_path, environ=environ, cwd=tmp_path)
    unread: dict[str, Text] = {}
    assert read_indexes(context, None, unread) == (
        IndexLine(option="index-url", url="https://pypi.example/simple", source="PIP_INDEX_URL"),
        IndexLine(option="extra-index-url", url="https://h/whl/cu124", source="UV_INDEX"),
    )
    assert lines_of("index-url", "", "x") == []


# ---------------------------------------------------------------------------------------- conda and the system
def test_condas_records_are_read_without_conda(tmp_path: Path) -> None:
    (tmp_path / "conda-meta").mkdir()
    record = {"name": "numpy", "version": "1.26.4", "build": "py311_0", "channel": "https://c/t/SECRETTOKEN/main", "url": "https://c/t/SECRETTOKEN/main/n.conda", "sha256": "a" * 64, "files": ["x"] * 9}  # fmt: skip
    (tmp_path / "conda-meta/numpy-1.26.4-py311_0.json").write_text(json.dumps(record))
    (tmp_path / "conda-meta/broken-1-0.json").write_text("{")
    unread: dict[str, Text] = {}
    found = read_conda(tmp_path, unread)
    assert [(one.name, one.build, one.sha256) for one in found] == [
        ("numpy", "py311_0", "sha256:" + "a" * 64)
    ]
    assert "SECRETTOKEN" not in str(found) and "broken" in str(unread["conda"])


def test_system_packages_that_matter_are_named() -> None:
    text = (
        "Package: libc6\nStatus: install ok installed\nDepends: libgcc-s1\nVersion: 2.36-9\n\n"
        "Package: cuda-toolkit-12-4\nStatus: deinstall ok config-files\nVersion: 12.4.1\n\n"
        "Package: vim\nStatus: install ok installed\nVersion: 9\n\n"
        "Package: libcudnn9-cuda-12\nStatus: install ok installed\nVersion: 9.1.0.70-1\n"
    )
    assert parse_dpkg(text) == {"libc6": "2.36-9", "libcudnn9-cuda-12": "9.1.0.70-1"}


# ---------------------------------------------------------------------------------------- the section as a whole
def environment(tmp_path: Path) -> Context:
    site = tmp_path / "venv/lib/python3.11/site-packages"
    install(site, "lib", "1.0")
    (tmp_path / "venv/bin").mkdir(parents=True)
    (tmp_path / "venv/bin/python").write_bytes(b"\x7fELF")
    (tmp_path / "venv/bin/python").chmod(0o755)
    (tmp_path / "venv/pyvenv.cfg").write_text("home = /usr/bin\nversion = 3.11.7\n")
    return Context(
        root=tmp_path,
        environ={"HOME": str(tmp_path), "PATH": ""},
        cwd=tmp_path,
        python=str(tmp_path / "venv"),
    )


def test_provenance_is_read_when_asked_for_and_only_then(tmp_path: Path) -> None:
    context = environment(tmp_path)
    assert read_facts(context, ["python"]).provenance.status == "skipped"
    assert read_facts(context).provenance.status == "skipped"
    found = read_facts(context, ["provenance"]).provenance
    assert found.status == "ok" and isinstance(found.value, Provenance)
    assert [(one.name, one.record_files) for one in found.value.contents] == [("lib", 3)]


def test_what_could_not_be_read_is_said(tmp_path: Path) -> None:
    found = read_facts(environment(tmp_path), ["provenance"]).provenance
    assert found.value is not None and "dpkg" in str(found.value.unread["os_packages"])
