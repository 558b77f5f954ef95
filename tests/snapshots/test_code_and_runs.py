"""What an export says of code and of runs: a patch that holds a credential is refused, a run brings its settings."""

from __future__ import annotations

import subprocess
from pathlib import Path

import msgspec
import pytest

from doctor import service
from doctor.machine import encode_snapshot
from doctor.model import Facts, GitState, Host, Provenance, Snapshot, ok
from doctor.snapshots import capture
from doctor.snapshots.capture import ExportError
from doctor.snapshots.of_run import flat, run_provenance
from runner.plan import MachineFacts, encode_plan, make_plan
from runner.profile import Profile
from runner.rundir import RunDir
from tests.planted import line_of, secret_of


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working tree with one changed line that holds a credential; the current folder."""
    code = tmp_path / "code"
    code.mkdir()
    for words in (["init", "-q"], ["config", "user.name", "t"], ["config", "user.email", "t@example.org"]):
        subprocess.run(["git", *words], cwd=code, check=True)
    (code / "train.py").write_text("import wandb\n")
    subprocess.run(["git", "add", "."], cwd=code, check=True)
    subprocess.run(["git", "commit", "-qm", "one"], cwd=code, check=True)
    (code / "train.py").write_text(f"import wandb\n{line_of('W&B key')}\n")
    monkeypatch.chdir(code)
    return code


def test_a_patch_with_a_credential_is_refused_with_its_place_and_the_ways_on(tree: Path) -> None:
    with pytest.raises(ExportError) as caught:
        capture.capture()
    for words in ("train.py:2", "--no-patch", "--patch-as-is"):
        assert words in str(caught.value)
    assert secret_of("W&B key") not in str(caught.value)


def test_without_the_patch_the_rest_is_kept_and_what_is_missing_said(tree: Path) -> None:
    found = capture.capture(patch="leave-out")
    provenance = found.facts.provenance.value
    assert provenance is not None and provenance.git is not None
    assert (provenance.git.dirty, provenance.git.patch) == (True, None) and "without" in str(
        provenance.git.patch_why
    )
    assert secret_of("W&B key") not in encode_snapshot(found).decode()


def test_as_it_is_means_as_it_is(tree: Path) -> None:
    provenance = capture.capture(patch="as-is").facts.provenance.value
    assert provenance is not None and provenance.git is not None
    assert secret_of("W&B key") in (provenance.git.patch or "")


def test_to_be_shared_it_goes_without_code(tree: Path) -> None:
    provenance = capture.capture(share=True).facts.provenance.value
    assert provenance is not None and provenance.git is not None
    assert (provenance.git.patch, provenance.git.root) == (None, "") and provenance.git.commit


def test_data_is_named_by_its_content(tree: Path) -> None:
    (tree / "rows.csv").write_text("a,1\n")
    provenance = capture.capture(data=["rows.csv"], patch="leave-out").facts.provenance.value
    assert provenance is not None and [(one.how, one.size_bytes) for one in provenance.data] == [("whole", 4)]


# ---------------------------------------------------------------------------------------- runs
def run_of(tmp_path: Path, snapshot: Snapshot) -> RunDir:
    (tmp_path / "rows.csv").write_text("text,label\na,1\n")
    profile = msgspec.convert(
        {"run": {"name": "short", "seed": 7}, "model": {"hub": "x/y"}, "data": {"train": str(tmp_path / "rows.csv")}}, Profile
    )  # fmt: skip
    run = RunDir(tmp_path / "run")
    run.make()
    run.snapshot.write_bytes(encode_snapshot(snapshot))
    run.plan.write_bytes(
        encode_plan(make_plan(profile, MachineFacts(device="cpu", cpu_cores_usable=2), "2026-11-30"))
    )
    return run


def test_a_run_brings_its_settings_seeds_variables_and_data(tmp_path: Path) -> None:
    found = capture.from_run(
        str(run_of(tmp_path, Snapshot(facts=Facts(host=ok(Host())))).path)
    ).facts.provenance.value
    assert found is not None and found.run is not None
    assert found.run.profile["run.seed"] == 7 and found.run.settings["device"] == "cpu"
    assert set(found.run.seeds) and "PYTHONHASHSEED" in found.run.environment
    assert found.run.plan_sha256.startswith("sha256:")
    assert [(Path(one.path).name, one.how) for one in found.data] == [("rows.csv", "whole")]


def test_what_the_run_knew_of_its_code_is_kept(tmp_path: Path) -> None:
    known = Snapshot(facts=Facts(provenance=ok(Provenance(git=GitState(commit="a" * 40, dirty=False)))))
    found = capture.from_run(str(run_of(tmp_path, known).path)).facts.provenance.value
    assert found is not None and found.git == GitState(commit="a" * 40, dirty=False) and found.run is not None


def test_a_plan_that_cannot_be_read_is_said(tmp_path: Path) -> None:
    run = run_of(tmp_path, Snapshot(facts=Facts(host=ok(Host()))))
    run.plan.write_text("{}")
    assert "plan" in str(run_provenance(Provenance(), run).unread["run"])


def test_nested_tables_become_dotted_names() -> None:
    assert dict(flat({"a": {"b": {"c": 1}}, "d": [1, 2]})) == {"a.b.c": 1, "d": "[1,2]"}


def test_a_run_that_starts_here_knows_its_commit_and_keeps_no_credential(tree: Path) -> None:
    snapshot = service.examine_for_run()
    provenance = snapshot.facts.provenance.value
    assert provenance is not None and provenance.git is not None and provenance.git.commit
    assert provenance.git.dirty is True and provenance.git.patch is None and provenance.contents
    (tree / "train.py").write_text("import wandb\nwandb.init()\n")
    again = service.examine_for_run().facts.provenance.value
    assert again is not None and again.git is not None and "+wandb.init()" in (again.git.patch or "")
