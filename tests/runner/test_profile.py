"""A profile's mistakes, all at once, each by its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from runner.profile import ProfileError, load_profile

GOOD = """\
[run]
name = "mine"
[model]
hub = "google-bert/bert-base-uncased"
[data]
train = ["a.csv", "sub/b.csv"]
[train]
lr = 3e-5
"""


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "profile.toml"
    path.write_text(text, encoding="utf-8")
    return path


def problems_of(path: Path, overrides: list[str] | None = None) -> list[str]:
    with pytest.raises(ProfileError) as caught:
        load_profile(path, overrides or [])
    return [str(problem) for problem in caught.value.problems]


def test_five_mistakes_in_one_message_each_with_its_line(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        '[run]\nname = "x"\nsede = 3\n[model]\nhub = "a/b"\npath = "c"\n[data]\ntrain = "a.csv"\n'
        '[train]\nlr = "fast"\nprecision = "fp8"\nbatch_size = 10\naccumulation = 3\n',
    )
    problems = problems_of(path)
    assert len(problems) == 5
    for place, words in {
        "run.sede (line 3)": "did you mean seed",
        "model (line 4)": "exactly one of",
        "train.lr (line 10)": "'fast'",
        "train.precision (line 11)": "auto, bf16, fp16, fp32",
        "train.batch_size (line 12)": "micro_batch_size",
    }.items():
        assert any(place in problem and words in problem for problem in problems), (place, problems)


def test_paths_are_taken_from_the_file_and_those_of_set_from_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    path = written(tmp_path, GOOD)
    assert load_profile(path).data.train == [str(tmp_path / "a.csv"), str(tmp_path / "sub/b.csv")]
    assert load_profile(path, ["data.train=mine.csv"]).data.train == [str(elsewhere / "mine.csv")]


@pytest.mark.parametrize(
    ("override", "read"),
    [("train.lr=1e-4", 1e-4), ("train.lr = 1e-4", 1e-4), ("train.schedule=cosine", "cosine"),
     ("train.betas=[0.9, 0.95]", (0.9, 0.95)), ("train.warmup=0.1", 0.1), ("train.warmup=10", 10),
     ("train.precision='fp32'", "fp32")],
)  # fmt: skip
def test_an_override_is_read_as_toml_else_as_text(tmp_path: Path, override: str, read: object) -> None:
    profile = load_profile(written(tmp_path, GOOD), [override])
    assert getattr(profile.train, override.split("=")[0].strip().split(".")[1]) == read


@pytest.mark.parametrize(
    ("override", "words"),
    [("nonsense", "section.key=value"), ("lr=3", "section.key=value"), ("train.learning_rate=3", "did you mean lr"),
     ("train.lr=-1", "(--set)"), ("quux.x=1", "known are run, model, data, train")],
)  # fmt: skip
def test_a_wrong_override_is_named(tmp_path: Path, override: str, words: str) -> None:
    (problem,) = problems_of(written(tmp_path, GOOD), [override])
    assert words in problem


@pytest.mark.parametrize(
    ("content", "words"),
    [(b"[run\n", "not valid TOML"), ("name = '\u4e2d'".encode("gbk"), "not UTF-8"), (b"", "[run]: this section is missing")],
)  # fmt: skip
def test_what_is_no_profile_is_said(tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "profile.toml"
    path.write_bytes(content)
    assert any(words in problem for problem in problems_of(path))


def test_a_missing_file_is_said(tmp_path: Path) -> None:
    assert "No such file" in problems_of(tmp_path / "none.toml")[0]


@pytest.mark.parametrize(
    "path", sorted((Path(__file__).parents[2] / "profiles").glob("*.toml")), ids=lambda path: path.stem
)
def test_every_shipped_profile_loads(path: Path) -> None:
    assert load_profile(path).run.name == path.stem
