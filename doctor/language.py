"""Which language a person reads, and a :class:`Text` said in it. gettext underneath; English is the msgid itself."""

from __future__ import annotations

import gettext
import os
import re
from collections.abc import Mapping

from runner.strings import UNITS, duration_fields, fill, human_seconds, translated_fields

TYPE_CHECKING = False  # typing, pathlib and what they bring would double the time of `doctor --help`
if TYPE_CHECKING:
    from runner.text import Text

LANGUAGES = ("en", "zh")
_CATALOGUES = {"zh": "zh_CN"}
_UNITS = {"zh": ("秒", "分", "小时")}
_BORROWED = frozenset(("error", "why", "reason", "trouble", "problem", "message"))
"""Fields that may hold the words of the system or of a library, which know English only."""
_LOCALE_DIR = os.path.join(os.path.dirname(__file__), "locale")  # noqa: PTH118, PTH120

_current = "en"
_translations: gettext.NullTranslations = gettext.NullTranslations()


def choose_language(
    option: str | None, environ: Mapping[str, str] = os.environ, saved: str | None = None
) -> str:
    """Return ``en`` or ``zh``: the option, else DOCTOR_LANG, else the saved setting, else the locale variables."""
    for asked in (option, environ.get("DOCTOR_LANG"), saved):
        if asked:
            return "zh" if asked.lower().startswith("zh") else "en"
    for name in ("LC_ALL", "LC_MESSAGES", "LANGUAGE", "LANG"):
        if environ.get(name):
            return "zh" if environ[name].lower().startswith("zh") else "en"
    return "en"


def use_language(language: str) -> None:
    """Say everything in ``language`` from now on. A missing catalogue falls back to English."""
    global _current, _translations
    _current = language
    _translations = gettext.NullTranslations()
    if language in _CATALOGUES:
        _translations = gettext.translation("doctor", _LOCALE_DIR, [_CATALOGUES[language]], fallback=True)


def current_language() -> str:
    return _current


def current_units() -> tuple[str, str, str]:
    """Return what seconds, minutes and hours are called."""
    return _UNITS.get(_current, UNITS)


def say(text: Text | str) -> str:
    """Return ``text`` in the current language with its fields filled in. A plain string is a msgid without fields.

    Fields are filled after translation and are never interpreted; translated only where the msgid says ``{name!t}``
    (names from a table of ours, each perhaps with a figure). A duration (``{name!d}``) has the language's units. What a
    field borrows from the system or a library stands in brackets behind what it means (:mod:`doctor.borrowed_words`).
    """
    if isinstance(text, str):
        return _translations.gettext(text) if text else ""
    params = text.params
    if "!t}" in text.msgid:
        ours = {name: _named(str(params[name])) for name in translated_fields(text.msgid) if name in params}
        params = {**params, **ours}
    if _current != "en":
        params = {**params, **_worded(text)}
    return fill(_translations.gettext(text.msgid) if text.msgid else "", params)


def _worded(text: Text) -> dict[str, str]:
    """Return the fields of ``text`` that another language than English says differently."""
    said: dict[str, str] = {}
    for name in duration_fields(text.msgid):
        seconds = text.params.get(name)
        if isinstance(seconds, (int, float)):
            said[name] = human_seconds(seconds, current_units())
    borrowed = _BORROWED & text.params.keys()
    if borrowed:
        from doctor.borrowed_words import explained

        said |= {name: explained(str(text.params[name])) for name in borrowed}
    return said


# data 40 %, copy to GPU 10 %
_FIGURE = re.compile(r"(.*?)( [\d.]+ %)?")


def _named(words: str) -> str:
    """Return a sentence of ours, or a list of our names with their figures, translated."""
    whole = say(words)
    if whole != words:
        return whole
    named = (_FIGURE.fullmatch(item) for item in words.split(", "))
    return ", ".join(say(item[1]) + (item[2] or "") for item in named if item)
