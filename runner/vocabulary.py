"""A WordPiece vocabulary made from the training texts, the same on every machine: counts, then names, decide.
Pure.

For a model from scratch. Every character that occurs is in it (as a word's beginning and as its
continuation), then the most frequent words, so that nothing of the training texts becomes ``[UNK]``.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator

SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
_PRUNE_AT = 2_000_000
_PIECE = 1 << 20
_WORD = re.compile(r"\w+|[^\w\s]")


def words_of(text: str) -> list[str]:
    """Cut as BERT's lower-casing tokenizer does: no accents, every CJK character a word."""
    plain = "".join(c for c in unicodedata.normalize("NFD", text.lower()) if unicodedata.category(c) != "Mn")
    return [piece for word in _WORD.findall(plain) for piece in _apart(word)]


def _apart(word: str) -> list[str]:
    return list(word) if any("\u3400" <= c <= "\u9fff" for c in word) else [word]


def before_a_blank(text: str, size: int) -> str:
    """Return the beginning of a text, about ``size`` characters, that ends where a word does; all of it, where none does."""
    blank = re.compile(r"\s").search(text, size)
    return text[: blank.start()] if blank else text


def pieces_of(text: str) -> Iterator[str]:
    """Yield a text in pieces of whole words: one of many megabytes takes fifty times as much when it is counted at once."""
    while len(text) > _PIECE:
        piece = before_a_blank(text, _PIECE)
        yield piece
        text = text[len(piece) :]
    yield text


def make_vocabulary(texts: Iterable[str], size: int) -> list[str]:
    """Return at most ``size`` tokens, special ones first; id = position."""
    words: Counter[str] = Counter()
    for text in texts:
        for piece in pieces_of(text):
            words.update(words_of(piece))
        if len(words) > _PRUNE_AT:
            words = Counter({word: count for word, count in words.items() if count > 1})
    characters: Counter[str] = Counter()
    for word, count in words.items():
        for position, character in enumerate(word):
            characters["##" + character if position else character] += count
    tokens = dict.fromkeys(SPECIAL_TOKENS)
    for counted in (characters, words):
        for token, _ in sorted(counted.items(), key=lambda item: (-item[1], item[0])):
            if len(tokens) >= size:
                break
            tokens.setdefault(token)
    return list(tokens)
