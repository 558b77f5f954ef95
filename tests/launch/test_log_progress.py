"""The lines of other people's training logs folded into steps: bars, epochs, means, results, and what is none of them."""

from __future__ import annotations

from itertools import count

import pytest

from doctor.log_progress import LogProgress, Progress


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
