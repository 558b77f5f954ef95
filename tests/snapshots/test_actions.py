"""``doctor snapshot diff|verify|check|convert|restore|resolve`` as a person types them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from doctor.commands import Exit, main
from doctor.language import use_language
from doctor.machine import encode_snapshot, with_facts
from doctor.model import DataFingerprint, Environment, GitState, Snapshot, Torch, ok
from tests.snapshots.boxes import box, content, dist
from tests.snapshots.wheels import make_wheel

HERE = f"{sys.version_info.major}.{sys.version_info.minor}"


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DOCTOR_CONFIG_DIR", str(tmp_path / "config"))
    monkeypatch.setenv("DOCTOR_LANG", "en")
    monkeypatch.setenv("NO_COLOR", "1")
    yield
    use_language("en")


def save(snapshot: Snapshot, name: str) -> str:
    Path(name).write_bytes(encode_snapshot(snapshot))
    return name


A = box(dist("torch", "2.6.0"), dist("pytest", "8.0"), contents=(content("torch", "2.6.0", "a"), content("pytest", "8.0", "b")))  # fmt: skip
B = box(dist("torch", "2.7.0"), dist("pytest", "9.0"), contents=(content("torch", "2.7.0", "c"), content("pytest", "9.0", "d")))  # fmt: skip


def test_diff_says_what_it_means_for_the_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["snapshot", "diff", save(A, "a.json"), save(B, "b.json")]) == Exit.FOUND
    out = capsys.readouterr().out
    assert out.startswith("a.json -> b.json: other numbers expected")
    assert "torch 2.6.0 -> 2.7.0" in out and "pytest" not in out and "1 difference without effect" in out


def test_diff_of_the_same_is_zero_and_with_all_shows_every_row(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["snapshot", "diff", save(A, "a.json"), "a.json"]) == Exit.OK
    assert "the same bits" in capsys.readouterr().out
    main(["snapshot", "diff", "a.json", save(B, "b.json"), "--all"])
    assert "pytest 8.0 -> 9.0" in capsys.readouterr().out


def test_diff_that_could_not_compare_everything_is_not_zero(capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        main(["snapshot", "diff", save(box(dist("torch", "2.6.0")), "a.json"), "a.json"])
        == Exit.COULD_NOT_LOOK
    )
    assert "not everything could be compared" in capsys.readouterr().out


def test_diff_as_json_has_reasons_and_sources(capsys: pytest.CaptureFixture[str]) -> None:
    main(["snapshot", "diff", save(A, "a.json"), save(B, "b.json"), "--json"])
    tree = json.loads(capsys.readouterr().out)
    row = next(one for one in tree["differences"] if one["subject"] == "torch")
    assert (
        (tree["verdict"], row["verdict"]) == ("other-numbers", "other-numbers")
        and row["why"]["text"]
        and row["source"]
    )


@pytest.mark.parametrize("action", ["diff", "verify", "check", "convert", "restore", "resolve"])
def test_a_file_that_is_not_there_is_named_in_one_line(
    action: str, capsys: pytest.CaptureFixture[str]
) -> None:
    more = {
        "diff": ["gone.json"],
        "check": ["--glibc", "2.31"],
        "convert": ["--format", "markdown"],
        "restore": ["--venv", "v"],
    }
    assert main(["snapshot", action, "gone.json", *more.get(action, [])]) == Exit.USAGE
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and "gone.json" in error and "Traceback" not in error


@pytest.mark.parametrize(
    "raw", [b"", b"[]", b"{", b'{"facts": 3}', b"\xff\xfe", b'{"schema": 99, "facts": {}}']
)
def test_a_file_that_is_no_snapshot_is_refused(raw: bytes, capsys: pytest.CaptureFixture[str]) -> None:
    Path("x.json").write_bytes(raw)
    assert main(["snapshot", "restore", "x.json", "--venv", "v", "--yes"]) == Exit.USAGE
    assert "x.json" in capsys.readouterr().err and not Path("v").exists()


def test_verify_of_this_very_environment_is_zero(capsys: pytest.CaptureFixture[str]) -> None:
    site = Path("venv/lib/python3.11/site-packages")
    from tests.snapshots.wheels import install

    install(site, "lib", "1.0", installer="uv")
    Path("venv/bin").mkdir()
    Path("venv/bin/python").symlink_to(sys.executable)
    Path("venv/pyvenv.cfg").write_text(f"home = {Path(sys.executable).parent}\nversion = {HERE}.0\n")
    if HERE != "3.11":
        (Path("venv/lib") / "python3.11").rename(Path("venv/lib") / f"python{HERE}")
    assert main(["snapshot", "export", "-o", "s.json", "--python", "venv"]) == Exit.OK
    capsys.readouterr()
    for level in ("versions", "record", "files"):
        assert main(["snapshot", "verify", "s.json", "--python", "venv", "--level", level]) == Exit.OK, level
    assert "the same environment: all 1 package is equal" in capsys.readouterr().out
    (Path("venv/lib") / f"python{HERE}" / "site-packages/lib.py").write_text("x = 2\n")
    assert main(["snapshot", "verify", "s.json", "--python", "venv"]) == Exit.OK
    assert main(["snapshot", "verify", "s.json", "--python", "venv", "--level", "files"]) == Exit.FOUND
    assert "lib: files are not what was installed: lib.py" in capsys.readouterr().out


def test_check_says_no_and_what_would_have_to_change(capsys: pytest.CaptureFixture[str]) -> None:
    machine = box(dist("torch", "2.6.0+cu124", "cp311-cp311-manylinux_2_28_x86_64"), torch=Torch(version="2.6.0+cu124", cuda="12.4"))  # fmt: skip
    assert main(["snapshot", "check", save(machine, "a.json"), "--gpu", "RTX 4090", "--driver", "470", "--glibc", "2.27"]) == Exit.FOUND  # fmt: skip
    out = capsys.readouterr().out
    assert "cannot take it" in out and "glibc 2.28" in out and "driver" in out and "->" in out
    assert main(["snapshot", "check", "a.json", "--target", "a.json"]) in (Exit.OK, Exit.FOUND)


@pytest.mark.parametrize(
    "words", [[], ["--target", "a.json", "--glibc", "2.31"]], ids=["no machine", "two machines"]
)
def test_check_wants_one_machine(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["snapshot", "check", save(A, "a.json"), *words]) == Exit.USAGE
    assert "--target" in capsys.readouterr().err


def test_convert_prints_the_file_and_says_beside_it_what_is_lost(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["snapshot", "convert", save(A, "a.json"), "--format", "requirements"]) == Exit.OK
    said = capsys.readouterr()
    assert "torch==2.6.0\n" in said.out and "Not in it:" in said.err and "Not in it" not in said.out


def test_convert_keeps_a_file_that_is_there(capsys: pytest.CaptureFixture[str]) -> None:
    Path("r.txt").write_text("mine")
    assert (
        main(["snapshot", "convert", save(A, "a.json"), "--format", "requirements", "-o", "r.txt"])
        == Exit.FOUND
    )
    assert Path("r.txt").read_text() == "mine" and "--force" in capsys.readouterr().err


def test_convert_refuses_a_lock_that_is_not_complete(capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        main(["snapshot", "convert", save(A, "a.json"), "--format", "pylock", "-o", "pylock.toml"])
        == Exit.FOUND
    )
    assert (
        "torch 2.6.0: no address and digest" in capsys.readouterr().err and not Path("pylock.toml").exists()
    )


TINY = box(dist("one", "1.0"), python=f"{HERE}.0")


def test_a_dry_run_shows_every_command_and_makes_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["snapshot", "restore", save(TINY, "s.json"), "--venv", "v", "--dry-run", "--python", sys.executable]) == Exit.OK  # fmt: skip
    out = capsys.readouterr().out
    assert "-m venv" in out or "uv venv" in out
    assert "--no-deps" in out and "one==1.0" in out and not Path("v").exists()


def test_restore_without_a_terminal_wants_a_yes(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    monkeypatch.setattr("sys.stdin", open("/dev/null"))  # noqa: SIM115
    assert (
        main(["snapshot", "restore", save(TINY, "s.json"), "--venv", "v", "--python", sys.executable])
        == Exit.USAGE
    )
    assert "--yes" in capsys.readouterr().err and not Path("v").exists()


def test_restore_makes_it_and_says_how_far_it_is_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    make_wheel(Path("links"), "one", "1.0")
    words = ["snapshot", "restore", save(TINY, "s.json"), "--venv", "v", "--yes", "--python", sys.executable, "--no-index", "--find-links", "links"]  # fmt: skip
    assert main(words) == Exit.COULD_NOT_LOOK  # the snapshot holds no digests
    assert "v/bin/activate" in capsys.readouterr().out and Path("v/bin/python").exists()


def test_a_repository_in_a_snapshot_needs_a_yes_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    vcs = box(dist("lib", "1"), python=f"{HERE}.0", contents=(content("lib", "1", vcs="git", url="https://h.example/o/r.git", commit="a" * 40),))  # fmt: skip
    assert main(["snapshot", "restore", save(vcs, "s.json"), "--venv", "v", "--yes", "--python", sys.executable]) == Exit.FOUND  # fmt: skip
    assert "--yes-to vcs" in capsys.readouterr().err and not Path("v").exists()


def test_hostile_words_reach_the_terminal_harmless(capsys: pytest.CaptureFixture[str]) -> None:
    evil = box(dist("torch\x1b[2J", "2.6\x1b]0;x\x07"), variables={"NCCL_\x1b[31m": "\x1b[31m"})
    for words in (["diff", save(evil, "e.json"), save(A, "a.json"), "--all"], ["convert", "e.json", "--format", "markdown"], ["check", "e.json", "--target", "a.json"]):  # fmt: skip
        main(["snapshot", *words])
    said = capsys.readouterr()
    assert "\x1b" not in said.out + said.err and "\x07" not in said.out


def test_a_huge_file_is_refused_without_being_read_whole(capsys: pytest.CaptureFixture[str]) -> None:
    with open("huge.json", "wb") as file:
        file.truncate(1 << 40)
    assert main(["snapshot", "verify", "huge.json"]) == Exit.USAGE
    assert "larger than 64 MB" in capsys.readouterr().err


def test_show_names_code_contents_data_and_what_was_not_kept(capsys: pytest.CaptureFixture[str]) -> None:
    tree = GitState(commit="a" * 40, branch="main", remote="https://h/r.git", dirty=True, patch="+x", patch_bytes=2, untracked_count=3)  # fmt: skip
    data = (DataFingerprint(path="/d/rows.csv", size_bytes=4, how="whole", sha256="sha256:" + "c" * 64),)
    machine = box(dist("torch", "2.6.0"), contents=(content("torch", "2.6.0", "a"),), git=tree, data=data)
    machine = with_facts(machine, environment=ok(Environment(names=("HF_TOKEN", "PWD", "EDITOR"))))
    assert main(["snapshot", "show", save(machine, "s.json")]) == Exit.OK
    out = " ".join(capsys.readouterr().out.split())
    for words in ("1 package named by digest", "aaaaaaaaaaaa · main", "word for word (2 B)", "3 files that git does not know", "/d/rows.csv (4 B, whole)", "values of HF_TOKEN Redacted"):  # fmt: skip
        assert words in out


def test_after_a_restore_the_credentials_to_set_again_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    make_wheel(Path("links"), "one", "1.0")
    machine = with_facts(TINY, environment=ok(Environment(names=("HF_TOKEN", "PWD"))))
    main(["snapshot", "restore", save(machine, "s.json"), "--venv", "v", "--yes", "--python", sys.executable, "--no-index", "--find-links", "links"])  # fmt: skip
    assert "set them again: HF_TOKEN\n" in capsys.readouterr().err


def test_an_output_that_is_cut_off_is_no_error() -> None:
    script = "import sys; from doctor.commands import main; sys.exit(main())"
    command = (
        f"{sys.executable} -c '{script}' snapshot diff {save(A, 'a.json')} {save(B, 'b.json')} --json | true"
    )
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert done.stderr == ""
