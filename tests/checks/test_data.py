"""Labels, vocabulary, text files and checkpoints."""

from __future__ import annotations

import pytest

from doctor.model import Data, InspectedFile, Workload
from tests.checks.judged import loud, said, the


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        pytest.param(
            Data(num_labels=2, label_values=(0, 1, 2)), {"label-out-of-range": "fail"}, id="one too many"
        ),
        pytest.param(
            Data(num_labels=3, label_values=(1, 2, 3)), {"label-out-of-range": "fail"}, id="counted from one"
        ),
        pytest.param(
            Data(num_labels=2, label_values=(-1, 1)), {"label-out-of-range": "fail"}, id="a negative label"
        ),
        pytest.param(Data(num_labels=2, label_values=(0, 1, -100)), {}, id="-100 is left out of the loss"),
        pytest.param(Data(num_labels=5, label_values=(0, 1)), {}, id="fewer than there could be"),
        pytest.param(Data(label_values=(0, 7)), {}, id="num_labels unknown"),
        pytest.param(Data(tokenizer_size=256204, embedding_rows=256206), {}, id="padding rows"),
        pytest.param(
            Data(tokenizer_size=32001, embedding_rows=32000),
            {"token-id-out-of-vocab": "fail"},
            id="a token was added",
        ),
        pytest.param(
            Data(tokenizer_size=32001, embedding_rows=32000, max_token_id=31999),
            {"token-id-out-of-vocab": "warn"},
            id="and is not used",
        ),
        pytest.param(
            Data(max_token_id=30600, embedding_rows=30522),
            {"token-id-out-of-vocab": "fail"},
            id="an id beyond the rows",
        ),
        pytest.param(Data(max_token_id=30521, embedding_rows=30522), {}, id="the last row"),
    ],
)
def test_labels_and_tokens(data: Data, expected: dict[str, str]) -> None:
    assert loud(data=data) == expected


def test_the_advice_for_labels_says_what_to_change() -> None:
    assert "subtract 1" in str(
        the("label-out-of-range", data=Data(num_labels=3, label_values=(1, 2, 3))).advice
    )
    assert "num_labels=8" in str(
        the("label-out-of-range", data=Data(num_labels=2, label_values=(0, 7))).advice
    )
    assert "0 .. 1" in str(the("label-out-of-range", data=Data(num_labels=2, label_values=(-1, 1))).advice)


@pytest.mark.parametrize(
    ("unknown", "vanishing", "expected"),
    [
        pytest.param(("“", "…", "—"), (), {"vocab-missing-chinese-punctuation": "warn"}, id="punctuation"),
        pytest.param(("“", "龘"), (), {}, id="rare characters are another matter"),
        pytest.param((), ("　", " ", "\t"), {}, id="white space vanishes by design"),
        pytest.param((), ("龘",), {"chars-without-tokens": "warn"}, id="a character vanishes"),
        pytest.param((), (), {}, id="nothing"),
    ],
)
def test_characters_without_tokens(
    unknown: tuple[str, ...], vanishing: tuple[str, ...], expected: dict[str, str]
) -> None:
    found = loud(
        data=Data(tokenizer="bert-base-chinese", unknown_characters=unknown, vanishing_characters=vanishing)
    )
    assert found == expected


def test_what_cannot_be_seen_is_named_by_its_number() -> None:
    found = the("chars-without-tokens", data=Data(vanishing_characters=("\u200b", "\ue5e5", " ")))
    assert "U+200B U+E5E5" in str(found.title)


def text(path: str, encoding: str, bad_lines: int | None = None, lines: int | None = None) -> Data:
    return Data(
        files=(InspectedFile(path=path, kind="text", encoding=encoding, bad_lines=bad_lines, lines=lines),)
    )


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        pytest.param(text("a.txt", "gb18030"), {"file-encoding-not-utf8": "fail"}, id="GBK"),
        pytest.param(text("a.csv", "utf-16"), {"file-encoding-not-utf8": "fail"}, id="UTF-16"),
        pytest.param(text("a.txt", "utf-8", 0, 100), {}, id="UTF-8"),
        pytest.param(text("a.json", "utf-8-bom"), {"utf8-bom": "fail"}, id="a mark before JSON"),
        pytest.param(text("a.csv", "utf-8-bom"), {"utf8-bom": "warn"}, id="a mark before CSV"),
        pytest.param(
            text("a.jsonl", "mixed", 1, 10_000),
            {"file-partly-corrupt": "fail"},
            id="one broken line of ten thousand",
        ),
        pytest.param(text("a.bin", "binary"), {}, id="no text at all"),
    ],
)
def test_encodings(data: Data, expected: dict[str, str]) -> None:
    assert loud(data=data) == expected


def vocabulary(note: str) -> Data:
    return Data(files=(InspectedFile(path="vocab.txt", kind="vocab", encoding="utf-8", note=note),))


def test_a_vocabulary_with_a_line_separator_fails_only_where_it_is_split() -> None:
    splits = Workload(source="v.py", features=("vocab-splitlines",))
    assert loud(data=vocabulary("one token is U+2028"), workload=splits) == {
        "vocab-file-splitlines-corruption": "fail"
    }
    assert said(data=vocabulary("one token is U+2028")) == {"vocab-file-splitlines-corruption": "note"}
    assert said(data=vocabulary("21128 tokens"), workload=splits) == {}
