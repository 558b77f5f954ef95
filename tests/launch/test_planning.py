"""What a machine is judged for before a run: the run's own variables and disk, and nothing the plan settles itself."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from doctor.launch import LaunchError
from doctor.model import Environment, Snapshot, ok
from doctor.running import find_profile, plan_run, profile_names
from runner.profile import ProfileError


def ids(snapshot: Snapshot, profile: Path) -> set[str]:
    return {finding.id for finding in plan_run(str(profile), [], snapshot).report.findings()}


@pytest.fixture
def with_environment(snapshot: Snapshot) -> Snapshot:
    facts = msgspec.structs.replace(snapshot.facts, environment=ok(Environment(variables={}, complete=True)))
    return msgspec.structs.replace(snapshot, facts=facts)


def test_what_the_plan_sets_itself_is_not_called_unset(with_environment: Snapshot, profile: Path) -> None:
    assert "seeds-incomplete" not in ids(with_environment, profile)


def test_our_own_offline_variable_is_not_held_against_the_user(
    with_environment: Snapshot, profile: Path
) -> None:
    planned = plan_run(str(profile), [], with_environment)
    assert planned.plan.environment["HF_HUB_OFFLINE"] == "1"
    assert "hub-offline" not in {finding.id for finding in planned.report.findings()}


def test_every_shipped_profile_is_found_by_its_name() -> None:
    assert "quickstart" in profile_names()
    assert all(find_profile(name).is_file() for name in profile_names())


def test_a_profile_that_is_not_there_names_those_that_are() -> None:
    with pytest.raises(LaunchError, match="quickstart"):
        find_profile("quickstrat")


def test_a_profiles_own_folder_here_does_not_hide_the_shipped_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "profiles").mkdir()
    (tmp_path / "quickstart").mkdir()
    monkeypatch.chdir(tmp_path)
    assert find_profile("quickstart").parent.name == "profiles"
    assert find_profile("quickstart").is_absolute()


def test_all_mistakes_of_a_profile_come_at_once(profile: Path, snapshot: Snapshot) -> None:
    with pytest.raises(ProfileError) as caught:
        plan_run(str(profile), ["train.epochs=0", "train.lr=-1", "train.nope=1"], snapshot)
    assert len(caught.value.problems) == 3


def test_data_that_is_not_there_is_named_before_anything_starts(profile: Path, snapshot: Snapshot) -> None:
    planned = plan_run(str(profile), ["data.train=nowhere.csv"], snapshot)
    assert any("nowhere.csv" in str(text) for text in planned.missing)
