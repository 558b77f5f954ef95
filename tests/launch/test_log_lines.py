"""What the lines of other people's training logs say, and that everything else says nothing."""

from __future__ import annotations

import math
from itertools import count

import pytest

from doctor.log_lines import Said, read_line
from doctor.log_progress import LogProgress, Progress


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


def told(log: str) -> list[Progress]:
    """Return what a whole log tells, with a clock that moves two seconds a look."""
    ticks = count(0, 2)
    progress = LogProgress(lambda: float(next(ticks)))
    content = log.encode()
    pieces = [content[index : index + 7] for index in range(0, len(content), 7)]
    return [event for piece in pieces for event in progress.feed(piece)] + list(progress.end())


def places(log: str) -> list[tuple[str, int, float | None]]:
    return [(event.kind, event.step, event.data.get("loss")) for event in told(log)]


def test_trainers_dictionaries_stand_at_the_step_of_its_bar() -> None:
    log = (
        "Loading weights: 100%|██████████| 199/199 [00:00<00:00, 900.00it/s]\n"
        "\r  0%|          | 0/40 [00:00<?, ?it/s]\r 20%|██        | 8/40 [00:01<00:04,  8.00it/s]"
        "\r                                        \r{'loss': 0.7, 'learning_rate': 1e-05, 'epoch': 0.25}\n"
        "\r 25%|██▌       | 10/40 [00:01<00:03,  8.00it/s]"
        "\r                                        \r{'loss': 0.5, 'epoch': 0.5}\n"
        "\r 50%|█████     | 20/40 [00:02<00:02,  8.00it/s]\n"
        "\r  0%|          | 0/13 [00:00<?, ?it/s]\r 77%|███████▋  | 10/13 [00:00<00:00, 90.00it/s]"
        "\r{'eval_loss': 0.4, 'eval_accuracy': 0.9, 'eval_runtime': 0.2, 'epoch': 0.5}\n"
    )
    assert places(log) == [("step", 10, 0.7), ("step", 20, 0.5), ("evaluation", 20, 0.4)]
    assert told(log)[0].data["steps_total"] == 40


def test_an_evaluations_bar_is_no_training() -> None:
    log = "\rEvaluating:  50%|█████     | 5/10 [00:01<00:01,  5.00it/s]\rMap: 100%|██| 9/9 [00:01<00:00, 900.00 examples/s]\n"
    assert told(log) == []


def test_bars_and_places_of_an_epoch_go_on_counting_in_the_next() -> None:
    bars = "".join(
        f"\rEpoch {epoch}/2: 50%|█████| {done}/10 [00:0{done}<00:01,  5.00it/s, loss=0.{done}]"
        for epoch in (1, 2)
        for done in (5, 10)
    )
    assert places(bars) == [("step", 5, 0.5), ("step", 10, 0.1), ("step", 15, 0.5), ("step", 20, 0.1)]
    assert {event.data["steps_total"] for event in told(bars)} == {20}
    lines = "".join(
        f"Epoch [{epoch}/2], Step [{done}/600], Loss: 0.5\n" for epoch in (1, 2) for done in (300, 600)
    )
    assert [step for _, step, _ in places(lines)] == [300, 600, 900, 1200]


def test_a_place_over_the_whole_training_tells_how_many_steps_there_are() -> None:
    assert told("iteration 100/ 500 | lm loss: 7.0 |\n")[0].data["steps_total"] == 500
    assert "steps_total" not in told("Epoch [1/2], Step [300/600], Loss: 0.5\n")[0].data


def test_an_epochs_bar_without_their_number_promises_no_total() -> None:
    bars = "".join(
        f"\rEpoch {epoch}: 50%|█| {done}/10 [00:01<00:01,  5.00it/s, loss=0.5]"
        for epoch in (0, 1)
        for done in (5, 10)
    )
    assert [event.data["steps_total"] for event in told(bars)] == [None] * 4


def test_ranks_that_all_print_are_counted_once() -> None:
    log = "step=10 loss=0.5\nstep=10 loss=0.6\nstep=11 loss=0.4\nstep=10 loss=0.7\n"
    assert places(log) == [("step", 10, 0.5), ("step", 11, 0.4)]


def test_lines_that_name_no_step_are_numbered() -> None:
    assert places("{'loss': 0.5, 'epoch': 0.1}\n{'loss': 0.4, 'epoch': 0.2}\n") == [
        ("step", 1, 0.5),
        ("step", 2, 0.4),
    ]


def test_a_line_without_its_end_waits_for_it() -> None:
    progress = LogProgress(lambda: 0.0)
    assert list(progress.feed(b"step=1 loss=0.")) == []
    assert [event.data["loss"] for event in progress.feed(b"25\n")] == [0.25]
    assert list(progress.feed(b"step=2 loss=0.125")) == []
    assert [event.step for event in progress.end()] == [2]


def test_an_epochs_mean_is_no_step_where_each_step_told_its_loss() -> None:
    """It stood at step 1 again, or twice at the epoch's last step, as a jump in the curve."""
    lines = "".join(
        f"epoch {epoch} step {(epoch - 1) * 40 + done}: loss 0.{done}\n" * (done > 0) for epoch in (1, 2) for done in (20, 40)
    ).replace("epoch 2 step 60", "Epoch 1/3: train_loss=0.9 val_loss=0.8 val_acc=0.7\nepoch 2 step 60")  # fmt: skip
    assert places(lines) == [
        ("step", 20, 0.20), ("step", 40, 0.40), ("evaluation", 40, 0.8), ("step", 60, 0.20), ("step", 80, 0.40),
    ]  # fmt: skip
    bar = "\rEpoch 1/2: 100%|█████| 10/10 [00:05<00:00,  5.00it/s, loss=0.5]\nEpoch 1/2: train_loss=0.9 val_loss=0.8\n"
    assert places(bar) == [("step", 10, 0.5), ("evaluation", 10, 0.8)]


@pytest.mark.parametrize(
    ("log", "expected"),
    [
        pytest.param(
            "epoch 1 step 50: loss 0.5\nEpoch 1/3: train_loss=0.6 val_loss=0.7\nepoch 2 step 60: loss 0.4\n", 150,
            id="the end of one of three epochs",
        ),
        pytest.param(
            "Epoch [1/3], Step [50/100], Loss: 0.5\nEpoch [2/3], Step [50/100], Loss: 0.4\n", 300,
            id="places that begin anew in each epoch",
        ),
        pytest.param(
            "Epoch [1/3], Step [50/300], Loss: 0.5\nEpoch [2/3], Step [150/300], Loss: 0.4\n", 300,
            id="places that go on counting",
        ),
        pytest.param("Epoch [1/3], Step [50/100], Loss: 0.5\n", None, id="not yet known which of the two"),
    ],
)  # fmt: skip
def test_how_many_steps_there_will_be_is_said_once_it_shows(log: str, expected: int | None) -> None:
    assert [event for event in told(log) if event.kind == "step"][-1].data.get("steps_total") == expected


def test_a_result_before_the_first_step_is_none_of_this_training() -> None:
    assert places("val_loss: 0.0\nstep=5 loss=0.5\nval_loss: 0.4\n") == [
        ("step", 5, 0.5),
        ("evaluation", 5, 0.4),
    ]
