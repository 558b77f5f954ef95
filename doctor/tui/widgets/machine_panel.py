"""GPUs, host and step time as the sampler saw them; what it could not read stands there with the reason."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rich.text import Text as Styled

from doctor.language import say
from doctor.render.layout import human_bytes, human_seconds, indent, pad
from doctor.tui.view import RunView
from doctor.tui.words import one_line
from runner.events import number
from runner.strings import printable
from runner.text import t

_LABEL = 14
CARDS_IN_ONE_ROW = 3
"""From so many cards on each takes one row, so that eight of them are seen at once."""


def machine_rows(view: RunView, width: int) -> list[Styled]:
    """Return the panel's rows; long ones are cut by the panel."""
    rows = [*_gpus(view, width), Styled(), *_host(view, width)]
    split = list(_split(view, width))
    return rows + ([Styled(), *split] if split else [])


def _bar(share: float, width: int, style: str) -> Styled:
    cells = max(6, min(24, width - 40))
    full = round(min(1.0, max(0.0, share)) * cells)
    return Styled.assemble(("█" * full, style), ("░" * (cells - full), "dim"))


def _row(label: str, value: str) -> Styled:
    return Styled.assemble((pad(label, _LABEL), "dim"), value)


def _bar_row(label: str, value: str, share: float, width: int, is_scarce: bool = False) -> Styled:
    """Return a row with a bar; of what is scarce (memory), a nearly full bar is red."""
    style = "red" if is_scarce and share > 0.95 else "green"
    return Styled.assemble((pad(label, _LABEL), "dim"), _bar(share, width, style), f" {value}")


def _memory_row(label: str, used: float, total: float | None, width: int) -> Styled:
    value = f"{human_bytes(used)} / {human_bytes(total)}"
    return _bar_row(label, value, used / total, width, is_scarce=True) if total else _row(label, value)


def _gpus(view: RunView, width: int) -> Iterator[Styled]:
    yield Styled("GPU", "bold")
    gpus = view.gpus.get("gpus")
    if isinstance(gpus, list) and gpus:
        cards = [gpu for gpu in gpus if isinstance(gpu, dict)]
        yield from _age(view, width)
        for gpu in cards:
            yield from _gpu(gpu, width) if len(cards) < CARDS_IN_ONE_ROW else _gpu_row(gpu)
    elif view.gpus.get("why"):
        yield from _unknown(say(t("could not be read: {why}", why=one_line(view.gpus["why"]))), width)
    elif view.gpus:
        yield Styled(say("this machine shows no NVIDIA GPU"))
    else:
        yield Styled(say("no sample yet"), "dim")


def _age(view: RunView, width: int) -> Iterator[Styled]:
    """Yield how old the cards' values are, where the newest look could not read them."""
    seen_at = number(view.gpus.get("seen_at"))
    if seen_at is not None:
        why = one_line(view.gpus.get("why")) or "?"
        age = human_seconds(max(0.0, (view.last_t or seen_at) - seen_at))
        yield from _unknown(say(t("as they were {time} ago; now: {why}", time=age, why=why)), width)


def _gpu(gpu: dict[str, Any], width: int) -> Iterator[Styled]:
    yield Styled(f"{gpu.get('index', '?')}  {printable(str(gpu.get('name') or 'GPU'))}")
    utilization = number(gpu.get("utilization_pct"))
    if utilization is not None:
        yield _bar_row(say("utilisation"), f"{utilization:.0f} %", utilization / 100, width)
    used, total = number(gpu.get("memory_used_bytes")), number(gpu.get("memory_total_bytes"))
    if used is not None:
        yield _memory_row(say("memory"), used, total, width)
    heat = list(_heat(gpu))
    if heat:
        yield _row("", " · ".join(heat))
    reasons = gpu.get("throttle_reasons")
    if isinstance(reasons, list) and reasons:
        yield Styled(
            pad(say("throttled"), _LABEL) + ", ".join(printable(str(reason)) for reason in reasons), "yellow"
        )
    yield from _lost(gpu)
    yield from _unread(gpu, width)


def _gpu_row(gpu: dict[str, Any]) -> Iterator[Styled]:
    """Yield one card in one row: index, utilisation, memory, temperature, power, clock, throttling."""
    utilization = number(gpu.get("utilization_pct"))
    used, total = number(gpu.get("memory_used_bytes")), number(gpu.get("memory_total_bytes"))
    share = "  ?  " if utilization is None else f"{utilization:3.0f} %"
    row = Styled.assemble((f"{gpu.get('index', '?')!s:>2} ", "bold"), (share, "bold"), "  ")
    row.append(f"{human_bytes(used)} / {human_bytes(total)}  " + " · ".join(_heat(gpu)))
    reasons = gpu.get("throttle_reasons")
    if isinstance(reasons, list) and reasons:
        row.append("  ! " + ", ".join(printable(str(reason)) for reason in reasons), "yellow")
    yield row
    yield from _lost(gpu)


def _lost(gpu: dict[str, Any]) -> Iterator[Styled]:
    if gpu.get("error"):
        yield Styled(f"   ✗ {one_line(gpu['error'])}", "bold red")


def _heat(gpu: dict[str, Any]) -> Iterator[str]:
    temperature, power, limit = (
        number(gpu.get(key)) for key in ("temperature_c", "power_w", "power_limit_w")
    )
    clock = number(gpu.get("sm_clock_mhz"))
    if temperature is not None:
        yield f"{temperature:.0f} °C"
    if power is not None:
        yield f"{power:.0f} W" + (f" / {limit:.0f} W" if limit else "")
    if clock is not None:
        yield f"{clock:.0f} MHz"


def _unread(record: dict[str, Any], width: int) -> Iterator[Styled]:
    unread = record.get("unread")
    for name, why in unread.items() if isinstance(unread, dict) else ():
        label = printable(str(name))
        yield from _unknown(say(t("{name} could not be read: {why}", name=label, why=one_line(why))), width)


def _unknown(words: str, width: int) -> Iterator[Styled]:
    for line in indent(words, width, "? ", "  "):
        yield Styled(line, "magenta")


def _host(view: RunView, width: int) -> Iterator[Styled]:
    yield Styled(say("Training processes and host"), "bold")
    host = view.host
    if not host:
        yield Styled(say("no sample yet"), "dim")
        return
    cpu = number(host.get("cpu_pct"))
    if cpu is not None:
        yield _row("CPU", say(t("{percent} % of one core", percent=f"{cpu:.0f}")))
    rss = number(host.get("rss_bytes"))
    if rss is not None:
        yield _row(say("resident"), human_bytes(rss))
    used, limit = number(host.get("memory_used_bytes")), number(host.get("memory_limit_bytes"))
    if used is not None:
        yield _memory_row(say("host memory"), used, limit, width)
    free = number(host.get("disk_free_bytes"))
    if free is not None:
        yield _row(say("disk free"), human_bytes(free))
    counts = (number(host.get("processes")), number(host.get("threads")))
    if counts[0] is not None:
        shown = "?" if counts[1] is None else f"{counts[1]:.0f}"
        words = say(t("processes {processes} · threads {threads}", processes=int(counts[0]), threads=shown))
        yield _row("", words)
    yield from _unread(host, width)


def _split(view: RunView, width: int) -> Iterator[Styled]:
    total = sum(view.split_seconds.values())
    if total <= 0:
        return
    yield Styled(say("Where a step's time goes"), "bold")
    names = {
        "data": say("data"),
        "forward": say("forward"),
        "backward": say("backward"),
        "optimizer": say("optimizer"),
    }
    for name, seconds in sorted(view.split_seconds.items(), key=lambda pair: -pair[1]):
        share = seconds / total
        yield _bar_row(names.get(name, printable(name)), f"{share:.0%}", share, width)
