"""``doctor export`` and ``doctor predict`` on one small run, as a person types them."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from tests.commands_run import doctor
from tests.deploy.hub_server import TOKEN, running_hub
from tests.runner.tiny import make_run, train

pytestmark = pytest.mark.train


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    folder = tmp_path_factory.mktemp("deploy")
    made = make_run(folder, ["run.seed=9"])  # of which it learns its labels in 40 steps
    assert train(made) == 0
    return Path(made.path)


def ask(run: Path, *arguments: str, **options: object) -> tuple[int, str, str]:
    import sys

    done = doctor(*arguments, "--python", sys.executable, cwd=run.parent, timeout_s=300, **options)  # type: ignore[arg-type]
    return done.returncode, done.stdout, done.stderr


def test_a_run_becomes_onnx_that_answers_as_torch_does(run: Path) -> None:
    code, out, err = ask(run, "export", str(run), "--onnx", "--exporter", "torchscript", "--int8", "--json")
    assert code == 0, err
    found = json.loads(out)
    fp32, int8 = found["variants"]
    assert fp32["agreement"]["disagreements"] == 0
    assert fp32["agreement"]["samples"] == 40
    assert fp32["metrics"] == found["torch_metrics"]
    final = json.loads((run / "final" / "metrics.json").read_text())["metrics"]
    assert found["torch_metrics"]["accuracy"] == pytest.approx(final["accuracy"])
    assert int8["metrics"]["accuracy"] >= 0.5
    assert {one["batch_size"] for one in found["latencies"]} == {1, 32}
    assert (run / "onnx" / "model.onnx").is_file()

    torch_says = ask(run, "predict", str(run), "warm and tasty", "rude and slow", "--json")[1].splitlines()
    onnx_says = ask(run, "predict", str(run / "onnx" / "model.onnx"), "warm and tasty", "rude and slow", "--json")[1].splitlines()  # fmt: skip
    assert [json.loads(line)["label"] for line in torch_says] == ["1", "0"]
    assert [json.loads(line)["label"] for line in onnx_says] == ["1", "0"]


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
def test_a_file_is_answered_row_by_row_in_its_order(run: Path, tmp_path: Path, suffix: str) -> None:
    rows = [f"the soup was {word} " + "and the side of rice " * (number % 7) for number, word in enumerate(["warm", "cold"] * 300)]  # fmt: skip
    source = tmp_path / "评论.csv"
    source.write_bytes("\n".join(["正文", *rows]).encode("gb18030"))
    target = tmp_path / f"answers{suffix}"
    code, out, err = ask(
        run, "predict", str(run), "--file", str(source), "--column", "正文", "-o", str(target)
    )
    assert code == 0, err
    assert "600 answers" in out
    if suffix == ".csv":
        with open(target, encoding="utf-8-sig", newline="") as file:
            answers = list(csv.DictReader(file))
    elif suffix == ".jsonl":
        answers = [json.loads(line) for line in target.read_text().splitlines()]
    else:
        import pyarrow.parquet  # type: ignore[import-untyped]

        answers = pyarrow.parquet.read_table(target).to_pylist()
    assert [one["text"] for one in answers] == rows
    assert {one["label"] for one in answers} <= {"0", "1"}


def test_texts_come_from_standard_input_too(run: Path) -> None:
    code, out, _ = ask(run, "predict", str(run), stdin="warm and tasty\n\nrude\n")
    assert code == 0
    assert [line.split()[0] for line in out.splitlines() if not line.startswith(" ")] == ["1", "0"]


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        pytest.param(("export", "{run}"), 2, "say what is wanted", id="nothing asked"),
        pytest.param(("export", "nowhere", "--onnx"), 2, "nowhere", id="no such run"),
        pytest.param(("predict", "{run}", "a", "--file", "b"), 2, "not both", id="texts and a file"),
        pytest.param(("predict", "{run}", "--file", "gone.csv"), 2, "gone.csv", id="no such file"),
        pytest.param(("predict", "{run}", "a", "-o", "x.xlsx"), 2, ".parquet", id="a table nobody writes"),
        pytest.param(("predict", "no.onnx", "a"), 1, "no.onnx", id="no such ONNX file"),
        pytest.param(
            ("predict", "{run}", "--file", "{run}/../rows.csv", "--column", "body"),
            1,
            "no column body",
            id="no such column",
        ),
    ],
)
def test_a_wrong_line_is_one_sentence(run: Path, arguments: tuple[str, ...], code: int, words: str) -> None:
    got, _, err = ask(run, *(one.format(run=run) for one in arguments))
    assert got == code
    assert words in err
    assert len(err.splitlines()) == 1 and "Traceback" not in err


def test_a_model_is_copied_whole_and_never_over_something(run: Path, tmp_path: Path) -> None:
    target = tmp_path / "shared"
    assert ask(run, "export", str(run), "--to", str(target))[0] == 0
    assert {path.name for path in target.iterdir()} >= {"README.md", "config.json", "model.safetensors", "metrics.json"}  # fmt: skip
    code, _, err = ask(run, "export", str(run), "--to", str(target))
    assert (code, "holds something already" in err) == (1, True)


def test_the_card_says_how_good_on_what_and_from_which_seed(run: Path) -> None:
    card = (run / "final" / "README.md").read_text()
    metrics = json.loads((run / "final" / "metrics.json").read_text())
    assert f"| accuracy | {metrics['metrics']['accuracy']:.4f} |" in card
    assert "Seed 9" in card and "160 rows (" in card and "trained on, 40 held out" in card
    assert "rows.csv" in card and str(run.parent) not in card


def test_the_hub_is_asked_about_first_and_gets_every_file(run: Path) -> None:
    with running_hub() as hub:
        variables = {"HF_ENDPOINT": hub.address, "HF_TOKEN": TOKEN}
        assert ask(run, "export", str(run), "--to", "me/model", "--dry-run", environment=variables)[0] == 0
        code, _, err = ask(run, "export", str(run), "--to", "me/model", environment=variables)
        assert (code, "--yes" in err) == (2, True)
        assert hub.repositories == {}
        code, out, err = ask(run, "export", str(run), "--to", "me/model", "--yes", environment=variables)
        assert code == 0, err
        assert f"{hub.address}/me/model" in out
        assert hub.repositories == {"me/model": True}
        assert hub.files["config.json"] == (run / "final" / "config.json").read_bytes()
        assert "README.md" in hub.files


def test_a_hub_that_refuses_is_one_sentence_without_the_token(run: Path) -> None:
    with running_hub() as hub:
        variables = {"HF_ENDPOINT": hub.address, "HF_TOKEN": "hf_wrong" + "b" * 30}
        code, out, err = ask(run, "export", str(run), "--to", "me/model", "--yes", environment=variables)
    assert code == 1
    assert hub.address in err and "hf_wrong" not in out + err
