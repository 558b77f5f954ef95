"""The run screen: the same code live and replayed; nothing that cannot be read is passed over in silence."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from doctor.render.layout import display_width
from runner.rundir import RunDir
from runner.state import RunState
from tests.tui.driving import NARROW, WIDE, click_word, driven, keys_shown, press, screen_text, sees, settled
from tests.tui.recorded import (
    FRAMES,
    ONE_4090,
    Clock,
    RecordedSource,
    RecordedWatcher,
    RunBuilder,
    whole_run,
)

NAME = "quickstart-20261130-061500"
BRAILLE = {chr(code) for code in range(0x2801, 0x2900)}


@pytest.fixture
def finished(tmp_path: Path) -> RecordedSource:
    run = whole_run(tmp_path / NAME)
    return RecordedSource(runs=[run.run.path], clock=Clock(run.clock.now + 1e6))


def live(run: RunBuilder) -> RecordedSource:
    source = RecordedSource(runs=[run.run.path], clock=run.clock)
    source.is_alive = True
    return source


async def test_a_finished_run_replays_at_a_glance_on_a_wide_screen(finished: RecordedSource) -> None:
    async with driven(finished, WIDE, run=NAME) as pilot:
        text = await sees(pilot, "completed", "step 100/100")
        for words in ("loss", "learning rate", "tokens/s", "padding 25%", "accuracy 0.96", "GPU and host"):
            assert words in text
        assert "? could not be read: this machine has no NVIDIA driver" in text
        assert "__getitem__" in text
        assert "worker 4250" in text
        assert "evaluation at step 50" in text
        assert "the loader waited 31 % of the time" in text
        assert BRAILLE & set(text)


async def test_a_narrow_screen_has_the_same_in_four_tabs(finished: RecordedSource) -> None:
    async with driven(finished, NARROW, run=NAME) as pilot:
        curves = await sees(pilot, "completed", "smoothed")
        assert "__getitem__" not in curves
        assert "Where the time goes" in await press(pilot, "tab")
        assert "no NVIDIA driver" in await press(pilot, "pagedown")  # a run on the CPU: the card comes last
        assert "__getitem__" in await press(pilot, "tab")
        assert "evaluation at step 50" in await press(pilot, "tab")
        assert "smoothed" in await press(pilot, "tab")


async def test_a_tab_opens_by_click(finished: RecordedSource) -> None:
    async with driven(finished, NARROW, run=NAME) as pilot:
        await sees(pilot, "completed")
        assert "__getitem__" in await click_word(pilot, "Stacks")


async def test_what_a_live_run_writes_appears_without_a_key(tmp_path: Path) -> None:
    run = RunBuilder(tmp_path / "live").start(steps_total=20).steps(5)
    async with driven(live(run), WIDE, run="live") as pilot:
        await sees(pilot, "running", "step 5/20")
        run.steps(5, first=6).note("warn", "disk nearly full")
        await sees(pilot, "step 10/20", "disk nearly full")
        run.steps(10, first=11).finish(metrics={"accuracy": 0.91})
        await sees(pilot, "completed", "step 20/20")


async def test_a_run_that_has_just_begun_says_so(tmp_path: Path) -> None:
    run = RunBuilder(tmp_path / "new")
    async with driven(live(run), run="new") as pilot:
        text = await sees(pilot, "starting", "no events yet: the run has just begun")
        assert "no loss yet" in text


async def test_a_run_that_takes_long_to_read_shows_how_far_it_is(tmp_path: Path) -> None:
    gate = threading.Event()

    class Slow(RecordedWatcher):
        def poll(self) -> RunState:
            state = super().poll()
            assert gate.wait(30)
            return state

    class SlowSource(RecordedSource):
        def watch(self, name: str) -> Slow:
            return Slow(self, RunDir(self.run_paths[name]))

    run = RunBuilder(tmp_path / "long").start().steps(40)
    async with driven(SlowSource(runs=[run.run.path], clock=run.clock), run="long") as pilot:
        await sees(pilot, "reading the run: step 40")
        gate.set()
        await sees(pilot, "step 40/100", "smoothed")


async def test_a_run_whose_process_is_gone_is_neither_running_nor_completed(tmp_path: Path) -> None:
    run = RunBuilder(tmp_path / "gone").start().steps(3)
    run.run.trainer_log.write_text("Epoch 1\nKilled\n", "utf-8")
    source = live(run)
    source.is_alive = False
    async with driven(source, WIDE, run="gone") as pilot:
        text = await sees(pilot, "process gone", "left no word", "Killed")
        assert "running" not in text


async def test_a_silent_run_is_called_stalled(tmp_path: Path) -> None:
    run = RunBuilder(tmp_path / "quiet").start().steps(3)
    run.clock.now += 600
    async with driven(live(run), run="quiet") as pilot:
        await sees(pilot, "stalled", "nothing written for 10 m")


async def test_losses_that_are_not_finite_are_marked_and_counted(tmp_path: Path) -> None:
    def loss(step: int) -> float:
        return float("nan") if step in (5, 6) else float("inf") if step == 7 else 1.0 / step

    run = RunBuilder(tmp_path / "nan").start().steps(12, loss=loss)
    async with driven(live(run), run="nan") as pilot:
        text = await sees(pilot, "3 losses were not finite", "× not finite")
        assert "×" in text.split("not finite", 2)[-1]


async def test_a_run_of_nothing_but_nan_is_drawn_without_a_curve(tmp_path: Path) -> None:
    run = RunBuilder(tmp_path / "allnan").start().steps(4, loss=lambda step: float("nan"))
    async with driven(live(run), run="allnan") as pilot:
        await sees(pilot, "4 losses were not finite", "no loss yet")


async def test_gpus_show_their_numbers_decoded_and_what_they_hide(tmp_path: Path) -> None:
    run = RunBuilder(tmp_path / "gpu").start(device="cuda:0").steps(3).gpu(**ONE_4090).host()
    async with driven(live(run), WIDE, run="gpu") as pilot:
        text = await sees(pilot, "NVIDIA GeForce RTX 4090")
    for words in ("97 %", "20.0 GB / 24.0 GB", "71 °C · 401 W / 450 W · 2520 MHz", "sw-thermal"):
        assert words in text
    assert "? PCIe could not be read: Not Supported" in text


async def test_eight_cards_take_eight_rows_with_the_lost_one_named(tmp_path: Path) -> None:
    card = ONE_4090["gpus"][0]
    cards = [{**card, "index": n, "utilization_pct": 90.0 + n, "throttle_reasons": []} for n in range(7)]
    cards.append({"index": 7, "name": "NVIDIA GeForce RTX 4090", "error": "GPU is lost"})
    run = RunBuilder(tmp_path / "eight").start().steps(3).gpu(gpus=cards).host()
    async with driven(live(run), NARROW, run="eight") as pilot:
        await sees(pilot, "running")
        await press(pilot, "tab")
        text = await sees(pilot, "GPU is lost")
    for n in range(7):
        assert f"{n}  {90 + n} %  20.0 GB / 24.0 GB  71 °C" in text
    assert "7   ?    ? / ?" in text


async def test_a_long_error_is_wrapped_under_the_numbers(tmp_path: Path) -> None:
    error = "OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. " * 2 + "the end"
    run = RunBuilder(tmp_path / "oom").start().steps(3).finish("failed", error=error)
    async with driven(live(run), NARROW, run="oom") as pilot:
        await sees(pilot, "✗ OutOfMemoryError", "the end")


async def test_ctrl_c_leaves_and_touches_no_run(tmp_path: Path) -> None:
    source = live(RunBuilder(tmp_path / "busy").start().steps(3))
    async with driven(source, run="busy") as pilot:
        await sees(pilot, "running")
        await pilot.press("ctrl+c")
    assert source.stopped == []
    assert pilot.app.return_code == 0


async def test_stacks_that_cannot_be_read_say_why(tmp_path: Path) -> None:
    why = {"msgid": "py-spy may not read process {pid}", "params": {"pid": 42}}
    run = RunBuilder(tmp_path / "ptrace").start().steps(3).stacks(samples=0, errors=0, frames=[], why=why)
    async with driven(live(run), WIDE, run="ptrace") as pilot:
        await sees(pilot, "stacks could not be read: py-spy may not read process 42")


async def test_hostile_names_in_events_are_text(tmp_path: Path) -> None:
    evil = "\x1b]0;owned\x07[red]x[/red]"
    frames = [{**FRAMES[0], "function": evil, "file": evil}]
    run = RunBuilder(tmp_path / "[bold]evil").start(model=evil, hostname=evil).steps(3)
    run.stacks(samples=1, errors=0, frames=frames).note("warn", evil).gpu(why=evil)
    async with driven(live(run), WIDE, run="[bold]evil") as pilot:
        text = await sees(pilot, "[bold]evil", "\\x1b]0;owned\\x07[red]x[/red]")
        assert "\x1b" not in text
        assert "\x07" not in text


async def test_stop_asks_first_and_only_yes_is_yes(tmp_path: Path) -> None:
    source = live(RunBuilder(tmp_path / "busy").start().steps(3))
    async with driven(source, run="busy") as pilot:
        await sees(pilot, "running")
        await press(pilot, "s")
        await sees(pilot, "Stop busy?", "y Stop the run")
        await press(pilot, "enter")
        await press(pilot, "escape")
        assert source.stopped == []
        await press(pilot, "s")
        await press(pilot, "y")
        await sees(pilot, "asked to stop")
        assert source.stopped == ["busy"]


async def test_a_stop_that_is_refused_says_why(tmp_path: Path) -> None:
    source = live(RunBuilder(tmp_path / "busy").start().steps(3))
    async with driven(source, run="busy") as pilot:
        await sees(pilot, "running")
        source.failure = PermissionError(1, "Operation not permitted")
        await press(pilot, "p", "s", "y")
        await sees(pilot, "it could not be stopped", "Operation not permitted")


async def test_readonly_has_no_stop_key(tmp_path: Path) -> None:
    source = live(RunBuilder(tmp_path / "busy").start().steps(3))
    async with driven(source, run="busy", is_readonly=True) as pilot:
        await sees(pilot, "running")
        assert "s Stop" not in keys_shown(pilot)
        await press(pilot, "s")
        assert "Stop busy?" not in screen_text(pilot)


async def test_a_run_that_is_over_cannot_be_stopped(finished: RecordedSource) -> None:
    async with driven(finished, run=NAME) as pilot:
        await sees(pilot, "completed")
        await settled(pilot)
        assert "s Stop" not in keys_shown(pilot)


async def test_a_stopped_run_is_resumed_after_a_question(tmp_path: Path) -> None:
    run = RunBuilder(tmp_path / "half").start().steps(3).finish("stopped")
    source = RecordedSource(runs=[run.run.path], clock=run.clock)
    async with driven(source, run="half") as pilot:
        await sees(pilot, "stopped", "r Resume")
        await press(pilot, "r", "n")
        assert source.resumed == []
        await press(pilot, "r", "y")
        await sees(pilot, "it loads its checkpoint and goes on")
        assert source.resumed == ["half"]
        source.is_alive = True
        run.start(resumed_from_step=3).steps(2, first=4)
        text = await sees(pilot, "running", "step 5/100", "s Stop")
        assert "r Resume" not in text


async def test_a_completed_run_cannot_be_resumed_nor_can_any_in_readonly(tmp_path: Path) -> None:
    done = whole_run(tmp_path / "done")
    half = RunBuilder(tmp_path / "half").start().steps(3).finish("stopped")
    source = RecordedSource(runs=[done.run.path, half.run.path], clock=done.clock)
    async with driven(source, run="done") as pilot:
        await sees(pilot, "completed")
        assert "r Resume" not in keys_shown(pilot)
    async with driven(source, run="half", is_readonly=True) as pilot:
        await sees(pilot, "stopped")
        assert "r Resume" not in keys_shown(pilot)


async def test_epochs_are_counted_from_one(tmp_path: Path) -> None:
    run = RunBuilder(tmp_path / "e").start(epochs=3)
    run.trainer.write("step", 1, loss=1.0, epoch=1, samples=1, seconds=1.0)
    async with driven(live(run), run="e") as pilot:
        await sees(pilot, "epoch 2/3")


async def test_quitting_touches_no_run(tmp_path: Path) -> None:
    source = live(RunBuilder(tmp_path / "busy").start().steps(3))
    async with driven(source, run="busy") as pilot:
        await sees(pilot, "running")
        await pilot.press("q")
    assert source.stopped == []
    assert pilot.app.return_code == 0


async def test_pause_holds_the_view_while_the_run_goes_on(tmp_path: Path) -> None:
    run = RunBuilder(tmp_path / "p").start(steps_total=20).steps(5)
    async with driven(live(run), run="p") as pilot:
        await sees(pilot, "step 5/20")
        await press(pilot, "p")
        run.steps(5, first=6)
        await pilot.pause(1.3)
        assert "step 5/20" in await sees(pilot, "view paused; the run goes on")
        await press(pilot, "p")
        await sees(pilot, "step 10/20")


async def test_g_draws_the_loss_on_a_logarithmic_scale(finished: RecordedSource) -> None:
    async with driven(finished, run=NAME) as pilot:
        await sees(pilot, "completed", "smoothed")
        assert "log scale" not in screen_text(pilot)
        assert "log scale" in await press(pilot, "g")


async def test_a_run_that_is_not_there_is_named(finished: RecordedSource) -> None:
    async with driven(finished, run="nowhere") as pilot:
        await sees(pilot, "nowhere: no run there (no plan.json)")


async def test_a_disk_that_fails_for_a_while_is_said_and_forgotten(tmp_path: Path) -> None:
    source = live(RunBuilder(tmp_path / "nfs").start().steps(3))
    async with driven(source, run="nfs") as pilot:
        await sees(pilot, "running")
        source.failure = OSError(5, "Input/output error", "events/trainer-0.jsonl")
        text = await sees(pilot, "Input/output error")
        assert "step 3/100" in text  # what was known stays on the screen
        source.failure = None
        for _ in range(200):
            if "Input/output error" not in screen_text(pilot):
                break
            await pilot.pause(0.02)
        assert "Input/output error" not in screen_text(pilot)


async def test_escape_goes_back_to_the_list_and_the_language_came_along(
    finished: RecordedSource, chinese: None
) -> None:
    async with driven(finished, run=NAME) as pilot:
        await sees(pilot, "曲线", "学习率")
        await press(pilot, "l")
        await sees(pilot, "Curves", "learning rate")
        await press(pilot, "escape")
        await sees(pilot, "runs: 1, newest first", NAME)


async def test_chinese_labels_keep_the_columns_of_the_panel_and_of_the_two_charts(
    finished: RecordedSource, chinese: None
) -> None:
    async with driven(finished, NARROW, run=NAME) as pilot:
        rows = (await sees(pilot, "学习率", "token/秒")).splitlines()
        small = next(row for row in rows if row.startswith("学习率"))
        axis = next(row for row in rows if row.count("┤") == 3)
        begins = [display_width(small[: small.index(name)]) for name in ("梯度范数", "token/秒")]
        assert begins == [27, 54]
        edges = [display_width(part) for part in axis.split("┤")[:2]]
        assert edges[0] == 8
        assert display_width(axis[: axis.rindex("┤")]) == begins[1] + 8
        await press(pilot, "tab")
        panel = (await sees(pilot, "主机内存", "常驻内存")).splitlines()
        values = [row for row in panel if row.startswith(("常驻内存", "主机内存", "CPU"))]
        assert len(values) == 3
        assert {display_width(row[: -len(row[4:].lstrip())]) for row in values} == {14}


async def test_a_resize_moves_between_tabs_and_the_whole(finished: RecordedSource) -> None:
    async with driven(finished, NARROW, run=NAME) as pilot:
        await sees(pilot, "completed", "smoothed")
        await pilot.resize_terminal(*WIDE)
        await sees(pilot, "__getitem__", "evaluation at step 50", "smoothed")
        await pilot.resize_terminal(*NARROW)
        await sees(pilot, "[Curves]")
        await pilot.resize_terminal(40, 12)
        await sees(pilot, "loss")
