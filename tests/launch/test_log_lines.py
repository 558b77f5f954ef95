"""What the lines of other people's training logs say, and that everything else says nothing."""

from __future__ import annotations

import math

import pytest

from doctor.log_lines import Said, read_line


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        pytest.param(
            "{'loss': 0.6931, 'grad_norm': 1.25, 'learning_rate': 5e-05, 'epoch': 0.1}",
            Said(epoch=0.1, values={"loss": 0.6931, "grad_norm": 1.25, "lr": 5e-05}),
            id="Trainer, transformers 4",
        ),
        pytest.param(
            "{'loss': '0.6931', 'grad_norm': '1.25', 'learning_rate': '5e-05', 'epoch': '0.1'}",
            Said(epoch=0.1, values={"loss": 0.6931, "grad_norm": 1.25, "lr": 5e-05}),
            id="Trainer, transformers 5: numbers as strings",
        ),
        pytest.param(
            "{'eval_loss': 0.5, 'eval_accuracy': 0.8, 'eval_runtime': 2.1045, 'eval_samples_per_second': 90.283, 'epoch': 1.0}",
            Said(epoch=1.0, evaluation={"loss": 0.5, "accuracy": 0.8, "samples": 190}),
            id="Trainer's evaluation, its times left out and its rows counted",
        ),
        pytest.param(
            "step=100 loss=0.5321 lr=1.0e-04",
            Said(done=100, values={"loss": 0.5321, "lr": 1e-4}),
            id="key=value",
        ),
        pytest.param(
            "2026-11-30 07:00:01,123 INFO train: global_step=12, loss=2.5, gnorm=0.9",
            Said(done=12, values={"loss": 2.5, "grad_norm": 0.9}),
            id="key=value behind a logger's prefix",
        ),
        pytest.param(
            "iter 100: loss 4.2103, time 120.32ms",
            Said(done=100, values={"loss": 4.2103}),
            id="nanoGPT's step",
        ),
        pytest.param(
            "step 250: train loss 2.1, val loss 2.3",
            Said(done=250, values={"loss": 2.1}, evaluation={"loss": 2.3}),
            id="nanoGPT's evaluation",
        ),
        pytest.param(
            "Epoch [1/10], Step [100/600], Loss: 0.2345",
            Said(done=100, total=600, epoch=1, epochs=10, values={"loss": 0.2345}),
            id="the PyTorch tutorials'",
        ),
        pytest.param(
            "Train Epoch: 1 [6400/60000 (11%)]\tLoss: 0.523456",
            Said(epoch=1, values={"loss": 0.523456}),
            id="the MNIST example",
        ),
        pytest.param(
            "Epoch 3/10, train_loss: 0.5, val_loss: 0.6, val_acc: 0.8",
            Said(epoch=3, epochs=10, values={"loss": 0.5}, evaluation={"loss": 0.6, "accuracy": 0.8}),
            id="one line an epoch",
        ),
        pytest.param(
            " iteration      100/  500000 | consumed samples:  25600 | elapsed time per iteration (ms): 812.3 | "
            "learning rate: 1.500E-04 | lm loss: 7.43E+00 | grad norm: 1.25 |",
            Said(done=100, total=500000, values={"lr": 1.5e-4, "loss": 7.43, "grad_norm": 1.25}),
            id="Megatron's",
        ),
        pytest.param(
            "1|10|Loss: 0.52:  10%|█         | 10/100 [00:10<01:30,  1.00it/s]",
            Said(done=10, total=100, is_bar=True, title="1|10|Loss: 0.52", values={"loss": 0.52}),
            id="a loss before the bar, as torchtune draws it",
        ),
        pytest.param(
            '{"step": 10, "train/loss": 0.25, "lr": 0.001, "time": 3.2}',
            Said(done=10, values={"loss": 0.25, "lr": 0.001}),
            id="a JSON line",
        ),
        pytest.param(
            '{"step": 20, "eval/loss": 0.3, "eval/f1": 0.9}',
            Said(done=20, evaluation={"loss": 0.3, "f1": 0.9}),
            id="a JSON line of an evaluation",
        ),
        pytest.param(
            "2026-11-30 13:20:52,274 - INFO - train - Eval accuracy: 0.9812",
            Said(evaluation={"accuracy": 0.9812}),
            id="a result alone",
        ),
        pytest.param(
            "11/30/2026 07:00:01 - INFO - __main__ - epoch 0: {'accuracy': 0.8456, 'f1': 0.8912}",
            Said(epoch=0, evaluation={"accuracy": 0.8456, "f1": 0.8912}),
            id="accelerate's examples",
        ),
        pytest.param(
            "Test set: Average loss: 0.0512, Accuracy: 9825/10000 (98%)",
            Said(evaluation={"loss": 0.0512, "accuracy": 0.9825, "samples": 10000.0}),
            id="the MNIST example's result",
        ),
        pytest.param(
            "Epoch 2/5, Test Accuracy: 91.2%, Test Loss: 0.31",
            Said(epoch=2, epochs=5, evaluation={"accuracy": 0.912, "loss": 0.31}),
            id="a share in percent",
        ),
        pytest.param(
            "Epoch 1:  10%|█         | 50/500 [00:10<01:30,  5.01it/s, loss=0.693, v_num=0]",
            Said(done=50, total=500, is_bar=True, title="Epoch 1", values={"loss": 0.693}),
            id="a bar with a loss",
        ),
        pytest.param(
            "\x1b[A 20%|██        | 100/500 [00:20<01:20,  5.00s/it]",
            Said(done=100, total=500, is_bar=True),
            id="a bar behind a cursor movement",
        ),
    ],
)
def test_a_line_says(line: str, expected: Said) -> None:
    assert read_line(line) == expected


@pytest.mark.parametrize(
    "line",
    [
        "",
        "Loading the model from /data/step-100/loss",
        "{'train_runtime': 12.3, 'train_samples_per_second': 80.1, 'train_loss': 0.5, 'epoch': 3.0}",
        "lr=0.1 batch_size=32 epochs=3",
        "loss = CrossEntropyLoss()",
        "    loss = model(**batch).loss",
        "Some weights of BertForSequenceClassification were not initialized: ['classifier.weight']",
        "Namespace(lr=0.1, loss='mse', step=None)",
        '  File "train.py", line 10, in step',
        "ValueError: Expected input batch_size (16) to match target batch_size (8).",
        "loss 0.5",
        "eval_batch_size: 32",
        "epoch 1: {'lr': 0.1, 'batch': 32}",
        "Running test: 5 passed, accuracy of the clock 3",
        "Test: learning rate = 0.1",
        "Namespace(eval_loss=1, eval_steps=5)" + " x" * 100,
        "x" + " " * 3900 + "y",
        "step=1 loss=0.5" + " " * 5000,
        "GPU 0 has a total capacity of 23.65 GiB of which 1.19 GiB is free",
    ],
)
def test_a_line_that_is_no_progress_says_nothing(line: str) -> None:
    assert read_line(line) is None


def test_a_loss_that_is_no_number_is_read_as_such() -> None:
    said = read_line("{'loss': nan, 'grad_norm': inf, 'epoch': 0.1}")
    assert said is not None and math.isnan(said.values["loss"]) and said.values["grad_norm"] == math.inf
    said = read_line("step=3 loss=nan")
    assert said is not None and math.isnan(said.values["loss"])
