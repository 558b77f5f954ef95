"""Searching a long log by plain strings first finds exactly what searching it by patterns finds."""

from __future__ import annotations

import random
import re

import pytest

from doctor.explain import extract_last_error
from doctor.explain.match import ERROR_LINE, all_patterns, last_match, matches
from doctor.explain.words import CHUNK, required_words, stays_in_line, vocabulary
from tests.explain.test_patterns import raw_lines

NOISE = (
    "{'loss': 0.6931, 'grad_norm': 1.25, 'learning_rate': 1e-05, 'epoch': 0.5}\n",
    "\r 45%|████▌     | 450/1000 [00:12<00:15,  3.5it/s]",
    "[rank0]: NCCL INFO Channel 00/02 : 0[0] -> 1[1] via P2P/CUMEM\n",
    "INFO exit hooks are registered; unable to say more\r\n",
    "UserWarning: error bars are off\n  warnings.warn(\n",
    "训练进行中，第 12 步\n",
    "finance nan, exit code\n0\n",
    "\n",
)


@pytest.mark.parametrize(
    ("regex", "words"),
    [
        (r"no kernel image|cudaErrorNoKernelImageForDevice", ("no kernel image", "cudaErrorNoKernelImageForDevice")),
        (r"[Ee]rror 804", ("rror 804",)),
        (r"found version (?P<found>\d+)\)", ("found version ",)),
        (r"^Killed$", ("Killed",)),
        (r"\bOOMKilled\b|x", ()),
        (r"sizes\[i\] <= index", ("sizes[i] <= index",)),
        (r"(?:a|b) is required", (" is required",)),
        (r"colou?r of it", ("r of it",)),
        (r"lines? +until", ("until",)),
        (r"exit(?:ed with)?[ _]?(?:code|status)", ("exit",)),
        (r"(?i)killed", ()),
        (r"\d+|[abc]def", ()),
        (r"\d+|[abc]defg", ()),
    ],
)  # fmt: skip
def test_the_strings_that_a_pattern_needs(regex: str, words: tuple[str, ...]) -> None:
    assert required_words(regex) == words


def test_no_pattern_of_the_table_is_searched_for_without_a_string() -> None:
    assert [item.id for item in all_patterns() if not required_words(item.regex)] == []


@pytest.mark.parametrize(
    ("regex", "stays"),
    [(r"a.*b", True), (r"a\s*b", False), (r"'[^']*'", False), (r"'[^'\n]*'", True), (r"a\nb", False)],
)
def test_whether_a_match_may_hold_the_end_of_a_line(regex: str, stays: bool) -> None:
    assert stays_in_line(regex) is stays


@pytest.mark.parametrize("seed", range(8))
def test_the_last_match_is_the_one_that_a_whole_search_finds(seed: int) -> None:
    chosen = random.Random(seed)
    raw = [line for _, line in raw_lines()]
    text = "".join(
        chosen.choice(raw) + chosen.choice(("\n", "\n", "\r", "")) if chosen.random() < 0.3 else chosen.choice(NOISE)
        for _ in range(200)
    )  # fmt: skip
    for pattern in all_patterns():
        hits = list(re.finditer(pattern.regex, text, re.MULTILINE))
        found = last_match(pattern.regex, text, vocabulary(text))
        assert (found and found.span()) == (hits[-1].span() if hits else None), pattern.id


def test_in_a_long_log_the_same_is_found_as_in_its_end() -> None:
    end = "RuntimeError: CUDA error: device-side assert triggered\nOSError: [Errno 122] Disk quota exceeded\n"
    noise = "".join(NOISE[:-2])
    long = noise * (CHUNK // len(noise) + 100) + end
    assert len(long) > CHUNK and vocabulary(long) != long
    assert (
        {item.id for item in matches(long)}
        == {item.id for item in matches(end)}
        == {"device-assert", "quota"}
    )


@pytest.mark.parametrize("line", [line for _, line in raw_lines() if ERROR_LINE.search(line)])
def test_the_last_line_of_an_error_is_found_before_later_noise(line: str) -> None:
    assert extract_last_error(f"first\n{line}\n450/1000 [00:12<00:15]\n") == line.strip()[:500]
