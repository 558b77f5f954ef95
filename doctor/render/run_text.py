"""A run as text: the one progress line of ``doctor run``, and the 80-column screen of ``doctor watch``."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from typing import Any

import msgspec

from doctor.language import say
from doctor.render.layout import display_width, human_bytes, human_seconds, indent, pad, paint
from doctor.render.memory_words import memory_label, memory_words
from doctor.render.on_finish_text import on_finish_lines
from doctor.render.preparing_text import preparing_text
from doctor.render.rank_text import attention_lines, together_line
from doctor.render.sparkline import bar, sparkline
from doctor.render.verdict_text import alert_lines, evidence_lines, verdict_line
from doctor.render.xid_text import xid_lines
from runner.events import RunEvent, number
from runner.state import Curve, RunState
from runner.strings import printable
from runner.text import Text, t
from runner.verdict import is_worth_saying, verdict_of

STANDS = ("hung", "still")
"""Verdicts whose evidence belongs on the screen: where it stands, and the file with the whole stack."""
STANDS_LINES = 4
_ROLES = {
    "completed": "good",
    "ended": "bold",
    "running": "bold",
    "stopped": "warn",
    "interrupted": "warn",
    "stalled": "warn",
}


def status_word(status: str) -> str:
    """Return a run's status as shown."""
    return {
        "starting": say("starting"),
        "running": say("running"),
        "stalled": say("stalled (the trainer is silent)"),
        "stopped": say("stopped"),
        "interrupted": say("stopped by hand"),
        "ended": say("process ended"),
        "completed": say("completed"),
        "failed": say("failed"),
        "non-finite": say("halted: the loss is not finite"),
        "unreadable": say("its events cannot be read"),
        "damaged": say("damaged: it cannot be read"),
        "lost": say("lost (the trainer is gone without a word)"),
    }.get(status, status)


def status_role(status: str) -> str:
    return _ROLES.get(status, "dim" if status == "starting" else "fail")


def words_of(value: Any) -> str:
    """Return a sentence from an event (a Text as ``{"msgid", "params"}``, or a plain string), safe to show."""
    if isinstance(value, dict):
        try:
            value = msgspec.convert(value, Text)
        except msgspec.ValidationError:
            return ""
    if isinstance(value, Text):
        value = say(value)
    return printable(str(value)).replace("\\\\", "\\") if value else ""


def figure(value: float | None, digits: int = 4) -> str:
    """Return a number in few characters: ``0.5321``, ``2.0e-05``, ``nan``; ``-`` when there is none."""
    if value is None:
        return "-"
    if not math.isfinite(value) or value == 0:
        return str(value) if value else "0"
    return f"{value:.{digits}g}" if 1e-3 <= abs(value) < 1e6 else f"{value:.1e}"


def cut(text: str, width: int) -> str:
    """Return ``text`` cut to ``width`` terminal columns."""
    if display_width(text) <= width:
        return text
    text = text[: 4 * width]  # however long it is: characters take a column each, marks above them none
    while text and display_width(text) > width - 1:
        text = text[:-1]
    return text + "…" if text and not text.isascii() else text + "~"


def progress_line(
    state: RunState, status: str, width: int = 100, unicode: bool = True, with_status: bool = True
) -> str:
    """Return where a run is, in one line: step, share, loss, speed, time left."""
    if status == "starting" and not state.step:
        return cut(preparing_text(state.preparing) or say("starting: loading model and data"), width)
    total = state.steps_total
    share = f" {100 * state.step / total:3.0f}% {bar(state.step / total, 10, unicode)}" if total else ""
    parts = [f"{say('step')} {state.step}{f'/{total}' if total else ''}{share}"]
    if with_status and status not in ("running", "starting"):
        parts.append(status_word(status))
    parts.append(f"{say('loss')} {figure(number(state.last.get('loss')))}")
    if (rate := _samples_per_s(state)) is not None:
        parts.append(say(t("{rate} samples/s", rate=figure(rate, 3))))
    elif pace := state.seconds_a_step():
        parts.append(say(t("{seconds} s a step", seconds=figure(pace, 3))))
    accuracy = state.metrics.get("accuracy")
    if accuracy is not None and accuracy.values:
        parts.append(f"{say('accuracy')} {figure(accuracy.values[-1])}")
    eta = state.eta_seconds()
    if eta is not None and status in ("running", "starting"):
        parts.append(say(t("{time} left", time=human_seconds(eta))))
    return cut("  ".join(parts), width)


def _samples_per_s(state: RunState) -> float | None:
    """Return the newest rate, of all ranks together where there are several; None: not told."""
    if ranks := state.ranks.as_dict(state.started):
        return number(ranks["samples_per_s"])
    return state.samples_per_s.values[-1] if state.samples_per_s.values else None


def screen(
    name: str,
    state: RunState,
    status: str,
    now: float,
    width: int = 80,
    height: int = 24,
    colour: bool = False,
    unicode: bool = True,
) -> list[str]:
    """Return ``doctor watch``'s screen: at most ``height`` lines of at most ``width`` columns."""
    head = [*_head(name, status, width, colour), *_verdict(state, status, now, width)]
    body = [*_progress(state, status, width, unicode), *_curves(state, width, unicode), *_machine(state)]
    # What is left of the height is shared: stacks first, then events, each with at least two lines.
    left = max(4, height - len(head) - len(body))
    stacks = list(_stacks(state))[: max(2, left // 2)]
    events = list(_events(state, now))[-max(2, left - len(stacks)) :]
    lines = [*head, *(cut(line, width) for line in [*body, *stacks, *events])]
    if state.is_approximate:
        note = say("a long run: its ends and a part of the rest were read (doctor report reads all)")
        return [*lines[: height - 1], cut(note, width)]
    return lines[:height]


def _head(name: str, status: str, width: int, colour: bool) -> list[str]:
    word = status_word(status)
    title = cut(printable(name), max(10, width - display_width(word) - 2))
    return [pad(title, width - display_width(word)) + paint(word, status_role(status), colour)]


def _verdict(state: RunState, status: str, now: float, width: int) -> list[str]:
    """Return what needs attention and where the time goes, in two lines each at most."""
    verdict = verdict_of(state, status, now)
    lines = on_finish_lines(state.on_finish, now, width)
    lines += [line for text in state.damage for line in indent(say(text), width, "! ", "  ")[:4]]
    lines += [
        line
        for words in alert_lines(state.alerts.open())[:2]
        for line in indent(words, width, "! ", "  ")[:2]
    ]
    if is_worth_saying(verdict, status, state.step):
        lines += indent(verdict_line(verdict), width, "> ", "  ")[:3]
        if verdict.kind in STANDS:
            lines += [cut(f"  {line}", width) for line in evidence_lines(verdict)[:STANDS_LINES]]
    return lines


def _progress(state: RunState, status: str, width: int, unicode: bool) -> Iterator[str]:
    if state.started or status == "starting":  # a process that is no run of ours has no steps
        yield progress_line(state, status, width, unicode, with_status=False)
    if state.evaluating:
        yield say(t("evaluating: {done} of {total} batches", done=str(state.evaluating.get("done")),
                    total=str(state.evaluating.get("total"))))  # fmt: skip
    started = state.started
    if started:
        facts = [started.get("device"), started.get("precision"), started.get("model")]
        elapsed = (state.last_t or 0.0) - (state.first_t or 0.0)
        shown = [printable(str(fact)) for fact in facts if fact]
        yield "  ".join([*shown, say(t("{time} so far", time=human_seconds(elapsed)))])


def _curves(state: RunState, width: int, unicode: bool) -> Iterator[str]:
    rows = [
        (say("loss"), state.loss, 4),
        (say("eval loss"), state.eval_loss, 4),
        *((name, curve, 4) for name, curve in list(state.metrics.items())[:2]),
        (say("gradient norm"), state.grad_norm, 3),
        (say("samples/s r0") if state.ranks else say("samples/s"), state.samples_per_s, 3),
    ]
    for label, curve, digits in rows:
        if curve.values:
            yield _curve_line(printable(label), curve, digits, width, unicode)
    if state.non_finite_losses:
        yield say(t("{count} {count:loss was|losses were} not finite", count=state.non_finite_losses))


def _curve_line(label: str, curve: Curve, digits: int, width: int, unicode: bool) -> str:
    first, last = figure(curve.values[0], digits), figure(curve.values[-1], digits)
    if len(curve) == 1:
        return f"{pad(cut(label, 14), 14)} {last:>9}"
    room = max(8, width - 16 - 2 * 11)
    return f"{pad(cut(label, 14), 14)} {first:>9}  {sparkline(curve.values, room, unicode)}  {last}"


def _machine(state: RunState) -> Iterator[str]:
    if ranks := state.ranks.as_dict(state.started):
        yield "  ".join([together_line(ranks), *attention_lines(ranks)])
    if state.host:
        yield host_line(state.host)
    gpus = state.gpus.get("gpus") or []
    if told := memory_words(state.memory, words_of(state.memory.get("why"))):
        yield f"{memory_label(state.started)}  {told}"
    for gpu in gpus[:4]:
        yield gpu_line(gpu)
    if len(gpus) > 4:
        yield say(t("... and {count} more {count:GPU|GPUs}", count=len(gpus) - 4))
    seen_at, why = number(state.gpus.get("seen_at")), state.gpus.get("why")
    if gpus and seen_at is not None:
        age = human_seconds(max(0.0, (state.last_t or seen_at) - seen_at))
        yield say(t("GPU  as {time} ago: {why}", time=age, why=words_of(why) or "?"))
    elif not gpus and why:
        yield "GPU  " + words_of(why)
    if gpus:
        yield from xid_lines(state.xids[-3:], words_of(state.xid_source.get("why")))


def host_line(host: dict[str, Any]) -> str:
    """Return the host in one line: CPU of the run's processes, their memory, the container's, the disk's room."""
    parts = []
    if number(host.get("cpu_pct")) is not None:
        parts.append(f"CPU {number(host['cpu_pct']):.0f}%")
    if host.get("rss_bytes"):
        parts.append(f"RSS {human_bytes(host['rss_bytes'])}")
    if host.get("memory_limit_bytes"):
        used, limit = human_bytes(host.get("memory_used_bytes")), human_bytes(host["memory_limit_bytes"])
        parts.append(say(t("memory {used} of {limit}", used=used, limit=limit)))
    if host.get("disk_free_bytes") is not None:
        parts.append(say(t("disk {free} free", free=human_bytes(host["disk_free_bytes"]))))
    parts += [words_of(why) for why in (host.get("unread") or {}).values()]
    return "  ".join(parts)


def gpu_line(gpu: dict[str, Any]) -> str:
    """Return one card in a line; a value that could not be read is ``?``."""

    def shown(key: str, unit: str, digits: int = 0) -> str:
        value = number(gpu.get(key))
        return "?" if value is None else f"{value:.{digits}f}{unit}"

    memory = f"{human_bytes(gpu.get('memory_used_bytes'))}/{human_bytes(gpu.get('memory_total_bytes'))}"
    parts = [
        f"GPU{gpu.get('index', '?')} {printable(str(gpu.get('name', '')))}",
        shown("utilization_pct", "%"),
        memory,
        shown("temperature_c", "°C"),
        f"{shown('power_w', '')}/{shown('power_limit_w', ' W')}",
        shown("sm_clock_mhz", " MHz"),
    ]
    reasons = [reason for reason in gpu.get("throttle_reasons") or [] if reason != "idle"]
    if reasons:
        parts.append(say(t("throttled: {reasons}", reasons=printable(", ".join(map(str, reasons))))))
    return "  ".join(parts)


def _stacks(state: RunState) -> Iterator[str]:
    frames = state.stacks.get("frames") or []
    if not frames:
        if state.stacks.get("why"):
            yield say(t("no stacks: {why}", why=words_of(state.stacks["why"])))
        return
    yield say("hottest functions (self, with callees)")
    yield from map(frame_line, frames)


def frame_line(frame: dict[str, Any]) -> str:
    """Return one hot function in a line."""
    own, total = number(frame.get("self_share")) or 0.0, number(frame.get("total_share")) or 0.0
    where = printable(f"{frame.get('function', '?')}  {frame.get('file', '?')}:{frame.get('line', '?')}")
    process = str(frame.get("process", ""))
    thread = frame.get("thread")
    who = (
        ""
        if process == "trainer" and not thread
        else f"  [{printable(process)}{f' {thread}' if thread else ''}]"
    )
    return f" {100 * own:3.0f}% {100 * total:3.0f}%  {where}{who}"


def _events(state: RunState, now: float) -> Iterator[str]:
    events = sorted(
        [*state.notes[-20:], *state.checkpoints[-5:], *state.evaluations[-5:]], key=lambda event: event.t
    )
    for event in events:
        yield f"{time.strftime('%H:%M:%S', time.localtime(event.t))}  {event_words(event)}"
    error = state.finished.get("error_text") or state.finished.get("error")
    if error:
        yield from (printable(line) for line in words_of(error).splitlines()[-3:])


def event_words(event: RunEvent) -> str:
    """Return what one event says."""
    data = event.data
    if event.kind == "note":
        words, file = words_of(data.get("text")), data.get("file")
        return f"{words} ({printable(str(file))})" if file else words
    if event.kind == "checkpoint":
        size = number(data.get("bytes"))
        return say(t("step {step}: saved {path} ({size})", step=event.step or 0,
                     path=printable("/".join(str(data.get("path", "?")).split("/")[-2:])), size=human_bytes(size)))  # fmt: skip
    metrics = "  ".join(
        f"{printable(name)} {figure(number(value))}"
        for name, value in data.items()
        if name not in ("samples", "seconds", "best") and number(value) is not None
    )
    return say(t("step {step}: evaluated, {metrics}", step=event.step or 0, metrics=metrics))
