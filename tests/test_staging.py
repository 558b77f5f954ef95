"""A data set on another disk: whole, checked, gone on with after a cut, and left alone where it is current."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from doctor.model import Mount, Storage
from doctor.stage_copy import StageError
from doctor.stage_disk import choose_disk
from doctor.staging import MANIFEST, files_of, stage
from tests.commands_run import doctor
from tests.curing import picture

GB = 1 << 30


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    (folder / "深/deep").mkdir(parents=True)
    for number in range(30):
        (folder / f"深/deep/{number}.txt").write_bytes(os.urandom(5000 + number))
    (folder / "large.bin").write_bytes(os.urandom(9 << 20))
    (folder / "empty").touch()
    return folder


def quiet(done: int, total: int) -> None:
    """Tell nobody."""


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name != MANIFEST
    }


def test_all_is_there_and_the_same(tmp_path: Path, data: Path) -> None:
    told: list[tuple[int, int]] = []
    staged = stage(data, tmp_path / "fast", lambda done, total: told.append((done, total)))
    assert contents(tmp_path / "fast") == contents(data)
    assert (staged.files, staged.copied) == (32, 32)
    assert told[-1] == (staged.total_bytes, staged.total_bytes)
    assert staged.speed_before and staged.speed_after


def test_what_is_current_is_not_copied_again(tmp_path: Path, data: Path) -> None:
    stage(data, tmp_path / "fast", quiet)
    before = picture(tmp_path / "fast")
    assert stage(data, tmp_path / "fast", quiet).copied == 0
    shown = picture(tmp_path / "fast")
    assert {name: one[:3] for name, one in shown.items()} == {name: one[:3] for name, one in before.items()}


@pytest.mark.parametrize(
    "change",
    [
        lambda data, fast: (data / "large.bin").write_bytes(b"new"),
        lambda data, fast: (fast / "large.bin").write_bytes(b"spoilt"),
        lambda data, fast: (fast / "large.bin").unlink(),
        lambda data, fast: (data / "one more").write_text("x"),
    ],
    ids=["the source changed", "the copy changed", "the copy is gone", "a new file"],
)
def test_only_what_differs_is_copied_again(tmp_path: Path, data: Path, change: object) -> None:
    stage(data, tmp_path / "fast", quiet)
    change(data, tmp_path / "fast")  # type: ignore[operator]
    assert stage(data, tmp_path / "fast", quiet).copied == 1
    assert contents(tmp_path / "fast") == contents(data)


def test_a_file_that_the_data_lost_is_lost_in_the_copy_and_no_other(tmp_path: Path, data: Path) -> None:
    stage(data, tmp_path / "fast", quiet)
    (data / "empty").unlink()
    (tmp_path / "fast/notes").write_text("the person's own")
    stage(data, tmp_path / "fast", quiet)
    assert not (tmp_path / "fast/empty").exists()
    assert (tmp_path / "fast/notes").exists()


def test_a_part_left_by_a_cut_is_gone_on_with_only_where_it_is_right(tmp_path: Path, data: Path) -> None:
    fast, whole = tmp_path / "fast", (data / "large.bin").read_bytes()
    fast.mkdir()
    (fast / ".large.bin.part").write_bytes(whole[: 5 << 20] + b"rubbish")
    stage(data, fast, quiet)
    assert (fast / "large.bin").read_bytes() == whole


@pytest.mark.parametrize("after_ms", [5, 20, 40, 60, 90])
def test_a_killed_copy_is_finished_by_the_next(tmp_path: Path, data: Path, after_ms: int) -> None:
    child = os.fork()
    if child == 0:
        try:
            stage(data, tmp_path / "fast", quiet)
        finally:
            os._exit(0)
    time.sleep(after_ms / 1000)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    stage(data, tmp_path / "fast", quiet)
    assert contents(tmp_path / "fast") == contents(data)


def test_anothers_file_is_never_written_over(tmp_path: Path, data: Path) -> None:
    (tmp_path / "fast").mkdir()
    (tmp_path / "fast/large.bin").write_text("mine")
    with pytest.raises(StageError, match="another file"):
        stage(data, tmp_path / "fast", quiet)
    assert (tmp_path / "fast/large.bin").read_text() == "mine"


def test_what_is_no_file_is_said(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(StageError, match="no regular file"):
        files_of(tmp_path)
    with pytest.raises(StageError, match="no file in"):
        files_of(tmp_path / "nothing")


def disk(path: str, fstype: str = "ext4", free_gb: int = 100, **more: object) -> Mount:
    return Mount(path=path, fstype=fstype, size_bytes=500 * GB, free_bytes=free_gb * GB, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("mounts", "platform", "chosen"),
    [
        pytest.param((disk("/"), disk("/nfs", "nfs4")), "", "/", id="off the network"),
        pytest.param((disk("/"), disk("/nfs", "nfs4"), disk("/data", "nfs4", 900)), "", "/", id="the target is never a network disk"),
        pytest.param((disk("/", free_gb=1), disk("/mnt", free_gb=200), disk("/nfs", "nfs")), "", "/mnt", id="where there is room"),
        pytest.param((disk("/mnt", rotational=True), disk("/"), disk("/nfs", "nfs")), "", "/", id="not to a turning disk"),
        pytest.param((disk("/", "overlay"), disk("/root/autodl-tmp"), disk("/nfs", "nfs")), "autodl", "/root/autodl-tmp", id="the platform's data disk"),
        pytest.param((disk("/", free_gb=1), disk("/nfs", "nfs")), "", None, id="no room anywhere"),
        pytest.param((disk("/", free_gb=80), disk("/nfs", "nfs", 900), disk("/mnt", free_gb=300, read_only=True)), "", "/", id="not to a read-only one"),
    ],
)  # fmt: skip
def test_the_disk_is_chosen_by_what_is_known_of_it(
    mounts: tuple[Mount, ...], platform: str, chosen: str | None
) -> None:
    found, why = choose_disk(Storage(mounts=mounts), platform, "/nfs/set", 50 * GB)
    assert (found.path if found else None) == chosen, why


def test_data_that_lies_well_stays(tmp_path: Path) -> None:
    found, why = choose_disk(Storage(mounts=(disk("/"), disk("/mnt"))), "", "/mnt/set", GB)
    assert found is None and "already" in str(why)


def test_the_command_prints_the_place_alone_on_stdout(tmp_path: Path, data: Path) -> None:
    done = doctor("stage", str(data), "--to", str(tmp_path / "fast"))
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{tmp_path / 'fast' / 'data'}\n"
    assert "--set data.train=" in done.stderr and "32 of 32" in done.stderr
    assert "nothing was copied" in doctor("stage", str(data), "--to", str(tmp_path / "fast")).stderr


def test_data_that_is_not_there_is_said(tmp_path: Path) -> None:
    done = doctor("stage", str(tmp_path / "nothing"), "--to", str(tmp_path))
    assert done.returncode == 1 and "no file in" in done.stderr
