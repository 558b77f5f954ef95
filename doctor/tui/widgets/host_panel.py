"""The training processes and their host: CPU and its limit, memory, disk, network, /dev/shm; what was not read says why."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rich.text import Text as Styled

from doctor.language import say
from doctor.render.layout import human_bytes, indent
from doctor.tui.view import RunView
from doctor.tui.widgets.foretold import foretold_rows
from doctor.tui.widgets.panel_rows import label_row, memory_row, unread_rows
from runner.events import number
from runner.text import t

STOPPED_OFTEN_PCT = 25.0
"""From so many of the scheduler's periods on, being stopped at the CPU limit is what holds the run up."""


def host_rows(view: RunView, width: int) -> Iterator[Styled]:
    """Yield the rows of the block."""
    yield Styled(say("Training processes and host"), "bold")
    host = view.host
    if not host:
        yield Styled(say("no sample yet"), "dim")
        return
    yield from _cpu(host)
    yield from _memory(host, width)
    yield from foretold_rows(view, "cpu", width)
    yield from _rates(host)
    yield from unread_rows(host.get("unread"), _names(), width)
    yield from _missing(host, width)


def _cpu(host: dict[str, Any]) -> Iterator[Styled]:
    cpu, cores = number(host.get("cpu_pct")), number(host.get("cpu_cores_usable"))
    words = []
    if cpu is not None and cores is not None:
        words.append(say(t("{used} of {cores} cores", used=f"{cpu / 100:.1f}", cores=f"{cores:g}")))
    elif cpu is not None:
        words.append(say(t("{percent} % of one core", percent=f"{cpu:.0f}")))
    processes, threads = number(host.get("processes")), number(host.get("threads"))
    if processes is not None:
        shown = "?" if threads is None else f"{threads:.0f}"
        words.append(
            say(t("processes {processes} · threads {threads}", processes=int(processes), threads=shown))
        )
    if words:
        yield label_row("CPU", " · ".join(words))
    stopped = number(host.get("cpu_throttled_pct"))
    if stopped is not None:
        limit = say(t("stopped at its limit in {share} % of the periods", share=f"{stopped:.0f}"))
        yield label_row("", limit, "yellow" if stopped >= STOPPED_OFTEN_PCT else "")


def _memory(host: dict[str, Any], width: int) -> Iterator[Styled]:
    rss = number(host.get("rss_bytes"))
    if rss is not None:
        yield label_row(say("resident"), human_bytes(rss))
    used, limit = number(host.get("memory_used_bytes")), number(host.get("memory_limit_bytes"))
    if used is not None:
        label = say("container RAM") if host.get("memory_scope") == "container" else say("host memory")
        yield memory_row(label, used, limit, width)
    shm, shm_size = number(host.get("shm_used_bytes")), number(host.get("shm_size_bytes"))
    if shm is not None:
        yield memory_row("/dev/shm", shm, shm_size, width)


def _rates(host: dict[str, Any]) -> Iterator[Styled]:
    free = number(host.get("disk_free_bytes"))
    disk = [] if free is None else [say(t("{size} free", size=human_bytes(free)))]
    disk += _in_and_out(host, "disk_read_bytes_per_s", "disk_write_bytes_per_s")
    network = _in_and_out(host, "network_rx_bytes_per_s", "network_tx_bytes_per_s")
    for label, words in ((say("disk"), disk), (say("network"), network)):
        if words:
            yield label_row(label, " · ".join(words))


def _in_and_out(host: dict[str, Any], reading: str, writing: str) -> list[str]:
    both = [number(host.get(key)) for key in (reading, writing)]
    if both == [None, None]:
        return []
    shown = ["?" if one is None else human_bytes(one) + "/s" for one in both]
    return [say(t("in {read} · out {written}", read=shown[0], written=shown[1]))]


def _names() -> dict[str, str]:
    return {
        "memory_used_bytes": say("host memory"),
        "disk_free_bytes": say("disk"),
        "cpu_throttled_pct": say("CPU limit"),
        "disk_read_bytes_per_s": say("disk"),
        "disk_write_bytes_per_s": say("disk"),
        "network_rx_bytes_per_s": say("network"),
        "network_tx_bytes_per_s": say("network"),
        "shm_used_bytes": "/dev/shm",
    }


def _missing(host: dict[str, Any], width: int) -> Iterator[Styled]:
    """Yield what was not asked for. That a container has no CPU limit is no gap."""
    known = {*host, *(host.get("unread") or ())}
    wanted = ("disk_read_bytes_per_s", "network_rx_bytes_per_s", "shm_used_bytes")
    absent = [_names()[key] for key in wanted if key not in known]
    if absent:
        words = say(t("not sampled in this run: {names}", names=", ".join(absent)))
        yield from (Styled(line, "dim") for line in indent(words, width, "", "  "))
