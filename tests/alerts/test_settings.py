"""Who is told: the words of ``[alerts]`` and ``--alert``, every mistake named, and addresses kept to their owner."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from runner.alert_settings import (
    AlertsSection,
    Place,
    place_of,
    problems_of,
    read_alerts,
    read_settings,
    write_settings,
)
from runner.profile import load_profile
from runner.rundir import RunDir
from runner.text import Text

PLACES = {
    "bell": Place(kind="bell"),
    "webhook=https://example.org/a?key=1": Place(kind="webhook", value="https://example.org/a?key=1"),
    "https://example.org/a": Place(kind="webhook", value="https://example.org/a"),
    "webhook=$WECOM": Place(kind="webhook", value="$WECOM"),
    "webhook=${WECOM}": Place(kind="webhook", value="${WECOM}"),
    "command=notify-send a=b": Place(kind="command", value="notify-send a=b"),
}


@pytest.mark.parametrize(("word", "place"), PLACES.items(), ids=PLACES)
def test_a_place_is_read(word: str, place: Place) -> None:
    assert place_of(word) == place


@pytest.mark.parametrize(
    "word", ["", "bells", "webhook=", "webhook=ftp://x/y", "webhook=file:///etc/passwd", "webhook=https://", "command=", "webhook=http://a:0/", "mail=x"]
)  # fmt: skip
def test_what_is_no_place_is_refused(word: str) -> None:
    assert isinstance(place_of(word), Text)


def test_a_refused_address_is_not_repeated() -> None:
    (problem,) = problems_of(AlertsSection(to=["webhook=htps://chat/send?key=SECRET"]))
    assert "SECRET" not in str(problem)


def test_a_variable_gives_the_address_when_it_is_needed() -> None:
    place = Place(kind="webhook", value="${HOOK}")
    assert place.resolved({"HOOK": " https://x/y "}) == "https://x/y"
    assert place.resolved({}) == ""


PROFILE = """
[run]
name = "p"
[model]
path = "m"
[data]
train = "a.csv"
{alerts}
"""


def test_a_profile_with_alerts_is_the_same_plan_as_one_without(tmp_path: Path) -> None:
    plain, told = tmp_path / "plain.toml", tmp_path / "told.toml"
    plain.write_text(PROFILE.format(alerts=""))
    told.write_text(PROFILE.format(alerts='[alerts]\nto = ["webhook=$HOOK"]\nkinds = ["failed", "disk"]'))
    assert load_profile(plain) == load_profile(told)
    assert read_alerts(plain) == (AlertsSection(), [])
    section, problems = read_alerts(told)
    assert problems == []
    assert section == AlertsSection(to=["webhook=$HOOK"], kinds=["failed", "disk"])
    assert section.wants("disk") and not section.wants("vram")


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ('to = "bell"', "alerts.to (line 9)"), ('kinds = ["dsk"]', "alerts.kinds (line 9)"), ('too = ["bell"]', "did you mean to"),
        ('to = ["webhook=nowhere"]', "https://"), ("body = 'x'", "no JSON"), ("body = '{\"a\": 1}'", "{text}"),
    ],
)  # fmt: skip
def test_every_mistake_of_the_section_is_named(tmp_path: Path, lines: str, words: str) -> None:
    path = tmp_path / "p.toml"
    path.write_text(PROFILE.format(alerts=f"[alerts]\n{lines}"))
    _, problems = read_alerts(path)
    assert len(problems) == 1
    assert words in str(problems[0])


def test_the_settings_beside_a_run_are_for_their_owner(tmp_path: Path) -> None:
    run = RunDir(tmp_path)
    assert not read_settings(run).is_on
    section = AlertsSection(to=["webhook=https://x/y?key=1"])
    write_settings(run, section)
    assert read_settings(run) == section
    assert stat.S_IMODE((tmp_path / "alerts.json").stat().st_mode) == 0o600
    (tmp_path / "alerts.json").write_text("{")
    assert not read_settings(run).is_on
