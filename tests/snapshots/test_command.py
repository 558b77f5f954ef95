"""``doctor snapshot export|show|list`` as a person uses it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from doctor.commands import Exit, main
from doctor.data_files import snapshots_dir
from doctor.language import use_language
from doctor.machine import decode_snapshot, encode_snapshot, load_snapshot
from doctor.model import (
    Container,
    Distribution,
    Driver,
    Facts,
    Gpu,
    Gpus,
    Host,
    Mount,
    Packages,
    Python,
    Reading,
    Snapshot,
    Storage,
    Torch,
    ok,
    t,
)  # fmt: skip

GB = 1 << 30
RENTED = Snapshot(
    taken_at="2026-11-30T06:00:00+00:00",
    tool="rundoctor 0.1.0",
    label="box \x1b[31mred",
    facts=Facts(
        host=ok(Host(os_name="Ubuntu 22.04", kernel="5.15.0", unread={"virtual_machine": t("{path} is not there", path="/sys/class/dmi")})),
        container=ok(Container(inside=True, kind="docker")),
        driver=ok(Driver(version="550.90.07", cuda_version="12.4")),
        gpus=ok(Gpus(items=(Gpu(index=0, name="NVIDIA GeForce RTX 4090", memory_total_bytes=24 * GB),))),
        python=ok(Python(executable="/root/venv/bin/python", version="3.11.7")),
        torch=ok(Torch(version="2.6.0+cu124")),
        packages=ok(Packages(items=(Distribution(name="torch", version="2.6.0"), Distribution(name="numpy", version="2.1.0")))),
        storage=ok(Storage(mounts=(Mount(path="/", size_bytes=30 * GB, free_bytes=3 * GB),))),
        kernel_log=Reading(status="failed", why=t("{path} could not be read: {error}", path="/dev/kmsg", error="Operation not permitted")),
    ),
)  # fmt: skip


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DOCTOR_CONFIG_DIR", str(tmp_path / "config"))
    monkeypatch.setenv("DOCTOR_LANG", "en")
    yield
    use_language("en")


def file_of(folder: Path, content: bytes) -> str:
    (folder / "s.json").write_bytes(content)
    return "s.json"


def test_export_names_the_file_it_wrote(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["snapshot", "export"]) == Exit.OK
    name = capsys.readouterr().out.strip()
    assert name.startswith("doctor-snapshot-") and load_snapshot(tmp_path / name).redacted is True


def test_export_twice_keeps_the_first_and_says_how_to_go_on(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["snapshot", "export", "-o", "s.json"]) == Exit.OK
    assert main(["snapshot", "export", "-o", "s.json"]) == Exit.FOUND
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and "s.json" in error and "--force" in error
    assert main(["snapshot", "export", "-o", "s.json", "--force"]) == Exit.OK


def test_export_into_a_folder_takes_the_dated_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "out").mkdir()
    assert main(["snapshot", "export", "-o", "out"]) == Exit.OK
    assert capsys.readouterr().out.startswith("out/doctor-snapshot-")


def test_export_to_stdout_is_only_the_snapshot(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    assert main(["snapshot", "export", "-o", "-"]) == Exit.OK
    out = capsysbinary.readouterr().out
    assert decode_snapshot(out, "-").redacted is True and list(Path().glob("*.json")) == []


def test_export_where_nothing_can_be_written_is_one_line_and_1(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["snapshot", "export", "-o", "gone/s.json"]) == Exit.FOUND
    captured = capsys.readouterr()
    assert captured.out == "" and captured.err.count("\n") == 1 and "gone/s.json" in captured.err


def test_export_of_a_run_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["snapshot", "export", "--from-run", "nowhere"]) == Exit.FOUND
    assert "nowhere" in capsys.readouterr().err


def test_an_exported_file_is_taken_for_a_machine(capsys: pytest.CaptureFixture[str]) -> None:
    main(["snapshot", "export", "-o", "s.json"])
    assert main(["check", "--facts", "s.json", "--json"]) in (Exit.OK, Exit.FOUND, Exit.COULD_NOT_LOOK)
    assert '"schema"' in capsys.readouterr().out


def test_show_is_one_readable_screen(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["snapshot", "show", file_of(tmp_path, encode_snapshot(RENTED))]) == Exit.OK
    out = capsys.readouterr().out
    for words in (
        "RTX 4090",
        "550.90.07",
        "CUDA 12.4",
        "3.11.7",
        "torch 2.6.0+cu124",
        "2 installed",
        "Ubuntu 22.04",
        "docker",
    ):
        assert words in out
    assert "/ 3.0 GB of 30.0 GB free" in out
    assert "kernel_log: /dev/kmsg could not be read: Operation not permitted" in out
    assert "host.virtual_machine: /sys/class/dmi is not there" in out
    assert "Nobody looked:" in out and "no: look through it before you share it" in out
    assert len(out.splitlines()) <= 24 and "\x1b" not in out


def test_show_json_is_the_file_itself(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = file_of(tmp_path, encode_snapshot(RENTED))
    assert main(["snapshot", "show", name, "--json"]) == Exit.OK
    assert decode_snapshot(capsys.readouterr().out.encode(), "x") == RENTED


def test_show_names_what_it_does_not_know(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tree = {"schema": 1, "facts": {"quantum": {"status": "ok"}}}
    assert main(["snapshot", "show", file_of(tmp_path, json.dumps(tree).encode())]) == Exit.OK
    assert "facts.quantum" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("content", "words"),
    [
        pytest.param(encode_snapshot(RENTED)[:200], "cut short", id="cut in half"),
        pytest.param(b'{"a": 1}', "not a doctor snapshot", id="someone else's JSON"),
        pytest.param(b"\xff\xfe\x00", "not JSON", id="not text"),
        pytest.param(b'{"schema": 99, "facts": {}}', "schema 99", id="from the future"),
        pytest.param(
            b'{"facts": {"host": {"status": "odd"}}}', "facts.host.status", id="a wrong value, with its path"
        ),
    ],
)
def test_show_of_a_bad_file_is_one_line_and_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes, words: str
) -> None:
    assert main(["snapshot", "show", file_of(tmp_path, content)]) == Exit.USAGE
    captured = capsys.readouterr()
    assert words in captured.err and "s.json" in captured.err and captured.out == ""
    assert captured.err.count("\n") == 1


def test_show_of_a_missing_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["snapshot", "show", "gone.json"]) == Exit.USAGE
    assert "gone.json" in capsys.readouterr().err


def test_a_shipped_snapshot_is_shown_by_its_name(capsys: pytest.CaptureFixture[str]) -> None:
    main(["snapshot", "list", "--json"])
    known = json.loads(capsys.readouterr().out)
    assert known
    for row in known:
        assert main(["snapshot", "show", row["name"]]) == Exit.OK
        assert row["label"] in " ".join(capsys.readouterr().out.split())


def test_show_in_chinese(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = file_of(tmp_path, encode_snapshot(RENTED))
    assert main(["snapshot", "show", name, "--lang", "zh"]) == Exit.OK
    assert "RTX 4090" in capsys.readouterr().out


# ---------------------------------------------------------------------------------------- what ships
SHIPPED = sorted(snapshots_dir().glob("*.json"))


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_a_shipped_snapshot_is_redacted_labelled_and_without_a_failure(path: Path) -> None:
    from doctor.judge import judge

    snapshot = load_snapshot(path)
    assert snapshot.redacted and snapshot.label and not snapshot.unknown_keys
    assert snapshot.facts.packages.value is not None and snapshot.facts.packages.value.complete
    assert [item.id for item in judge(snapshot).findings() if item.level == "fail"] == []
    assert "/home/" not in path.read_text("utf-8") and "file://" not in path.read_text("utf-8")
