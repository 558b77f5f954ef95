"""An environment against a snapshot, level by level: versions, digests, the files on disk."""

from __future__ import annotations

from pathlib import Path

import pytest

from doctor.machine import with_facts
from doctor.model import GitState, Reading, Snapshot, t
from doctor.probes.rehash import check_files
from doctor.snapshots.verify import FileCheck, Level, verify
from tests.snapshots.boxes import box, content, dist
from tests.snapshots.wheels import install

REFERENCE = box(dist("lib", "1.0"), dist("torch", "2.6.0"), contents=(content("lib", "1.0", "a"), content("torch", "2.6.0", "b")))  # fmt: skip


def here(lib: str = "1.0", record: str = "a", *more: object) -> Snapshot:
    return box(dist("lib", lib), dist("torch", "2.6.0"), *more, contents=(content("lib", lib, record), content("torch", "2.6.0", "b")))  # type: ignore[arg-type]  # fmt: skip


@pytest.mark.parametrize(
    ("there", "level", "outcomes"),
    [
        pytest.param(here(), "record", [], id="the same"),
        pytest.param(here("1.1"), "versions", [("lib", "version")], id="another version"),
        pytest.param(here(record="c"), "versions", [], id="other bytes do not show in versions"),
        pytest.param(here(record="c"), "record", [("lib", "bytes")], id="other bytes under the same version"),
        pytest.param(here("1.0", "a", dist("extra", "1")), "record", [("extra", "extra")], id="one more package"),
        pytest.param(box(dist("torch", "2.6.0"), contents=(content("torch", "2.6.0", "b"),)), "record", [("lib", "missing")], id="one is missing"),
    ],
)  # fmt: skip
def test_a_deviation_is_named(there: Snapshot, level: Level, outcomes: list[tuple[str, str]]) -> None:
    found = verify(REFERENCE, there, level)
    assert [(one.name, one.outcome) for one in found.deviations] == outcomes
    assert found.differs is any(kind in ("version", "bytes", "missing") for _, kind in outcomes)


def test_a_package_more_counts_only_where_numbers_pass_through_it() -> None:
    assert not verify(REFERENCE, here("1.0", "a", dist("pytest", "8")), "record").differs
    assert verify(REFERENCE, here("1.0", "a", dist("flash-attn", "2.7")), "record").differs


def test_a_digest_that_is_missing_here_is_not_taken_as_equal() -> None:
    blind = box(dist("lib", "1.0"), dist("torch", "2.6.0"), contents=(content("lib", "1.0", why=t("gone")), content("torch", "2.6.0", "b")))  # fmt: skip
    found = verify(REFERENCE, blind, "record")
    assert [(one.name, one.outcome, str(one.why)) for one in found.deviations] == [
        ("lib", "not-compared", "gone")
    ]
    assert found.incomplete and not found.differs and found.equal == 1


def test_a_snapshot_without_digests_is_compared_by_version_and_says_so() -> None:
    found = verify(box(dist("lib", "1.0")), here(), "record")
    assert found.level == "versions" and found.incomplete and "only versions" in str(found.why)


def test_packages_that_were_not_read_are_no_success() -> None:
    blind = with_facts(here(), packages=Reading(status="failed"))
    found = verify(REFERENCE, blind, "record")
    assert found.incomplete and found.equal == 0 and "not read" in str(found.why)


def test_a_machine_that_is_another_is_named_beside_the_packages() -> None:
    a, b = box(dist("lib", "1"), driver="550.1"), box(dist("lib", "1"), driver="560.1")
    assert [one.subject for one in verify(a, b, "versions").machine] == ["driver"]


@pytest.mark.parametrize(
    ("mine", "theirs", "outcome"),
    [
        (GitState(commit="a" * 40), GitState(commit="a" * 40), []),
        (GitState(commit="a" * 40), GitState(commit="b" * 40), ["bytes"]),
        (
            GitState(commit="a" * 40),
            GitState(commit="a" * 40, dirty=True, patch_sha256="sha256:x"),
            ["bytes"],
        ),
        (GitState(commit="a" * 40, dirty=True), GitState(commit="a" * 40, dirty=True), ["not-compared"]),
        (None, GitState(commit="a" * 40), ["not-compared"]),
    ],
    ids=["same commit", "other commit", "changed since", "changes not kept", "no tree known"],
)
def test_source_folders(mine: GitState | None, theirs: GitState | None, outcome: list[str]) -> None:
    a = box(dist("mine", "1"), contents=(content("mine", "1", editable=True, git=mine),))
    b = box(dist("mine", "1"), contents=(content("mine", "1", editable=True, git=theirs),))
    assert [one.outcome for one in verify(a, b, "record").deviations] == outcome


# ---------------------------------------------------------------------------------------- files
def test_files_that_are_what_was_installed_pass(tmp_path: Path) -> None:
    install(tmp_path / "site", "lib", "1.0", installer="uv")
    checked = check_files((tmp_path / "site",))
    assert checked["lib"].files == 4 and checked["lib"].damaged == ()


@pytest.mark.parametrize("harm", ["changed", "cut", "deleted"])
def test_a_file_that_was_harmed_is_named(tmp_path: Path, harm: str) -> None:
    site = tmp_path / "site"
    install(site, "lib", "1.0", {"lib.py": b"x = 1\n"}, installer="uv")
    if harm == "deleted":
        (site / "lib.py").unlink()
    else:
        (site / "lib.py").write_bytes({"changed": b"x = 2\n", "cut": b"x"}[harm])
    assert check_files((site,))["lib"].damaged == ("lib.py",)


def test_a_fifo_in_place_of_a_file_does_not_hang(tmp_path: Path) -> None:
    import os

    site = tmp_path / "site"
    install(site, "lib", "1.0", installer="uv")
    (site / "lib.py").unlink()
    os.mkfifo(site / "lib.py")
    assert check_files((site,))["lib"].damaged == ("lib.py",)


def test_damaged_files_make_it_another_environment() -> None:
    checked = {
        "lib": FileCheck(name="lib", files=3, damaged=("lib.py",)),
        "torch": FileCheck(name="torch", files=9),
    }
    found = verify(REFERENCE, here(), "files", checked)
    assert [(one.name, one.outcome, one.files) for one in found.deviations] == [
        ("lib", "damaged", ("lib.py",))
    ]
    assert found.differs and found.files == 12


def test_files_that_nobody_read_are_not_equal() -> None:
    found = verify(REFERENCE, here(), "files", {"torch": FileCheck(name="torch", files=9)})
    assert [(one.name, one.outcome) for one in found.deviations] == [("lib", "not-compared")]


def test_a_compiled_file_that_python_wrote_anew_is_no_damage(tmp_path: Path) -> None:
    cache = "lib/__pycache__/lib.cpython-310.pyc"  # numpy 1.26's wheel brings one
    install(tmp_path, "lib", "1.0", {"lib/lib.py": b"x = 1\n", cache: b"as built"}, installer="uv")
    (tmp_path / cache).write_bytes(b"as python wrote it")
    found = check_files((tmp_path,))["lib"]
    assert found.damaged == () and found.files >= 1
