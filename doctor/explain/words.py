"""The plain strings that a pattern cannot match without, read off the pattern itself.

Searching a log of megabytes for a string is a hundred times faster than for a pattern, and most kinds of failure are not
in it. What this scanner does not understand it leaves out: a string too few only costs time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

SHORTEST = 3
"""A shorter string stands in every text."""
CHUNK = 1 << 20
"""Characters taken apart at once."""

_TOKEN = re.compile(r"\\.|\[(?:\\.|[^\]\\])+\]|\{\d*,?\d*\}|.", re.DOTALL)
# [^)\n] stays in its line; [^)], \s, \D, \W and \n may stand for its end.
_LINE_END = re.compile(r"\[\^(?![^\]]*\\n\])|\\[rsDW]|\\n(?!\])")
# (?i)  (?s-m:...)
_FLAGS = re.compile(r"\(\?[aiLmsux-]+[:)]")


def required_words(regex: str) -> tuple[str, ...]:
    """Return strings of which one stands in every match of ``regex``, one a branch; empty: there are none to go by."""
    if _FLAGS.search(regex):
        return ()
    words = [max(_runs(branch), key=len) for branch in _branches(regex)]
    return tuple(words) if all(len(word) >= SHORTEST for word in words) else ()


def longest_piece(word: str) -> str:
    """Return the longest part of ``word`` with letters and no blanks: what does not hold it does not hold ``word``."""
    return max(filter(_has_letters, word.split()), key=len, default="")


def _has_letters(word: str) -> bool:
    """Whether it holds a letter or a sign of another script (未找到命令), which has no capitals."""
    return not word.isascii() or word.lower() != word.upper()


def vocabulary(text: str) -> str:
    """Return every different word with letters of ``text`` once, a line each: of a long log a tenth, as it repeats itself."""
    if len(text) <= CHUNK:
        return text
    words: set[str] = set()
    begin = 0
    while begin < len(text):
        end = text.find("\n", begin + CHUNK)
        end = len(text) if end < 0 else end
        words.update(text[begin:end].split())
        begin = end
    return "\n".join(filter(_has_letters, words))


def stays_in_line(regex: str) -> bool:
    """Whether no match of ``regex`` can hold a line's end: nothing in it stands for one."""
    return not _LINE_END.search(regex)


def _branches(regex: str) -> list[list[str]]:
    """Return the tokens of each outermost alternative."""
    branches: list[list[str]] = [[]]
    depth = 0
    for token in _TOKEN.findall(regex):
        depth += (token == "(") - (token == ")")
        if token == "|" and depth == 0:
            branches.append([])
        else:
            branches[-1].append(token)
    return branches


def _runs(tokens: list[str]) -> Iterator[str]:
    """Yield the unbroken plain texts outside every group, at least an empty one."""
    run, depth = "", 0
    for token in tokens:
        depth += (token == "(") - (token == ")")
        if depth == 0 and (letter := _plain(token)):
            run += letter
        elif depth or token not in ("^", "$", r"\b"):
            # What is repeated may be missing: x? x* x{0,3}; after x+ something else may follow.
            yield run[:-1] if token in ("?", "*") or token[0] == "{" else run
            run = ""
    yield run


def _plain(token: str) -> str:
    """Return the character that ``token`` stands for, empty where it stands for several or for none."""
    if len(token) == 1:
        return "" if token in ".^$*+?()|[{" else token
    return token[1] if token[0] == "\\" and not token[1].isalnum() else ""
