"""What a script's text shows of its run."""

from __future__ import annotations

import json

import pytest

from doctor.purpose import workload_from_script


@pytest.mark.parametrize(
    ("text", "features"),
    [
        pytest.param(
            "from transformers import Trainer\nTrainer(model=m).train()", ("trainer",), id="Trainer"
        ),
        pytest.param("import torch\nm = torch.compile(m)", ("torch-compile",), id="torch.compile"),
        pytest.param("TrainingArguments('o', torch_compile=True)", ("torch-compile",), id="by an argument"),
        pytest.param(
            "m = A.from_pretrained('x', attn_implementation='flash_attention_2')",
            ("flash-attention-2",),
            id="flash attention",
        ),
        pytest.param(
            "m = A.from_pretrained('x', attn_implementation='sdpa')", (), id="sdpa asks for nothing"
        ),
        pytest.param(
            "torch.onnx.export(m, x, 'm.onnx')", ("onnx-export-default-exporter",), id="the default exporter"
        ),
        pytest.param("torch.onnx.export(m, x, 'm.onnx', dynamo=False)", (), id="the old exporter"),
        pytest.param(
            "vocab = open('vocab.txt', encoding='utf-8').read().splitlines()",
            ("vocab-splitlines",),
            id="a vocabulary split",
        ),
        pytest.param(
            "rows = open('data.txt', encoding='utf-8').read().splitlines()", (), id="other lines split"
        ),
        pytest.param("rows = open('data.txt').readlines()", ("locale-encoding",), id="no encoding named"),
    ],
)
def test_features(text: str, features: tuple[str, ...]) -> None:
    assert workload_from_script(text).features == features


def test_imports_inside_try_may_be_missing() -> None:
    text = "import numpy as np, os.path\nfrom . import local\ntry:\n    import wandb\nexcept ImportError:\n    wandb = None\n"
    assert workload_from_script(text).imports == ("numpy", "os")


@pytest.mark.parametrize(
    ("text", "imports"),
    [
        pytest.param("if track:\n    import wandb\n", (), id="on a condition"),
        pytest.param("def main():\n    import peft\nmain()\n", ("peft",), id="in a function"),
        pytest.param(
            'if __name__ == "__main__":\n    import peft\n', ("peft",), id="where the script starts"
        ),
        pytest.param("try:\n    pass\nexcept E:\n    import peft\n", (), id="in a handler"),
    ],
)
def test_only_an_import_that_must_happen_is_counted(text: str, imports: tuple[str, ...]) -> None:
    assert workload_from_script(text).imports == imports


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("import transformers as hf\nhf.TrainingArguments('o', fp16=True)", id="an alias"),
        pytest.param("half = True\nTrainingArguments(output_dir='o', fp16=half)", id="a variable"),
        pytest.param("o = dict(fp16=True, output_dir='o')\nTrainingArguments(**o)", id="a dictionary spread"),
        pytest.param("class Mine(TrainingArguments):\n    pass\nMine('o', fp16=True)", id="a subclass"),
        pytest.param(
            "p.add_argument('--fp16', default=True)\nargs = p.parse_args()\nTrainingArguments('o', fp16=args.fp16)",
            id="an option's default",
        ),
    ],
)
def test_arguments_are_found_however_they_are_written(text: str) -> None:
    assert workload_from_script(text).training_args == {"output_dir": "o", "fp16": True}


def test_what_cannot_be_seen_is_not_made_up() -> None:
    run = workload_from_script("TrainingArguments(output_dir=where(), fp16=a.b, bf16=None)")
    assert run.training_args == {"bf16": None}
    assert run.output_dir is None


def test_a_notebook_is_read_like_a_script() -> None:
    cells = [
        {"cell_type": "code", "source": ["!nvidia-smi\n", "torch.manual_seed(1)"]},
        {"cell_type": "markdown"},
    ]
    assert workload_from_script(json.dumps({"cells": cells}), "a.ipynb").seeds_set == ("torch",)


def test_arguments_workers_and_output() -> None:
    text = "a = TrainingArguments(output_dir='o', fp16=True, gradient_accumulation_steps=4, dataloader_num_workers=8)\nDataLoader(d, num_workers=2)"
    run = workload_from_script(text, "train.py")
    assert run.output_dir == "o"
    assert run.num_workers == 8
    assert run.training_args["gradient_accumulation_steps"] == 4
    assert run.source == "train.py"


@pytest.mark.parametrize(
    ("text", "seeds", "deterministic"),
    [
        pytest.param("torch.manual_seed(1)", ("torch",), None, id="torch alone"),
        pytest.param(
            "from transformers import set_seed\nset_seed(1)",
            ("numpy", "python", "torch"),
            None,
            id="all at once",
        ),
        pytest.param("x = 1", None, None, id="nothing shown is nothing known"),
        pytest.param("torch.use_deterministic_algorithms(True)", None, True, id="deterministic"),
        pytest.param(
            "torch.use_deterministic_algorithms(True, warn_only=True)", None, False, id="only warned of"
        ),
    ],
)
def test_seeds_and_determinism(text: str, seeds: tuple[str, ...] | None, deterministic: bool | None) -> None:
    run = workload_from_script(text)
    assert (run.seeds_set, run.deterministic) == (seeds, deterministic)


def test_a_script_that_is_not_python_is_said_so() -> None:
    with pytest.raises(SyntaxError):
        workload_from_script("print 'hello'")
