"""Rewrites: what each makes of a script, that it holds, that nothing else is touched, and that it can be undone."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

from doctor.lint import lint_source
from doctor.lint.rewrites import NotRewritable, all_rewrites, rewrite_source
from tests.lint.test_rules import NOTES, NOW, OLD, TWINS

SAFE_NOT = {
    "torch-load-weights-only-default": "loading whole objects runs what is in them",
    "unknown-argument": "a likely name is a guess; offload_ arguments are dropped safely",
}
WITH_REWRITE = {
    "cuda-visible-devices-set-late", "clip-before-unscale", "loss-kept-as-tensor", "vocab-file-splitlines-corruption",
    "reentrant-checkpoint-frozen-inputs", "accumulation-loss-not-scaled", "override-signature-changed", "removed-import",
    "removed-argument", "argument-too-new", "unknown-argument", "onnx-dynamo-default-dynamic-axes",
    "onnx-export-in-train-mode", "deprecated-api", "torch-load-weights-only-default",
}  # fmt: skip
# Rows of a rule with a rewrite that none can be given for: what to write in their place only a person knows.
LEFT_ALONE = ("torch.onnx.dynamo_export", "batch.chunk(4)")

ROWS = [row for row in TWINS if row[0] in WITH_REWRITE and not any(one in row[2] for one in LEFT_ALONE)]


def safely(source: str, versions: dict[str, str]) -> str:
    return rewrite_source(source, lambda one: one.safe, versions).source


def wholly(source: str, versions: dict[str, str]) -> str:
    return rewrite_source(source, lambda one: True, versions).source


def ids(source: str, versions: dict[str, str]) -> list[str]:
    return [found.id for found in lint_source(source, versions)]


def test_the_rewrites_are_those_named_here() -> None:
    assert set(all_rewrites()) == WITH_REWRITE
    assert {row[0] for row in [*ROWS, *((one[0],) for one in NOTES)]} >= WITH_REWRITE


@pytest.mark.parametrize(
    ("rule", "level", "wrong", "right", "versions"), ROWS, ids=[f"{n}-{r[0]}" for n, r in enumerate(ROWS)]
)
def test_after_the_rewrite_the_finding_is_gone_and_a_second_run_has_nothing_to_do(
    rule: str, level: str, wrong: str, right: str, versions: dict[str, str]
) -> None:
    after = wholly(wrong, versions)
    ast.parse(after)
    assert rule in ids(wrong, versions)
    assert rule not in ids(after, versions)
    assert not [one for one in lint_source(after, versions) if one.level == "fail"]
    assert rewrite_source(after, lambda one: True, versions).made == ()


@pytest.mark.parametrize("row", TWINS, ids=[f"{n}-{r[0]}" for n, r in enumerate(TWINS)])
def test_the_right_twin_is_not_touched(row: tuple[str, str, str, str, dict[str, str]]) -> None:
    _, _, _, right, versions = row
    assert wholly(right, versions) == right


@pytest.mark.parametrize("row", [row for row in ROWS if row[0] in SAFE_NOT], ids=lambda row: row[0])
def test_what_may_change_the_meaning_is_never_done_unasked(
    row: tuple[str, str, str, str, dict[str, str]],
) -> None:
    _, _, wrong, _, versions = row
    found = rewrite_source(wrong, lambda one: one.safe, versions)
    if "offload_" in wrong:
        assert found.made and not found.left
    else:
        assert found.source == wrong
        assert [one.risk is not None for one in found.left] == [True]


# (name, before, after, versions)
FORMS = [
    ("arguments on lines of their own keep their comments",
     "from transformers import TrainingArguments\nargs = TrainingArguments(\n    output_dir='出',\n    overwrite_output_dir=True,  # gone\n    evaluation_strategy='steps',  # 评估\n    fp16_opt_level='O2'\n)\n",
     "from transformers import TrainingArguments\nargs = TrainingArguments(\n    output_dir='出',\n    eval_strategy='steps',  # 评估\n)\n", NOW),
    ("the only argument",
     "from transformers import TrainingArguments\nTrainingArguments(\n    overwrite_output_dir=True,\n)\n",
     "from transformers import TrainingArguments\nTrainingArguments()\n", NOW),
    ("the last argument of a line",
     "from transformers import TrainingArguments\nTrainingArguments('o', no_cuda=True, half_precision_backend='auto')\n",
     "from transformers import TrainingArguments\nTrainingArguments('o', use_cpu=True)\n", NOW),
    ("the tokenizer of a Trainer",
     "from transformers import Trainer\nTrainer(model=m, tokenizer=tok)\n",
     "from transformers import Trainer\nTrainer(model=m, processing_class=tok)\n", NOW),
    ("the tokenizer stays where it is still taken",
     "from transformers import Trainer\nTrainer(model=m, tokenizer=tok)\n",
     "from transformers import Trainer\nTrainer(model=m, tokenizer=tok)\n", {"transformers": "4.50.3"}),
    ("a dictionary of options is left alone",
     "from transformers import TrainingArguments\no = {'evaluation_strategy': 'steps'}\nTrainingArguments('o', **o)\n",
     "from transformers import TrainingArguments\no = {'evaluation_strategy': 'steps'}\nTrainingArguments('o', **o)\n", NOW),
    ("AdamW merged with an import that is there, its old defaults kept",
     "from torch.optim import SGD\nfrom transformers import AdamW, Trainer\no = AdamW(p, lr=1e-5, correct_bias=True)\n",
     "from torch.optim import SGD, AdamW\nfrom transformers import Trainer\no = AdamW(p, lr=1e-5, eps=1e-6, weight_decay=0.0)\n", NOW),
    ("AdamW with all that it needs given",
     "from transformers import AdamW as Opt\no = Opt(p, 1e-5, (0.9, 0.99), 1e-8, 0.01)\n",
     "from torch.optim import AdamW as Opt\no = Opt(p, 1e-5, (0.9, 0.99), 1e-8, 0.01)\n", NOW),
    ("AdamW by attribute",
     "import transformers\no = transformers.AdamW(p, lr=1e-5, eps=1e-8, weight_decay=0.1)\n",
     "import transformers\nimport torch\no = torch.optim.AdamW(p, lr=1e-5, eps=1e-8, weight_decay=0.1)\n", NOW),
    ("an import in brackets, on lines",
     "from transformers import (\n    AdamW,\n    Trainer,  # 训练\n)\n",
     "from transformers import (\n    Trainer,  # 训练\n)\nfrom torch.optim import AdamW\n", NOW),
    ("mixed precision, imported",
     "from torch.cuda.amp import autocast, GradScaler  # 混合精度\ns = GradScaler(2.0 ** 10)\nwith autocast(True, cache_enabled=False):\n    pass\n",
     "from torch.amp import autocast, GradScaler  # 混合精度\ns = GradScaler(\"cuda\", 2.0 ** 10)\nwith autocast(\"cuda\", enabled=True, cache_enabled=False):\n    pass\n", NOW),
    ("mixed precision, written out",
     "import torch\ns = torch.cuda.amp.GradScaler(\n    init_scale=4.0,\n)\nwith torch.cuda.amp.autocast(dtype=torch.float16):\n    pass\n",
     "import torch\ns = torch.amp.GradScaler(\n    \"cuda\",\n    init_scale=4.0,\n)\nwith torch.autocast(\"cuda\", dtype=torch.float16):\n    pass\n", NOW),
    ("mixed precision, by module",
     "from torch.cuda import amp\ns = amp.GradScaler()\n",
     "from torch import amp\ns = amp.GradScaler(\"cuda\")\n", NOW),
    ("mixed precision handed on is left alone",
     "import torch\nc = torch.cuda.amp.autocast if on else null\n",
     "import torch\nc = torch.cuda.amp.autocast if on else null\n", NOW),
    ("mixed precision of a torch without the new names",
     "import torch\ns = torch.cuda.amp.GradScaler()\n",
     "import torch\ns = torch.cuda.amp.GradScaler()\n", OLD),
    ("a scaled loss is divided inside",
     "for i, b in enumerate(d):\n    scaler.scale(loss).backward()\n    if (i + 1) % args.steps == 0 or i + 1 == len(d):\n        scaler.step(optimizer)\n        scaler.update()\n        optimizer.zero_grad()\n",
     "for i, b in enumerate(d):\n    scaler.scale(loss / args.steps).backward()\n    if (i + 1) % args.steps == 0 or i + 1 == len(d):\n        scaler.step(optimizer)\n        scaler.update()\n        optimizer.zero_grad()\n", NOW),
    ("a sum of losses gets brackets",
     "for i, b in enumerate(d):\n    (a + b).backward()\n    if i % 4 == 0:\n        optimizer.step()\n        optimizer.zero_grad()\n",
     "for i, b in enumerate(d):\n    ((a + b) / 4).backward()\n    if i % 4 == 0:\n        optimizer.step()\n        optimizer.zero_grad()\n", NOW),
    ("a total that is used as a tensor stays one",
     "for b in d:\n    loss = f(b)\n    loss.backward()\n    total += loss\nprint(total.item())\n",
     "for b in d:\n    loss = f(b)\n    loss.backward()\n    total += loss.detach()\nprint(total.item())\n", NOW),
    ("two optimizers: whose gradients are clipped cannot be told",
     "for b in d:\n    scaler.scale(f(b)).backward()\n    clip_grad_norm_(m.parameters(), 1.0)\n    scaler.step(o)\n    scaler.step(p)\n    scaler.update()\n    o.zero_grad()\n",
     "for b in d:\n    scaler.scale(f(b)).backward()\n    clip_grad_norm_(m.parameters(), 1.0)\n    scaler.step(o)\n    scaler.step(p)\n    scaler.update()\n    o.zero_grad()\n", NOW),
    ("the comment above the clipping stays there",
     "for b in d:\n    scaler.scale(f(b)).backward()\n    # 裁剪\n    clip_grad_norm_(m.parameters(), 1.0)\n    scaler.step(o)\n    scaler.update()\n    o.zero_grad()\n",
     "for b in d:\n    scaler.scale(f(b)).backward()\n    scaler.unscale_(o)\n    # 裁剪\n    clip_grad_norm_(m.parameters(), 1.0)\n    scaler.step(o)\n    scaler.update()\n    o.zero_grad()\n", NOW),
    ("a vocabulary read in binary is left alone",
     "def vocab(p):\n    with open(p, 'rb') as f:\n        return f.read().splitlines()\n",
     "def vocab(p):\n    with open(p, 'rb') as f:\n        return f.read().splitlines()\n", NOW),
    ("a vocabulary read in a with block",
     "def vocab(p):\n    with open(p, encoding='utf-8') as f:\n        return f.read().splitlines()\n",
     "def vocab(p):\n    with open(p, encoding='utf-8') as f:\n        return [line.rstrip('\\n') for line in f]\n", NOW),
    ("devices that are only known later stay where they are",
     "import torch\nimport os\nos.environ['CUDA_VISIBLE_DEVICES'] = args.gpu\n",
     "import torch\nimport os\nos.environ['CUDA_VISIBLE_DEVICES'] = args.gpu\n", {}),
    ("devices moved with their comment",
     "# 训练\nimport os\nimport torch\n\n# 用第二张卡\nos.environ['CUDA_VISIBLE_DEVICES'] = '1'\nx = 1\n",
     "# 训练\nimport os\n# 用第二张卡\nos.environ['CUDA_VISIBLE_DEVICES'] = '1'\nimport torch\nx = 1\n", {}),
    ("a method with keyword-only arguments gets one more",
     "from transformers import Trainer\nclass T(Trainer):\n    def compute_loss(self, model, inputs, *, return_outputs=False):\n        pass\n",
     "from transformers import Trainer\nclass T(Trainer):\n    def compute_loss(self, model, inputs, *, return_outputs=False, num_items_in_batch=None):\n        pass\n", NOW),
    ("Windows line ends stay",
     "from transformers import AdamW\r\nx = 1\r\n", "from torch.optim import AdamW\r\nx = 1\r\n", NOW),
    ("a silenced finding is not rewritten",
     "from transformers import AdamW  # doctor: ignore\n", "from transformers import AdamW  # doctor: ignore\n", NOW),
]  # fmt: skip


@pytest.mark.parametrize(
    ("before", "after", "versions"), [row[1:] for row in FORMS], ids=[row[0] for row in FORMS]
)
def test_layout_and_comments_stay(before: str, after: str, versions: dict[str, str]) -> None:
    assert safely(before, versions) == after
    assert safely(after, versions) == after


def test_a_bias_that_was_not_corrected_is_asked_for() -> None:
    source = "from transformers import AdamW\no = AdamW(p, lr=1e-5, correct_bias=False)\n"
    assert safely(source, NOW) == source
    assert "correct_bias" not in wholly(source, NOW)


def test_one_that_was_refused_is_not_offered_again_and_the_others_are() -> None:
    source = "import torch\na = torch.load(p)\na.eval()\nb = torch.load(q)\nb.eval()\n"
    asked: list[int] = []
    found = rewrite_source(source, lambda one: asked.append(one.line) or len(asked) == 2, NOW)  # type: ignore[func-returns-value]
    assert asked == [2, 4]
    assert found.source == source.replace("load(q)", "load(q, weights_only=False)")
    assert len(found.left) == 1


@pytest.mark.parametrize(
    "source", ["def f(:\n", "x = \x00\n", "%pip install x\nfrom transformers import AdamW\n"]
)
def test_what_cannot_be_read_is_said_and_not_rewritten(source: str) -> None:
    with pytest.raises(NotRewritable):
        rewrite_source(source, lambda one: True, NOW)


# ------------------------------------------------------------------------------------------ the command
SCRIPT = "import torch\nfrom transformers import AdamW  # 优化器\nm = torch.load('x')\nm.eval()\n"
FIXED = "import torch\nfrom torch.optim import AdamW  # 优化器\nm = torch.load('x')\nm.eval()\n"


@pytest.fixture
def facts(tmp_path: Path) -> Path:
    from doctor.machine import encode_snapshot
    from doctor.model import Distribution, Facts, Packages, Snapshot, ok

    items = tuple(Distribution(name=name, version=version) for name, version in NOW.items())
    path = tmp_path / "facts.json"
    path.write_bytes(encode_snapshot(Snapshot(facts=Facts(packages=ok(Packages(items=items))))))
    return path


def doctor(tmp_path: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "DOCTOR_STATE_DIR": str(tmp_path / "state"), "LC_ALL": "C.UTF-8"}  # fmt: skip
    return subprocess.run(
        [sys.executable, "-m", "doctor", *words], env=environment, cwd=tmp_path, stdin=subprocess.DEVNULL,
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip


def test_the_patch_is_all_of_stdout_and_writes_nothing(tmp_path: Path, facts: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    shown = doctor(tmp_path, "lint", "--facts", str(facts), "--diff", "train.py")
    assert (shown.returncode, script.read_text()) == (1, SCRIPT)
    (tmp_path / "it.patch").write_text(shown.stdout)
    subprocess.run(["patch", "-p0", "-i", "it.patch"], cwd=tmp_path, check=True, capture_output=True)
    assert script.read_text() == FIXED


def test_without_an_answer_nothing_is_written(tmp_path: Path, facts: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    shown = doctor(tmp_path, "lint", "--facts", str(facts), "--fix", "train.py")
    assert script.read_text() == SCRIPT
    assert "Nothing was changed" in shown.stderr
    assert not (tmp_path / "state").exists()


def test_yes_makes_the_safe_ones_and_undo_brings_every_byte_back(tmp_path: Path, facts: Path) -> None:
    script = tmp_path / "train.py"
    raw = ("\ufeff" + SCRIPT).encode()
    script.write_bytes(raw)
    script.chmod(0o755)
    doctor(tmp_path, "lint", "--facts", str(facts), "--fix", "--yes", "train.py")
    assert script.read_bytes() == ("\ufeff" + FIXED).encode()
    again = doctor(tmp_path, "lint", "--facts", str(facts), "--fix", "--yes", "train.py")
    assert "nothing to rewrite" in again.stdout
    assert doctor(tmp_path, "undo", "1", "--yes").returncode == 0
    assert (script.read_bytes(), script.stat().st_mode & 0o777) == (raw, 0o755)


def test_unsafe_ones_are_made_when_they_are_named(tmp_path: Path, facts: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    done = doctor(tmp_path, "lint", "--facts", str(facts), "--fix", "--yes", "--unsafe", "train.py")
    assert done.returncode == 0
    assert "weights_only=False" in script.read_text()


def test_what_is_not_utf8_and_notebooks_are_judged_only(tmp_path: Path, facts: Path) -> None:
    gbk = tmp_path / "gbk.py"
    gbk.write_bytes(("# coding: gbk\n" + SCRIPT).encode("gbk"))
    notebook = tmp_path / "a.ipynb"
    notebook.write_text('{"cells": [{"cell_type": "code", "source": ["from transformers import AdamW"]}]}')
    before = gbk.read_bytes(), notebook.read_bytes()
    said = doctor(tmp_path, "lint", "--facts", str(facts), "--fix", "--yes", "gbk.py", "a.ipynb")
    assert (gbk.read_bytes(), notebook.read_bytes()) == before
    assert "not UTF-8" in said.stderr
    assert "notebook" in said.stderr


def test_yes_alone_is_a_slip(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    assert doctor(tmp_path, "lint", "--yes", "train.py").returncode == 2


def test_the_hooks_of_pre_commit_are_commands_that_we_have(tmp_path: Path, facts: Path) -> None:
    hooks = (Path(__file__).parents[2] / ".pre-commit-hooks.yaml").read_text()
    entries = [
        line.partition(": ")[2].split() for line in hooks.splitlines() if line.strip().startswith("entry:")
    ]
    assert [entry[0] for entry in entries] == ["doctor", "doctor"]
    (tmp_path / "train.py").write_text(FIXED.replace("torch.load", "str"))
    for entry in entries:
        assert doctor(tmp_path, *entry[1:], "--facts", str(facts), "train.py").returncode == 0


@pytest.mark.parametrize(
    ("answers", "after"),
    [
        ("n\nn\n", SCRIPT),
        ("y\nn\n", FIXED),
        ("n\ny\n", SCRIPT.replace("load('x')", "load('x', weights_only=False)")),
    ],
    ids=["no, no", "the safe ones", "only the one that is asked for by itself"],
)
def test_in_a_terminal_each_unsafe_rewrite_is_asked_for_by_itself(
    tmp_path: Path, facts: Path, answers: str, after: str
) -> None:
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    ours, theirs = os.openpty()
    environment = {**os.environ, "DOCTOR_STATE_DIR": str(tmp_path / "state"), "LC_ALL": "C.UTF-8"}
    command = [
        sys.executable,
        "-m",
        "doctor",
        "--lang",
        "en",
        "lint",
        "--facts",
        str(facts),
        "--fix",
        "train.py",
    ]
    with subprocess.Popen(command, cwd=tmp_path, env=environment, stdin=theirs, stdout=theirs) as process:
        os.close(theirs)
        os.write(ours, answers.encode())
        shown = b""
        while True:
            try:
                shown += os.read(ours, 4096)
            except OSError:  # the other end is closed: it is through
                break
        process.wait(timeout=60)
    os.close(ours)
    assert script.read_text() == after
    assert b"may not be what you want" in shown
