"""Every sign the screens draw, as one of ASCII that takes as many columns: for a terminal that has no others."""

from __future__ import annotations

from doctor.render.layout import display_width

_BRAILLE = range(0x2800, 0x2900)
_DOT_ROWS = (0x01 | 0x08, 0x02 | 0x10, 0x04 | 0x20, 0x40 | 0x80)
"""Bits of the dots of a Braille cell, row by row from the top."""
_SIGNS = str.maketrans({
    **dict.fromkeys("✗×", "x"), "✓": "+", "·": "-", "…": "~", "●": "o", "◆": "*", "▪": ".", "■": "#", "‖": "|",
    **dict.fromkeys("→▶›▌", ">"), **dict.fromkeys("←◀‹", "<"), "↑": "^", "↓": "v", "⏎": "=", "°": " ",
    **dict.fromkeys("─━–—▔", "-"), **dict.fromkeys("│┃▏▎", "|"), "└": "`", **dict.fromkeys("┌┐┘├┤┬┴┼┏┓┗┛╢╟", "+"),
    "█": "#", "░": ".", **dict.fromkeys("▁▂▃▄▅▆▇▀▊▋▍", " "), **dict.fromkeys("“”", '"'), **dict.fromkeys("‘’", "'"),
    "≥": ">", "≤": "<", **dict.fromkeys("≈±", "~"), "µ": "u",
})  # fmt: skip


class _Ascii(dict[int, str]):
    """For :meth:`str.translate`: what has no sign of its own becomes question marks, as wide as it was."""

    def __missing__(self, code: int) -> str:
        if code < 0x80:
            shown = chr(code)
        elif code in _BRAILLE:
            shown = _dots(code - _BRAILLE.start)
        else:
            shown = "?" * display_width(chr(code))
        self[code] = shown
        return shown


def _dots(bits: int) -> str:
    """Return a Braille cell as the sign that stands at about the same height."""
    rows = [bool(bits & row) for row in _DOT_ROWS]
    if sum(rows) >= 3:
        return "|"
    if any(rows[:2]) and any(rows[2:]):
        return "-" if rows == [False, True, True, False] else ":"
    if any(rows[:2]):
        return "'" if rows[0] else "-"
    return "." if rows[3] else "-" if rows[2] else " "


_ASCII = _Ascii(_SIGNS)


def in_ascii(text: str) -> str:
    """Return ``text`` in ASCII, column for column; terminal commands stay what they are."""
    return text if text.isascii() else text.translate(_ASCII)
