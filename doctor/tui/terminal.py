"""What the terminal can show, found out before the first picture; and how it is written to."""

from __future__ import annotations

import io
import os
import re
import select
import subprocess
import sys
import termios
import time
import tty
from collections.abc import Callable, Mapping
from pathlib import Path

from textual.driver import Driver
from textual.drivers.linux_driver import LinuxDriver

from doctor.commands import CommandError, Exit
from doctor.language import say, use_language
from doctor.tui.ascii import in_ascii
from runner.text import t

PROBE_S = 0.7
"""A terminal's answer comes within a round trip of its line."""
_PROBED = "⠿"
"""One column where UTF-8 is understood, three where each of its bytes is taken for a character."""
_CURSOR_AT = re.compile(rb"\x1b\[(\d+);(\d+)R")  # ESC [ 12 ; 2 R
_FONTLESS = ("linux",)
"""The console of the kernel has 512 glyphs at most: neither Braille nor Chinese is among them."""


class QuietDriver(LinuxDriver):
    """Asks no terminal to report each motion of the mouse, nor keys in a way that a shell cannot read after a dropped line."""

    def write(self, data: str) -> None:
        if data == "\x1b[?1003h":  # any motion: bytes up a slow line for nothing; drags are enough
            data = "\x1b[?1002h"
        elif data == "\x1b[?1003l":
            data = "\x1b[?1002l"
        elif data.startswith("\x1b[>") and data.endswith("u"):  # kitty's keys, ESC [ > 25 u
            return
        super().write(data)


class AsciiDriver(QuietDriver):
    """Writes ASCII and nothing else."""

    def write(self, data: str) -> None:
        super().write(in_ascii(data))


def choose_driver() -> tuple[type[Driver], str]:
    """Return what writes to this terminal, and what is to be said of it. Where it draws ASCII only, all is in English."""
    if shows_unicode(_environment()):
        if isinstance(sys.__stderr__, io.TextIOWrapper):
            sys.__stderr__.reconfigure(encoding="utf-8", errors="replace")  # whatever the locale says
        return QuietDriver, ""
    use_language("en")
    if os.environ.get("DOCTOR_CHARACTERS"):
        return AsciiDriver, ""
    words = (
        t("tmux draws ASCII only here: start or attach it as `tmux -u`, or set LANG=C.UTF-8 before")
        if os.environ.get("TMUX")
        else t("this terminal draws ASCII only; DOCTOR_CHARACTERS=unicode tries the rest")
    )
    return AsciiDriver, say(words)


def _environment() -> dict[str, str]:
    """Return the environment as it was given: Python in the C locale sets LC_CTYPE to C.UTF-8 by itself (PEP 538)."""
    try:
        given = Path("/proc/self/environ").read_bytes().split(b"\0")
    except OSError:
        return dict(os.environ)
    variables = (line.decode("utf-8", "replace").partition("=") for line in given)
    return (
        dict(os.environ)
        | {"LC_CTYPE": ""}
        | {name: value for name, _, value in variables if name == "LC_CTYPE"}
    )


def shows_unicode(
    environ: Mapping[str, str],
    ask_tmux: Callable[[], str] | None = None,
    probe: Callable[[], int | None] | None = None,
) -> bool:
    """Return whether the terminal draws more than ASCII.

    ``DOCTOR_CHARACTERS=ascii`` (or ``unicode``) answers it; tmux is asked how it draws; a locale of UTF-8 is believed; else the
    terminal itself is asked how many columns one character took. Without any answer: yes, as nearly every terminal does.
    """
    told = environ.get("DOCTOR_CHARACTERS", "").lower()
    if told in ("ascii", "unicode"):
        return told == "unicode"
    if environ.get("TERM") in _FONTLESS:
        return False
    if environ.get("TMUX") and (answer := (ask_tmux or _ask_tmux)()) in ("0", "1"):
        return answer == "1"
    if _is_utf8(environ):
        return True
    return (probe or _columns_of_probe)() in (1, None)


def _is_utf8(environ: Mapping[str, str]) -> bool:
    named = next((environ[name] for name in ("LC_ALL", "LC_CTYPE", "LANG") if environ.get(name)), "")
    return "utf8" in named.lower().replace("-", "")


def _ask_tmux() -> str:
    """Return tmux's word on the terminal it is attached to: ``1`` (UTF-8), ``0``, or nothing where it gives none."""
    try:
        command = ["tmux", "display-message", "-p", "#{client_utf8}"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=PROBE_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip()


def _columns_of_probe() -> int | None:
    """Draw one character and return how many columns the cursor went on; None: no answer."""
    fd = sys.__stdin__.fileno() if sys.__stdin__ else 0
    try:
        before = termios.tcgetattr(fd)
    except termios.error:
        return None
    try:
        tty.setcbreak(fd)
        _say_raw(f"\r{_PROBED}\x1b[6n")
        answer = _answer(fd)
    finally:
        termios.tcsetattr(fd, termios.TCSANOW, before)
        _say_raw("\r\x1b[K")
    return int(answer[2]) - 1 if answer else None


def _say_raw(words: str) -> None:
    if sys.__stderr__ is not None:
        os.write(sys.__stderr__.fileno(), words.encode("utf-8"))


def _answer(fd: int) -> re.Match[bytes] | None:
    until, seen = time.monotonic() + PROBE_S, b""
    while (left := until - time.monotonic()) > 0 and select.select([fd], [], [], left)[0]:
        seen += os.read(fd, 1024)
        if match := _CURSOR_AT.search(seen):
            return match
    return None


class no_color_kept:  # noqa: N801 - reads as what it does
    """Keeps NO_COLOR for children: textual takes it out of the environment, and an empty one for set."""

    def __enter__(self) -> None:
        self._value = os.environ.get("NO_COLOR")
        if self._value == "":
            del os.environ["NO_COLOR"]

    def __exit__(self, *exception: object) -> None:
        if self._value is not None:
            os.environ["NO_COLOR"] = self._value


def want_terminal() -> None:
    """Raise CommandError where the view could not be seen: textual draws on stderr and reads keys from stdin."""
    if os.environ.get("TERM") == "dumb":
        raise CommandError(
            t("The full-screen view needs a terminal that can move its cursor, and TERM is dumb here. "
              "`doctor check` and `doctor watch RUN --once` print lines."),
            Exit.USAGE,
        )  # fmt: skip
    for stream, name in ((sys.__stderr__, "stderr"), (sys.__stdin__, "stdin")):
        if stream is None or not stream.isatty():
            raise CommandError(
                t("The full-screen view needs a terminal, and {stream} is none here.", stream=name),
                Exit.USAGE,
            )
