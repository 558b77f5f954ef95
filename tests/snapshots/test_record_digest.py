"""The content of an installed distribution as a digest: the same wherever and by whomever, another for other bytes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from doctor.probes.record_digest import parse_origin, read_content, record_digest, record_rows
from tests.snapshots.wheels import install


def test_pip_and_uv_leave_the_same_content(tmp_path: Path) -> None:
    one = install(tmp_path / "a", "lib", "1.0", installer="pip", notes={"REQUESTED": b""})
    other = install(tmp_path / "b/deeper", "lib", "1.0", installer="uv", notes={"uv_cache.json": b"{}"})
    mine, theirs = read_content(str(one.parent), one.name), read_content(str(other.parent), other.name)
    assert mine.record_sha256 == theirs.record_sha256 != ""
    assert mine.metadata_sha256 == theirs.metadata_sha256 != ""
    assert (mine.name, mine.version, mine.record_files) == ("lib", "1.0", 3)


def test_the_same_version_with_other_bytes_is_another_content(tmp_path: Path) -> None:
    one = install(tmp_path / "a", "lib", "1.0", {"lib.py": b"x = 1\n"})
    other = install(tmp_path / "b", "lib", "1.0", {"lib.py": b"x = 2\n"})
    mine, theirs = read_content(str(one.parent), one.name), read_content(str(other.parent), other.name)
    assert mine.record_sha256 != theirs.record_sha256


def test_the_order_of_rows_does_not_count() -> None:
    rows = [b"b.py,sha256=BB,1", b"a.py,sha256=AA,1"]
    assert record_digest(b"\n".join(rows)) == record_digest(b"\n".join(reversed(rows)))


@pytest.mark.parametrize(
    "row",
    [
        "pkg/__pycache__/a.cpython-311.pyc,,", "../../../bin/tool,sha256=ZZ,10", "/etc/thing,sha256=ZZ,10",
        "pkg-1.dist-info/INSTALLER,sha256=ZZ,4", "pkg-1.dist-info/REQUESTED,sha256=ZZ,0", "pkg-1.dist-info/RECORD,,",
        "pkg-1.dist-info/direct_url.json,sha256=ZZ,9", "pkg-1.dist-info/uv_build.json,sha256=ZZ,9", "pkg/data/,sha256=ZZ,0", "",
    ],
)  # fmt: skip
def test_what_installers_add_does_not_count(row: str) -> None:
    assert record_rows(f"a.py,sha256=AA,1\n{row}\n".encode()) == [(b"a.py", b"sha256=AA")]


@pytest.mark.parametrize(
    "row", ["pkg-1.dist-info/METADATA,sha256=ZZ,4", '"odd,name.py",sha256=ZZ,4', "pkg/INSTALLER,sha256=ZZ,4"]
)
def test_what_the_wheel_brought_counts(row: str) -> None:
    assert len(record_rows(f"a.py,sha256=AA,1\n{row}\n".encode())) == 2


def test_a_record_that_is_gone_is_said_and_not_taken_as_empty(tmp_path: Path) -> None:
    info = install(tmp_path, "lib", "1.0")
    (info / "RECORD").unlink()
    found = read_content(str(tmp_path), info.name)
    assert found.record_sha256 == "" and found.why is not None and "RECORD" in str(found.why)


@pytest.mark.parametrize(
    ("noted", "expected"),
    [
        pytest.param({"url": "https://u:pw@h/r.git?x=1", "vcs_info": {"vcs": "git", "commit_id": "a" * 40, "requested_revision": "v1"}, "subdirectory": "py"},
            {"url": "https://h/r.git", "vcs": "git", "commit": "a" * 40, "requested_revision": "v1", "subdirectory": "py", "editable": False}, id="repository"),
        pytest.param({"url": "ssh://git@h/r.git", "vcs_info": {"vcs": "git", "commit_id": "b" * 40}},
            {"url": "ssh://git@h/r.git", "vcs": "git", "commit": "b" * 40, "editable": False}, id="ssh keeps git@"),
        pytest.param({"url": "https://h/x.whl", "archive_info": {"hashes": {"sha256": "c" * 64}}},
            {"url": "https://h/x.whl", "archive_sha256": "sha256:" + "c" * 64, "editable": False}, id="archive"),
        pytest.param({"url": "https://h/x.whl", "archive_info": {"hash": "sha256=" + "d" * 64}},
            {"url": "https://h/x.whl", "archive_sha256": "sha256:" + "d" * 64, "editable": False}, id="archive, old form"),
        pytest.param({"url": "https://h/x.whl", "archive_info": {}}, {"url": "https://h/x.whl", "editable": False}, id="uv's empty hashes"),
        pytest.param({"url": "file:///home/me/p", "dir_info": {"editable": True}}, {"url": "file:///home/me/p", "editable": True}, id="editable"),
        pytest.param({"vcs_info": 3}, {}, id="no address"),
        pytest.param([1, 2], {}, id="no table"),
    ],
)  # fmt: skip
def test_where_it_came_from(noted: object, expected: dict[str, object]) -> None:
    assert parse_origin(json.dumps(noted)) == expected


@pytest.mark.parametrize("commit", ["a" * 40 + "\n-e evil", "--upload-pack=x y", ""])
def test_a_commit_that_is_none_is_not_kept(commit: str) -> None:
    noted = {"url": "https://h/r.git", "vcs_info": {"vcs": "git", "commit_id": commit}}
    assert "commit" not in parse_origin(json.dumps(noted))
