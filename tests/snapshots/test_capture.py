"""Exporting a snapshot: redacted, private, whole or not at all, never over somebody's file."""

from __future__ import annotations

import json
import os
import stat
import threading
from datetime import datetime, timezone
from pathlib import Path

import pytest

from doctor.machine import BadSnapshot, encode_snapshot, load_snapshot
from doctor.model import Environment, Facts, Host, KernelLog, Snapshot, ok
from doctor.snapshots import capture
from doctor.snapshots.capture import ExportError

SNAPSHOT = Snapshot(
    taken_at="2026-11-30T00:00:00+00:00", redacted=True, facts=Facts(host=ok(Host(kernel="6.1")))
)


def left_over(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_the_file_is_private_and_reads_back(tmp_path: Path) -> None:
    target = tmp_path / "s.json"
    capture.write_snapshot(SNAPSHOT, target)
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert load_snapshot(target) == SNAPSHOT
    assert left_over(tmp_path) == ["s.json"]


def test_the_file_names_its_schema_first(tmp_path: Path) -> None:
    capture.write_snapshot(SNAPSHOT, tmp_path / "s.json")
    assert next(iter(json.loads((tmp_path / "s.json").read_text("utf-8")))) == "schema"


def test_a_file_that_is_there_is_kept_unless_forced(tmp_path: Path) -> None:
    target = tmp_path / "s.json"
    target.write_text("mine")
    with pytest.raises(ExportError, match="--force"):
        capture.write_snapshot(SNAPSHOT, target)
    assert target.read_text() == "mine"
    capture.write_snapshot(SNAPSHOT, target, overwrite=True)
    assert load_snapshot(target) == SNAPSHOT and stat.S_IMODE(target.stat().st_mode) == 0o600


def test_a_dangling_link_is_a_file_that_is_there(tmp_path: Path) -> None:
    target = tmp_path / "s.json"
    target.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ExportError, match="there already"):
        capture.write_snapshot(SNAPSHOT, target)
    assert not (tmp_path / "elsewhere").exists()


def test_a_file_that_appears_meanwhile_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "s.json"
    real = os.link

    def link(source: Path, destination: Path) -> None:
        destination.write_text("someone else's")
        real(source, destination)

    monkeypatch.setattr(os, "link", link)
    with pytest.raises(ExportError, match="File exists"):
        capture.write_snapshot(SNAPSHOT, target)
    assert target.read_text() == "someone else's" and left_over(tmp_path) == ["s.json"]


def test_a_file_system_without_hard_links_will_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def link(source: Path, destination: Path) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", link)
    capture.write_snapshot(SNAPSHOT, tmp_path / "s.json")
    assert load_snapshot(tmp_path / "s.json") == SNAPSHOT


@pytest.mark.parametrize(
    ("call", "number", "words"),
    [
        pytest.param("fsync", 28, "No space left on device", id="full disk"),
        pytest.param("open", 30, "Read-only file system", id="read-only home"),
        pytest.param("open", 13, "Permission denied", id="no permission"),
    ],
)
def test_a_disk_that_refuses_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, number: int, words: str
) -> None:
    def refuse(*arguments: object) -> int:
        raise OSError(number, words)

    monkeypatch.setattr(f"doctor.snapshots.capture.os.{call}", refuse)
    with pytest.raises(ExportError) as caught:
        capture.write_snapshot(SNAPSHOT, tmp_path / "s.json")
    monkeypatch.undo()
    assert words in str(caught.value) and "s.json" in str(caught.value) and "-o" in str(caught.value)
    assert left_over(tmp_path) == []


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ExportError, match=r"cannot write .*/gone/s\.json: No such file or directory"):
        capture.write_snapshot(SNAPSHOT, tmp_path / "gone" / "s.json")


def test_the_default_name_is_dated() -> None:
    assert (
        capture.default_name(datetime(2026, 11, 30, 23, 59, tzinfo=timezone.utc))
        == "doctor-snapshot-2026-11-30.json"
    )


# ---------------------------------------------------------------------------------------- what is in it
def test_this_machines_own_names_are_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("USER", "wangxiaoming")
    monkeypatch.setattr("doctor.snapshots.capture.host_name", lambda: "gpu-node-17.corp.example")
    lines = ("gpu-node-17 kernel: killed", "gpu-node-17.corp.example up", "/data/wangxiaoming/run")
    found = capture.shareable(Snapshot(facts=Facts(kernel_log=ok(KernelLog(lines=lines)))))
    assert found.facts.kernel_log.value == KernelLog(
        lines=("host kernel: killed", "host up", "/data/user/run")
    )


def test_a_live_export_is_redacted_and_holds_packages() -> None:
    found = capture.capture()
    assert found.redacted is True and found.taken_at and found.tool.startswith("rundoctor ")
    assert found.facts.host.status == "ok" and found.facts.packages.status in ("ok", "failed", "absent")
    assert decoded(found) == found


def decoded(snapshot: Snapshot) -> Snapshot:
    from doctor.machine import decode_snapshot

    return decode_snapshot(encode_snapshot(snapshot), "x")


# ---------------------------------------------------------------------------------------- from a run
def run_with(folder: Path, snapshot: bytes | None) -> str:
    folder.mkdir()
    (folder / "plan.json").write_text("{}")
    if snapshot is not None:
        (folder / "snapshot.json").write_bytes(snapshot)
    return str(folder)


def test_a_runs_snapshot_is_redacted_on_the_way_out(tmp_path: Path) -> None:
    secret = Snapshot(
        facts=Facts(environment=ok(Environment(variables={"HF_TOKEN": "hf_0123456789abcdefgh"})))
    )
    found = capture.from_run(run_with(tmp_path / "run", encode_snapshot(secret)))
    assert found.redacted is True and found.facts.environment.value is not None
    assert (found.facts.environment.value.variables, found.facts.environment.value.names) == (
        {},
        ("HF_TOKEN",),
    )


def test_a_run_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ExportError, match=r"nowhere.*no run there"):
        capture.from_run(str(tmp_path / "nowhere"))


def test_a_run_without_a_snapshot_says_which_file_is_missing(tmp_path: Path) -> None:
    with pytest.raises(ExportError, match=r"snapshot\.json: No such file"):
        capture.from_run(run_with(tmp_path / "run", None))


def test_a_runs_snapshot_that_was_cut_short_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadSnapshot, match="cut short"):
        capture.from_run(run_with(tmp_path / "run", encode_snapshot(SNAPSHOT)[:40]))


def test_what_is_no_file_is_written_into_and_not_replaced(tmp_path: Path) -> None:
    """As root, a rename onto /dev/null would leave a file where every program expects the void."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    got: list[bytes] = []
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()), daemon=True)
    reader.start()
    capture.write_file(b"content", pipe, overwrite=True)
    reader.join(10)
    assert got == [b"content"]
    assert pipe.is_fifo()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["pipe"]


def test_a_link_stays_one_and_its_file_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data/s.json").write_text("old")
    (tmp_path / "s.json").symlink_to("data/s.json")
    capture.write_file(b"new", tmp_path / "s.json", overwrite=True)
    assert (tmp_path / "s.json").is_symlink()
    assert (tmp_path / "data/s.json").read_text() == "new"
