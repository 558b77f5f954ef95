"""Which encoding a fresh Python interpreter takes for text files here, worked out without starting one."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING

from doctor.model import t
from doctor.probes.bounded import names_in, read_bytes
from doctor.probes.gaps import Gaps

if TYPE_CHECKING:
    from doctor.probes import Context

_CHARSETS = {
    "utf8": "UTF-8", "gbk": "GBK", "gb18030": "GB18030", "gb2312": "GB2312", "big5": "BIG5",
    "euckr": "EUC-KR", "eucjp": "EUC-JP", "iso88591": "ISO-8859-1", "iso885915": "ISO-8859-15",
}  # fmt: skip


def locale_encoding(gaps: Gaps) -> str | None:
    """Return a fresh interpreter's ``locale.getpreferredencoding(False)``, by CPython's own rules."""
    context = gaps.context
    value = python_encoding(context.environ, _python_minor(context), lambda: _installed_locales(context))
    if value is None:
        why = t("the locale of this session is not one whose encoding is known")
        gaps.note("locale_encoding", why)
    return value


def python_encoding(
    environ: Mapping[str, str], minor: int, installed: Callable[[], Collection[str]]
) -> str | None:
    """Apply PEP 538 and PEP 540 to the variables; ``minor`` is the interpreter's (3.``minor``).

    ``installed`` gives the lower-case names of the locales that are there (costly, so only asked where it
    matters): a locale that is not there leaves the C locale.
    """
    switch = environ.get("PYTHONUTF8") if minor >= 7 else None
    name = next((environ[key] for key in ("LC_ALL", "LC_CTYPE", "LANG") if environ.get(key)), "C")
    language, dot, charset = name.lower().partition("@")[0].partition(".")
    squeezed = re.sub(r"[^a-z0-9]", "", charset)
    if switch == "1" or (squeezed == "utf8" and minor >= 7 and switch != "0"):
        return "UTF-8"
    if name in ("C", "POSIX") or (f"{language}.{squeezed}" if dot else language) not in installed():
        return _encoding_of_c_locale(environ, minor)
    return _CHARSETS.get(squeezed)


def _encoding_of_c_locale(environ: Mapping[str, str], minor: int) -> str:
    if minor < 7:
        return "ANSI_X3.4-1968"
    coerced = environ.get("PYTHONCOERCECLOCALE") != "0" and not environ.get("LC_ALL")
    return "UTF-8" if coerced or environ.get("PYTHONUTF8") != "0" else "ANSI_X3.4-1968"


def _python_minor(context: Context) -> int:
    """Minor version of the examined Python 3; where it is not known, one of today's, which share one rule."""
    match = re.match(r"3\.(\d+)", context.target.version)
    return int(match[1]) if match else 11


def _installed_locales(context: Context) -> set[str]:
    """Return the lower-case names in /usr/lib/locale and in its archive (``zh_cn.gbk``)."""
    folder = context.path("/usr/lib/locale")
    names = {"c.utf8"} | {re.sub(r"utf-8$", "utf8", name.lower()) for name in names_in(folder)}
    try:
        archive = read_bytes(folder / "locale-archive", 64 << 20)
    except OSError:
        return names
    found = re.findall(rb"[a-z]{2,3}_[A-Z]{2}(?:\.[a-z0-9]+)?(?=[\0@])", archive)
    return names | {name.decode("ascii").lower() for name in found}
