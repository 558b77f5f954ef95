"""An interrupted file of answers: what is answered is kept, and gone on from where it is the same work."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from runner.deploy.part_file import part_of
from runner.deploy.predicting import SORTED_ROWS, Request, predict
from runner.inputs import InputError
from tests.deploy.tiny import save_model

ROWS = [
    f"the film was {'good' if number % 3 else 'bad'}" + ' very, "so"' * (number % 4)
    for number in range(SORTED_ROWS + 40)
]


class Ear:
    """Stands where the caller does; presses Ctrl-C when ``stop_at`` rows are answered."""

    def __init__(self, stop_at: int | None = None) -> None:
        self.stop_at, self.lines = stop_at, list[dict[str, Any]]()

    def line(self, **fields: Any) -> None:
        self.lines.append(fields)
        if self.stop_at is not None and fields.get("done", 0) >= self.stop_at:
            self.stop_at = None
            raise KeyboardInterrupt

    def doing(self, text: Any) -> None:
        self.lines.append({"doing": str(text)})

    @property
    def said(self) -> str:
        return str(self.lines)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_model(tmp_path_factory.mktemp("resume") / "model", "AutoModelForSequenceClassification")


def answer(model: Path, folder: Path, name: str, ear: Ear | None = None, **options: Any) -> Ear:
    source = folder / "rows.txt"
    if not source.exists():
        source.write_text("\n".join(ROWS) + "\n")
    ear = ear or Ear()
    out = str(folder / name)
    request = {"folder": str(model), "file": str(source), "out": out, "batch_size": 32, **options}
    predict(Request(**request), ear)  # type: ignore[arg-type]
    return ear


def interrupted(model: Path, folder: Path, name: str) -> Ear:
    ear = Ear(stop_at=SORTED_ROWS + 1)
    with pytest.raises(KeyboardInterrupt):
        answer(model, folder, name, ear)
    return ear


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
def test_gone_on_from_it_is_the_file_of_one_go(model: Path, tmp_path: Path, suffix: str) -> None:
    answer(model, tmp_path, f"whole{suffix}")
    ear = interrupted(model, tmp_path, f"a{suffix}")
    part = part_of(tmp_path / f"a{suffix}")
    assert ear.lines[-1] == {"kept": SORTED_ROWS, "part": str(part)}
    assert not (tmp_path / f"a{suffix}").exists() and part.is_file()
    ear = answer(model, tmp_path, f"a{suffix}", resume=True)
    assert min(line["done"] for line in ear.lines if "done" in line) > SORTED_ROWS, "none is answered twice"
    assert ear.lines[-1]["done"] == len(ROWS)
    assert not part.exists()
    if suffix == ".parquet":
        import pyarrow.parquet  # type: ignore[import-untyped]

        whole, made = (
            pyarrow.parquet.read_table(tmp_path / name).to_pylist() for name in ("whole.parquet", "a.parquet")
        )
        assert [row["text"] for row in made] == [row["text"] for row in whole] == ROWS
    else:
        assert (tmp_path / f"a{suffix}").read_bytes() == (tmp_path / f"whole{suffix}").read_bytes()


def test_before_the_first_answer_nothing_is_kept_and_an_old_part_stays(model: Path, tmp_path: Path) -> None:
    interrupted(model, tmp_path, "a.csv")
    kept = part_of(tmp_path / "a.csv").read_bytes()
    with pytest.raises(KeyboardInterrupt):
        answer(model, tmp_path, "a.csv", Ear(stop_at=1))
    assert part_of(tmp_path / "a.csv").read_bytes() == kept
    assert [path.name for path in tmp_path.glob("*a.*")] == ["a.part.csv"]


def test_without_resume_it_begins_anew_and_says_what_lies_there(model: Path, tmp_path: Path) -> None:
    interrupted(model, tmp_path, "a.csv")
    ear = answer(model, tmp_path, "a.csv")
    assert "a.part.csv has the answers of an interrupted call" in ear.said
    assert not part_of(tmp_path / "a.csv").exists()


def other_texts(model: Path, folder: Path) -> Path:
    (folder / "rows.txt").write_text("\n".join(["another", *ROWS[1:]]))
    return model


def other_model(model: Path, folder: Path) -> Path:
    return save_model(folder / "other", "AutoModelForSequenceClassification", initializer_range=0.9)


def no_part(model: Path, folder: Path) -> Path:
    part_of(folder / "a.csv").unlink()
    return model


@pytest.mark.parametrize(
    ("change", "words"),
    [
        pytest.param(other_texts, "answer 1 is of another text than row 1", id="the file was changed"),
        pytest.param(other_model, "answers of another model", id="another model"),
        pytest.param(no_part, "there is no", id="nothing was kept"),
    ],
)
def test_other_work_is_not_gone_on_from(model: Path, tmp_path: Path, change: Any, words: str) -> None:
    interrupted(model, tmp_path, "a.csv")
    asked = change(model, tmp_path)
    with pytest.raises(InputError) as refused:
        answer(asked, tmp_path, "a.csv", resume=True)
    assert words in str(refused.value)
    assert not (tmp_path / "a.csv").exists()


def test_what_was_too_long_is_counted_by_text_and_in_all(model: Path, tmp_path: Path) -> None:
    (tmp_path / "rows.txt").write_text("good film\n" + "very " * 70 + "good\n")
    ear = answer(model, tmp_path, "a.jsonl", max_length=8)
    assert (ear.lines[-1]["cut_rows"], ear.lines[-1]["max_length"]) == (1, 8)
    counts = [
        line.split('"cut_tokens":')[1].rstrip("}") for line in (tmp_path / "a.jsonl").read_text().splitlines()
    ]
    assert counts == ["0", "65"], "71 words and two marks, of which 8 were read"
