"""Patterns of scripts whose own text is wrong: Windows line ends, full-width signs, another encoding."""

from __future__ import annotations

from doctor.explain.match import Pattern
from doctor.model import t

PATTERNS: tuple[Pattern, ...] = (
    # train.sh: line 4: $'\r': command not found   |   /usr/bin/env: 'bash\r': No such file or directory   |   /bin/bash^M: bad interpreter: No such file or directory
    Pattern(
        id="windows-line-ends",
        regex=r"\\r['’]?: command not found|\\r['’]?: No such file or directory|\\r['’]?: bad interpreter|unexpected token .\$'\w*\\r|\^M: bad interpreter",
        meaning=t("The script was saved with Windows line ends (CRLF), and the shell takes the extra sign for part of each command."),
        advice=t("`sed -i 's/\\r$//' SCRIPT` once; in git `git config core.autocrlf input` keeps it so."),
    ),
    # SyntaxError: invalid character '，' (U+FF0C)   |   SyntaxError: invalid character in identifier   |   SyntaxError: invalid non-printable character U+00A0
    Pattern(
        id="full-width-sign",
        regex=r"SyntaxError: invalid (?:character '(?P<sign>[^'\n]{1,4})' \(U\+[0-9A-F]{4,6}\)|character in identifier|non-printable character U\+[0-9A-F]{4,6})",
        meaning=t("A sign that Python does not know stands in the code ({sign}): mostly full-width punctuation from a Chinese input method, or something pasted from a web page.", sign="?"),
        advice=t("Type the sign at the mark again with the input method switched to English. `grep -nP '[^\\x00-\\x7F]' FILE` shows every such line; in strings and comments they are fine."),
    ),
    # SyntaxError: Non-UTF-8 code starting with '\xc4' in file train.py on line 3, but no encoding declared
    Pattern(
        id="source-not-utf8",
        regex=r"Non-UTF-8 code starting with '(?P<byte>[^'\n]+)' in file (?P<file>\S+)",
        meaning=t("{file} is not saved as UTF-8; from a Chinese Windows it is mostly GBK.", file="?"),
        advice=t("`iconv -f gb18030 -t utf-8 {file} > new.py`, and save as UTF-8 in the editor from now on.", file="FILE"),
    ),
    # SyntaxError: Non-ASCII character '\xe5' in file app.py on line 11, but no encoding declared
    Pattern(
        id="python-2",
        regex=r"Non-ASCII character '(?P<byte>[^'\n]+)' in file",
        meaning=t("Python 2 is running: only it refuses such characters in a source file."),
        advice=t("`python3 SCRIPT`, or activate the environment first; `python -V` says which one runs."),
    ),
    # SyntaxError: (unicode error) 'unicodeescape' codec can't decode bytes in position 2-3: truncated \UXXXXXXXX escape
    Pattern(
        id="backslash-path",
        regex=r"'unicodeescape' codec can't decode bytes",
        meaning=t("A Windows path with backslashes stands in a string, and \\U or \\x is read as an escape."),
        advice=t("r'C:\\Users\\...', or slashes: 'C:/Users/...'."),
    ),
)  # fmt: skip
