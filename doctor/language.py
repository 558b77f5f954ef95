"""Which language a person reads, and a :class:`Text` said in it. gettext underneath; English is the msgid itself."""

from __future__ import annotations

import gettext
import os
from collections.abc import Mapping

from runner.strings import fill, translated_fields

TYPE_CHECKING = False  # typing, pathlib and what they bring would double the time of `doctor --help`
if TYPE_CHECKING:
    from runner.text import Text

LANGUAGES = ("en", "zh")
_CATALOGUES = {"zh": "zh_CN"}
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


def say(text: Text | str) -> str:
    """Return ``text`` in the current language with its fields filled in. A plain string is a msgid without fields.

    Fields are filled after translation and are never interpreted; translated only where the msgid says ``{name!t}``
    (a name from a table of ours).
    """
    if isinstance(text, str):
        return _translations.gettext(text) if text else ""
    params = text.params
    if "!t}" in text.msgid:
        ours = {name: say(str(params[name])) for name in translated_fields(text.msgid) if name in params}
        params = {**params, **ours}
    return fill(_translations.gettext(text.msgid) if text.msgid else "", params)
