"""What the system and libraries say reaches a Chinese reader in Chinese, with the original behind it to search for."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from doctor.language import say, use_language
from runner.text import t
from runner.tomltree import read_toml


@pytest.fixture(autouse=True)
def _chinese() -> Iterator[None]:
    use_language("zh")
    yield
    use_language("en")


def said(error: str) -> str:
    return say(t("cannot read {file}: {error}", file="a.txt", error=error))


@pytest.mark.parametrize(
    "number",
    [
        getattr(errno, name)
        for name in (
            "ENOENT", "EACCES", "EPERM", "ENOSPC", "EDQUOT", "EROFS", "EIO", "EISDIR", "ENOTDIR", "EEXIST", "ENOTEMPTY",
            "ENAMETOOLONG", "EFBIG", "EMFILE", "ENFILE", "ELOOP", "ENOMEM", "EAGAIN", "EBUSY", "ETXTBSY", "ESTALE",
            "ENOTCONN", "ENOEXEC", "E2BIG", "EINVAL", "EXDEV", "EOPNOTSUPP", "ENOSYS", "ESRCH", "ENXIO", "ENODEV",
            "EPIPE", "ECONNREFUSED", "ECONNRESET", "ETIMEDOUT", "ENETUNREACH", "EHOSTUNREACH", "EADDRINUSE",
        )
    ],
    ids=errno.errorcode.get,
)  # fmt: skip
@pytest.mark.parametrize(
    "form", ["{}", "[Errno 9] {}", "[Errno 9] {}: '/data/x'"], ids=["bare", "numbered", "of a file"]
)
def test_what_the_system_says_stands_behind_its_meaning(number: int, form: str) -> None:
    words = form.format(os.strerror(number))
    before, bracket, after = said(words).partition("（")
    assert bracket and after == f"{words}）"
    assert os.strerror(number) not in before and before.removeprefix("无法读取 a.txt：") != before


def library_errors() -> Iterator[tuple[str, str]]:
    try:
        msgspec.convert("x", float)
    except msgspec.ValidationError as error:
        yield str(error), "这里应为 float 类型，实际是 str 类型"
    try:
        json.loads('{"a": }')
    except ValueError as error:
        yield str(error), "第 1 行第 7 列写得不对"
    try:
        compile("print(", "x", "exec")
    except SyntaxError as error:
        yield error.msg, "括号 ( 没有闭合"
    try:
        b"\xff\xfe".decode()
    except UnicodeDecodeError as error:
        yield str(error), "文字编码不符，位置 0 处的字节 0xff 无法解码"


@pytest.mark.parametrize(("words", "meaning"), library_errors(), ids=lambda value: value[:30])
def test_what_a_library_says_stands_behind_its_meaning(words: str, meaning: str) -> None:
    assert said(words) == f"无法读取 a.txt：{meaning}（{words}）"


def test_a_mistake_in_a_profile_is_said_in_chinese(tmp_path: Path) -> None:
    (tmp_path / "p.toml").write_text("[train\nlr = 1\n")
    _, (problem,) = read_toml(tmp_path / "p.toml")
    assert "第 1 行第 7 列写得不对（" in say(problem)


@pytest.mark.parametrize(
    "words", ["some words that nobody knows", "没有这个文件（No such file or directory）", ""]
)
def test_what_is_not_known_or_translated_already_stays_as_it_is(words: str) -> None:
    assert said(words) == f"无法读取 a.txt：{words}"


def test_in_english_nothing_is_put_before_it() -> None:
    use_language("en")
    assert said("No such file or directory") == "cannot read a.txt: No such file or directory"


def test_a_path_that_holds_such_words_is_no_message() -> None:
    words = say(t("cannot read {file}: {error}", file="No such file or directory", error="x"))
    assert words == "无法读取 No such file or directory：x"


def test_why_the_driver_library_was_not_loaded_is_said_in_chinese() -> None:
    message = "cannot open shared object file: No such file or directory"
    words = say(t("libnvidia-ml.so.1 could not be loaded: {message}", message=message))
    assert words.endswith(f"找不到共享库（{message}）")
