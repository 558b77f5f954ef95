"""Making an environment again: phases in order, nothing without a yes, resumable, gone when it failed, compared by content."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from doctor import service
from doctor.machine import encode_snapshot, with_facts
from doctor.model import Content, GitState, KnownGood, Packages, Snapshot, ok, t
from doctor.probes import Context, read_facts
from doctor.restore import restore
from doctor.restore_commands import NOTES, Options, install_argv, installer_environ, our_uv
from doctor.restore_folder import locked, make_folder, read_state
from doctor.restore_python import find_python
from doctor.snapshots.restore_plan import Phase, RestoreError, plan_restore
from tests.snapshots.boxes import box, content, dist
from tests.snapshots.wheels import install, make_wheel

COMMIT = "0123456789abcdef0123456789abcdef01234567"
HERE = f"{sys.version_info.major}.{sys.version_info.minor}"


# ---------------------------------------------------------------------------------------- the plan
FULL = box(
    dist("pip", "26.3"), dist("wheel", "0.45"), dist("torch", "2.6.0+cu124"), dist("torchvision", "0.21.0+cu124"), dist("numpy", "2.1.0"),
    dist("locked", "1.0"), dist("flash-attn", "2.7.4", "cp311-cp311-linux_x86_64"), dist("from-git", "1"), dist("from-url", "1"), dist("mine", "1"),
    dist("alone", "1", editable=True),
    contents=(
        content("locked", "1.0", "a", file_url="https://f.example/locked-1.0-py3-none-any.whl", file_sha256="sha256:" + "b" * 64),
        content("from-git", "1", vcs="git", url="https://h.example/o/r.git", commit=COMMIT),
        content("from-url", "1", url="https://h.example/x-1-py3-none-any.whl", archive_sha256="sha256:" + "c" * 64),
        content("mine", "1", editable=True, git=GitState(commit=COMMIT, remote="https://h.example/o/mine.git")),
    ),
)  # fmt: skip


def test_the_phases_come_in_the_order_that_works() -> None:
    plan = plan_restore(FULL)
    assert [(phase.name, phase.needs) for phase in plan.phases] == [
        ("build-tools", None), ("torch", None), ("locked", None), ("packages", None), ("compiled", "sdists"), ("addresses", "urls"),
        ("repositories", "vcs"), ("source-folders", "vcs"),
    ]  # fmt: skip
    by_name = {phase.name: phase for phase in plan.phases}
    assert by_name["torch"].lines == ("torch==2.6.0+cu124", "torchvision==0.21.0+cu124")
    assert by_name["torch"].indexes == ("https://download.pytorch.org/whl/cu124",)
    assert by_name["locked"].lines == (f"locked==1.0 --hash=sha256:{'b' * 64}",) and by_name["locked"].hashed
    assert by_name["source-folders"].lines == (f"-e git+https://h.example/o/mine.git@{COMMIT}#egg=mine",)
    assert [one.name for one in plan.left_out] == ["alone"]


def test_a_mirror_of_the_persons_own_takes_the_place_of_the_index() -> None:
    plan = plan_restore(FULL, "https://mirror.example/whl/")
    assert next(one for one in plan.phases if one.name == "torch").indexes == (
        "https://mirror.example/whl/cu124",
    )


def test_what_needs_a_yes_is_named_until_it_is_given() -> None:
    plan = plan_restore(FULL)
    assert plan.unconsented(()) == ["sdists", "urls", "vcs"]
    assert plan.unconsented(("vcs", "urls")) == ["sdists"]


@pytest.mark.parametrize(
    ("snapshot", "words"),
    [
        (box(python=""), "nothing to restore"),
        (box(), "nothing to restore"),
        (with_facts(box(), packages=ok(Packages(items=(dist("a", "1"),), complete=False))), "excerpt"),
    ],
    ids=["no Python", "no packages", "an excerpt"],
)
def test_what_cannot_be_restored_says_why(snapshot: Snapshot, words: str) -> None:
    with pytest.raises(RestoreError, match=words):
        plan_restore(snapshot)


@pytest.mark.parametrize("evil", ["x\n--index-url=https://evil.example", "--index-url=https://evil.example", "../../x", "-e .", "a b", "$(id)"])  # fmt: skip
def test_a_strangers_words_reach_no_line(evil: str) -> None:
    hostile = box(
        dist(evil, "1.0"), dist("good", evil), dist("fine", "1.0"), dist("vcs", "1"), dist("ed", "1"), dist("url", "1", direct_url=evil),
        contents=(
            content("vcs", "1", vcs="git", url=evil, commit=evil), content("ed", "1", editable=True, git=GitState(commit=evil, remote=evil)),
            content("fine", "1.0", "a", file_url=evil, file_sha256=evil),
        ),
    )  # fmt: skip
    lines = [line for phase in plan_restore(hostile).phases for line in phase.lines]
    assert lines == ["fine==1.0"]


def test_wheels_only_unless_sources_are_allowed() -> None:
    phase = Phase(name="packages", lines=("a==1",))
    assert "--only-binary" in install_argv(phase, Path("/v"), Options())
    assert "--only-binary" not in install_argv(phase, Path("/v"), Options(consents=("sdists",)))
    assert "--no-build-isolation" in install_argv(
        Phase(name="compiled", lines=(), builds=True), Path("/v"), Options()
    )


@pytest.mark.parametrize(
    "name", ["PYTHONPATH", "PIP_TARGET", "PIP_USER", "PIP_PREFIX", "PIP_CONSTRAINT", "VIRTUAL_ENV"]
)
def test_what_would_install_elsewhere_is_not_passed_on(name: str) -> None:
    assert name not in installer_environ({name: "/elsewhere", "PIP_INDEX_URL": "https://m/simple"})
    assert installer_environ({"PIP_INDEX_URL": "https://m/simple"})["PIP_INDEX_URL"] == "https://m/simple"


# ---------------------------------------------------------------------------------------- on disk
@pytest.fixture
def links(tmp_path: Path) -> Path:
    """A folder of two tiny wheels."""
    make_wheel(tmp_path / "links", "one", "1.0", {"one.py": b"x = 1\n"})
    make_wheel(tmp_path / "links", "two", "2.0", {"two/__init__.py": b"", "two/data, odd.txt": b"a"})
    return tmp_path / "links"


def proven(tmp_path: Path) -> Snapshot:
    """The snapshot of an environment that holds those two."""
    site = tmp_path / "proven"
    install(site, "one", "1.0", {"one.py": b"x = 1\n"}, installer="uv")
    install(site, "two", "2.0", {"two/__init__.py": b"", "two/data, odd.txt": b"a"}, installer="uv")
    from doctor.probes.provenance import read_contents

    contents: tuple[Content, ...] = tuple(read_contents((site,), {}))
    return box(dist("one", "1.0"), dist("two", "2.0"), contents=contents, python=f"{HERE}.0")


def offline(links: Path, **more: object) -> Options:
    return Options(find_links=(str(links),), no_index=True, **more)  # type: ignore[arg-type]


def quiet(line: str) -> None: ...


@pytest.mark.parametrize("installer", ["pip", "uv"])
def test_a_restored_environment_is_the_proven_one_by_content(
    tmp_path: Path, links: Path, installer: str
) -> None:
    uv = our_uv() if installer == "uv" else None
    if installer == "uv" and uv is None:
        pytest.skip("uv is not here")
    snapshot = proven(tmp_path)
    (tmp_path / "s.json").write_bytes(encode_snapshot(snapshot))
    plan = plan_restore(snapshot)
    found = service.restore_snapshot(str(tmp_path / "s.json"), plan, tmp_path / "venv", Path(sys.executable), offline(links, uv=uv), quiet)  # fmt: skip
    assert not found.differs and not found.incomplete and found.equal == 2
    state = read_state(tmp_path / "venv")
    assert state is not None and state.complete and "packages" in state.done


def test_other_bytes_under_the_same_version_are_found_after_a_restore(tmp_path: Path, links: Path) -> None:
    snapshot = proven(tmp_path)
    (tmp_path / "s.json").write_bytes(encode_snapshot(snapshot))
    make_wheel(links, "one", "1.0", {"one.py": b"x = 'swapped'\n"})
    found = service.restore_snapshot(str(tmp_path / "s.json"), plan_restore(snapshot), tmp_path / "venv", Path(sys.executable), offline(links, uv=our_uv()), quiet)  # fmt: skip
    assert [(one.name, one.outcome) for one in found.deviations if one.counts] == [("one", "bytes")]


def test_a_failed_restore_is_gone_again_and_names_the_package(tmp_path: Path, links: Path) -> None:
    (links / "two-2.0-py3-none-any.whl").unlink()
    with pytest.raises(RestoreError, match=r"two.*--yes-to sdists") as caught:
        restore(
            plan_restore(proven(tmp_path)), tmp_path / "venv", Path(sys.executable), offline(links), quiet
        )
    assert "removed again" in str(caught.value) and not (tmp_path / "venv").exists()


def test_an_interrupted_restore_goes_on_where_it_was(tmp_path: Path, links: Path) -> None:
    plan, options = plan_restore(proven(tmp_path)), offline(links, uv=our_uv())

    def stop(line: str) -> None:
        if line.startswith("packages"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        restore(plan, tmp_path / "venv", Path(sys.executable), options, stop)
    state = read_state(tmp_path / "venv")
    assert state is not None and state.done == ["venv"] and not state.complete
    said: list[str] = []
    restore(plan, tmp_path / "venv", Path(sys.executable), options, said.append)
    assert not [line for line in said if line.startswith("venv ")] and [
        line for line in said if line.startswith("packages")
    ]


def test_a_folder_that_is_not_ours_is_left_alone(tmp_path: Path, links: Path) -> None:
    (tmp_path / "venv").mkdir()
    (tmp_path / "venv/precious").write_text("mine")
    with pytest.raises(RestoreError, match="is there already and is not a restore of ours"):
        restore(
            plan_restore(proven(tmp_path)), tmp_path / "venv", Path(sys.executable), offline(links), quiet
        )
    assert (tmp_path / "venv/precious").read_text() == "mine"


def test_a_restore_of_another_snapshot_is_not_mixed_in(tmp_path: Path, links: Path) -> None:
    folder = tmp_path / "venv"
    (folder / NOTES).mkdir(parents=True)
    (folder / NOTES / "state.json").write_bytes(
        msgspec.json.encode({"digest": "other", "python": HERE, "done": ["venv"]})
    )
    with pytest.raises(RestoreError, match="another snapshot"):
        restore(plan_restore(proven(tmp_path)), folder, Path(sys.executable), offline(links), quiet)
    assert (folder / NOTES / "state.json").exists()


def test_without_a_yes_nothing_is_made(tmp_path: Path) -> None:
    with pytest.raises(RestoreError, match="--yes-to sdists --yes-to urls --yes-to vcs"):
        restore(plan_restore(FULL), tmp_path / "venv", Path(sys.executable), Options(), quiet)
    assert not (tmp_path / "venv").exists()


def test_a_python_that_makes_no_environment_leaves_nothing(tmp_path: Path, links: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(RestoreError, match="no environment could be made"):
        restore(
            plan_restore(proven(tmp_path)), tmp_path / "venv", tmp_path / "no-python", offline(links), quiet
        )
    assert not (tmp_path / "venv").exists()


# ---------------------------------------------------------------------------------------- which Python
def test_a_python_of_the_same_minor_is_found() -> None:
    found = find_python(HERE, sys.executable, Context())
    assert read_facts(Context(python=str(found)), ["python"]).python.value is not None


def test_a_given_python_of_another_minor_is_refused() -> None:
    with pytest.raises(RestoreError, match=r"the snapshot is of Python 3\.6"):
        find_python("3.6", sys.executable, Context())


def test_no_python_of_that_minor_says_how_to_get_one(tmp_path: Path) -> None:
    context = Context(root=tmp_path, environ={"PATH": "", "HOME": str(tmp_path)}, cwd=tmp_path)
    with pytest.raises(RestoreError, match=r"uv python install 3\.99"):
        find_python("3.99", None, context)


# ---------------------------------------------------------------------------------------- PyTorch's own, untested, locks
def test_pytorchs_wheels_are_not_taken_for_something_compiled_there() -> None:
    plan = plan_restore(box(dist("torch", "2.4.1", "cp310-cp310-linux_x86_64"), dist("flash-attn", "2.7", "cp310-cp310-linux_x86_64")))  # fmt: skip
    assert {phase.name: phase.lines for phase in plan.phases} == {
        "torch": ("torch==2.4.1",),
        "compiled": ("flash-attn==2.7",),
    }


def test_torch_and_build_tools_are_locked_where_every_file_of_theirs_is_known() -> None:
    held = {"file_url": "https://f.example/x.whl", "file_sha256": "sha256:" + "b" * 64}
    contents = (content("torch", "2.6.0+cu124", "a", **held), content("pip", "26.3", "b", **held))
    plan = plan_restore(box(dist("torch", "2.6.0+cu124"), dist("pip", "26.3"), contents=contents))
    assert [(phase.name, phase.hashed, phase.lines[0].endswith("b" * 64)) for phase in plan.phases] == [
        ("build-tools", True, True),
        ("torch", True, True),
    ]
    half = plan_restore(
        box(dist("torch", "2.6.0+cu124"), dist("torchvision", "0.21.0+cu124"), contents=contents)
    )
    assert [(phase.name, phase.hashed) for phase in half.phases] == [("torch", False)]


def test_an_untested_environment_wants_a_word_of_its_own(tmp_path: Path, links: Path) -> None:
    snapshot = msgspec.structs.replace(
        proven(tmp_path), known_good=KnownGood(how=t("{file}", file="nobody tried"))
    )
    plan = plan_restore(snapshot)
    with pytest.raises(RestoreError, match="--untested"):
        restore(plan, tmp_path / "venv", Path(sys.executable), offline(links), quiet)
    assert not (tmp_path / "venv").exists()
    restore(plan, tmp_path / "venv", Path(sys.executable), offline(links, uv=our_uv(), untested=True), quiet)


def test_a_second_restore_keeps_out_while_the_first_or_its_installer_works(
    tmp_path: Path, links: Path
) -> None:
    plan, folder = plan_restore(proven(tmp_path)), tmp_path / "venv"
    make_folder(folder)
    with locked(folder) as lock:
        left_behind = subprocess.Popen(["sleep", "60"], pass_fds=(lock,))
    try:
        with pytest.raises(RestoreError, match="still at work"):
            restore(plan, folder, Path(sys.executable), offline(links), quiet)
    finally:
        left_behind.kill()
        left_behind.wait()
    restore(plan, folder, Path(sys.executable), offline(links, uv=our_uv()), quiet)


@pytest.mark.parametrize("phase", ["venv", "build-tools", "packages"])
@pytest.mark.parametrize("installer", ["pip", "uv"])
def test_a_restore_that_was_killed_goes_on_and_is_whole(
    tmp_path: Path, links: Path, phase: str, installer: str
) -> None:
    uv = our_uv() if installer == "uv" else None
    if installer == "uv" and uv is None:
        pytest.skip("uv is not here")
    make_wheel(links, "wheel", "0.1")
    base = proven(tmp_path)
    packages, provenance = base.facts.packages.value, base.facts.provenance.value
    assert packages is not None and provenance is not None
    snapshot = with_facts(base, packages=ok(Packages(items=(*packages.items, dist("wheel", "0.1")))))
    (tmp_path / "s.json").write_bytes(encode_snapshot(snapshot))
    script = f"""
import os, signal, sys
from pathlib import Path
from doctor import service
from doctor.restore import restore
from doctor.restore_commands import Options
def tell(line):
    if line.startswith({phase!r}):
        os.kill(os.getpid(), signal.SIGKILL)
plan = service.plan_restore({str(tmp_path / "s.json")!r})
restore(plan, Path({str(tmp_path / "venv")!r}), Path(sys.executable), Options(find_links=({str(links)!r},), no_index=True, uv={uv!r}), tell)
"""
    assert (
        subprocess.run([sys.executable, "-c", script], check=False, cwd=tmp_path).returncode
        == -signal.SIGKILL
    )
    found = service.restore_snapshot(str(tmp_path / "s.json"), plan_restore(snapshot), tmp_path / "venv", Path(sys.executable), offline(links, uv=uv), quiet)  # fmt: skip
    assert not found.differs and found.equal >= 2
