"""The deep check's steps as a short table: how each ended, what it was, how long it took."""

from __future__ import annotations

from collections.abc import Iterator

from doctor.language import say
from doctor.model import Deep, DeepDevice, DeepStep, Text, t
from doctor.render.layout import display_width, human_bytes, indent, pad, paint
from runner.strings import shown

DETAIL_CHARACTERS = 200
_ROLES = {"ok": "good", "failed": "fail", "crashed": "fail", "timed-out": "warn"}


def deep_lines(deep: Deep | None, width: int, colour: bool) -> Iterator[str]:
    """Yield the table; nothing where the deep check was not asked for."""
    if deep is None:
        return
    yield say("Deep check: torch really used")
    words = [_words(step, deep) for step in deep.steps]
    column = min(max((display_width(line) for line in words), default=0), max(20, width - 26))
    for step, line in zip(deep.steps, words, strict=True):
        took = "" if step.seconds is None else f"{step.seconds:.2f} s".rjust(9)
        status = paint(pad(status_word(step.status), 9), _ROLES[step.status], colour)
        first, *rest = indent(line, column + 2, "", "  ")
        yield f"  {status}  {pad(first, column)}  {took}".rstrip()
        yield from (" " * 13 + more for more in rest)
        if step.status != "ok" and step.detail:
            said = shown(" ".join(step.detail.split()))[:DETAIL_CHARACTERS]
            yield from indent(said, width, " " * 15, " " * 15)
    yield from _tail(deep, width)


def _tail(deep: Deep, width: int) -> Iterator[str]:
    if deep.not_installed:
        names = ", ".join(shown(name) for name in deep.not_installed)
        yield from indent(
            say(t("not installed in this interpreter: {names}", names=names)), width, "  ", "    "
        )
    if not deep.finished:
        words = say(t("it was ended here, after {seconds} s: what comes behind was not tried", seconds=round(deep.limit_s or 0)))  # fmt: skip
        if deep.steps and any(step.status == "timed-out" for step in deep.steps):
            yield from indent(words, width, "  ", "    ")


def status_word(status: str) -> str:
    return {
        "ok": say("ok"), "failed": say("failed"), "crashed": say("crashed"), "timed-out": say("timed out"),
    }[status]  # fmt: skip


def _words(step: DeepStep, deep: Deep) -> str:
    """Return what a step was, in the reader's language, with what it gave."""
    subject, detail = shown(step.subject), shown(step.detail.split("\n")[0])[:60]
    if step.name == "read":
        speed = human_bytes(deep.read_bytes_per_s)
        return say(t("read {path}: {speed}/s", path=subject, speed=speed)) if step.status == "ok" else say(t("read {path}", path=subject))  # fmt: skip
    said = {
        "import": t(
            "import {package} {version}", package=subject, version=detail if step.status == "ok" else ""
        ),
        "see-gpus": t("torch sees {count} {count:GPU|GPUs}", count=deep.device_count or 0),
        "start": _started(subject, deep),
        "matmul": t("{device}: a product", device=subject),
        "backward": t("{device}: a backward pass", device=subject),
        "fp16": t("{device}: a product in fp16", device=subject),
        "bf16": t("{device}: a product in bf16", device=subject)
        if _has_bf16(subject, deep)
        else t("{device}: a product in bf16 (this card has to emulate it)", device=subject),
        "round-trip": t(
            "{ranks} {ranks:process adds|processes add} up a tensor ({backend})",
            ranks=deep.ranks or 0,
            backend=subject,
        ),
        "begin": t("start {python}", python=subject),
    }.get(step.name)
    return say(said).strip() if said is not None else f"{shown(step.name)} {subject}"


def _device(subject: str, deep: Deep) -> DeepDevice | None:
    return next((item for item in deep.devices if subject == f"cuda:{item.index}"), None)


def _started(subject: str, deep: Deep) -> Text:
    card = _device(subject, deep)
    if card is None:
        return t("{device} starts", device=subject)
    name = f"{shown(card.name)} ({shown(card.compute_capability)})"
    if card.memory_free_bytes is None:
        return t("{device} starts: {name}", device=subject, name=name)
    return t("{device} starts: {name}, {free} free", device=subject, name=name, free=human_bytes(card.memory_free_bytes))  # fmt: skip


def _has_bf16(subject: str, deep: Deep) -> bool:
    """Cards have bf16 in hardware from compute capability 8.0 on; one that is not known is not called otherwise."""
    card = _device(subject, deep)
    major = card.compute_capability.partition(".")[0] if card else ""
    return not major.isdigit() or int(major) >= 8
