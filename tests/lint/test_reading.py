"""A script that Python cannot read: said aloud, and a failure only where the interpreter that will run it cannot either."""

from __future__ import annotations

import cProfile
import json
import subprocess
import sys
from pathlib import Path

import pytest

from doctor.commands.reading import script_or_complaint
from doctor.judge import judge
from doctor.lint import lint_source, read_script
from doctor.lint.reader import without_magic
from doctor.model import Facts, Python, Snapshot, ok
from doctor.purpose import judge_for_script
from doctor.render.text import brief_line

OURS = ".".join(map(str, sys.version_info[:2]))
NEWER = f"3.{sys.version_info[1] + 1}"
PY2 = "import torch\nprint 'start'\n"


def machine(python: str | None) -> Snapshot:
    return Snapshot(facts=Facts(python=ok(Python(version=python))))


@pytest.mark.parametrize(
    ("python", "level"),
    [
        pytest.param(f"{OURS}.4", "fail", id="as new as ours"),
        pytest.param("3.8.18", "fail", id="older, of the same grammar"),
        pytest.param(NEWER, "unknown", id="newer: it may know more"),
        pytest.param("3.6.15", "unknown", id="async was a name there"),
        pytest.param("2.7.18", "unknown", id="it may be its own"),
        pytest.param(None, "unknown", id="not known"),
    ],
)
def test_what_the_interpreter_cannot_read_is_a_failure(python: str | None, level: str) -> None:
    (found,) = lint_source(PY2, {}, "py2.py", machine(python))
    assert (found.id, found.level, found.subject) == ("syntax-error", level, "py2.py:2")


def test_a_cell_of_another_language_is_no_failure() -> None:
    bash = '{"cells": [{"cell_type": "code", "source": ["%%bash\\n", "for f in *; do echo $f; done"]}]}'
    assert lint_source(bash, {}, "a.ipynb", machine(OURS)) == []
    (found,) = lint_source(bash.replace("%%bash", "# R"), {}, "a.ipynb", machine(OURS))
    assert found.level == "unknown"


def test_a_line_that_begins_with_a_percent_sign_is_code_where_it_is_code() -> None:
    source = 'print(\n    "%s of %s"\n    % (len("a"),\n       len("b"))\n)\n'
    assert lint_source(source, {}, "s.py", machine(OURS)) == []
    assert lint_source("%pip install torch\nimport torch\n", {}, "s.py", machine(OURS)) == []


@pytest.mark.parametrize("python", [OURS, NEWER])
def test_one_line_for_the_login_says_that_the_script_cannot_be_read(python: str) -> None:
    _, report = judge_for_script(machine(python), PY2, "py2.py")
    line = brief_line(report)
    assert "py2.py:2" in line
    assert "nothing wrong" not in line


def test_one_line_for_the_login_is_content_where_nothing_is_unknown() -> None:
    assert "nothing wrong found" in brief_line(judge(machine(OURS)))


@pytest.mark.parametrize(
    ("content", "line"),
    [
        pytest.param("import sys\n# 训练\nx = 1\n".encode("gbk"), 2, id="a Chinese comment as GBK"),
        pytest.param("x = '训练'\n".encode("gbk"), 1, id="a string as GBK"),
        pytest.param("# -*- coding: ascii -*-\n\nx = '训练'\n".encode(), 3, id="another encoding than declared"),
        pytest.param("# -*- coding: gbk -*-\nx = '训练'\n".encode("gbk"), None, id="GBK, declared"),
        pytest.param("#!/usr/bin/env python\n# coding=gb18030\nx = '训练'\n".encode("gbk"), None, id="in the second line"),
        pytest.param("x = '训练 \ufffd'\n".encode(), None, id="UTF-8 with a replacement character of its own"),
        pytest.param(b"\xef\xbb\xbf" + "x = '训练'\n".encode(), None, id="with a mark"),
    ],
)  # fmt: skip
def test_bytes_that_the_encoding_does_not_allow(tmp_path: Path, content: bytes, line: int | None) -> None:
    path = tmp_path / "train.py"
    path.write_bytes(content)
    found = [
        item
        for item in lint_source(script_or_complaint(path), {}, "train.py", machine(OURS))
        if item.level == "fail"
    ]
    assert [(item.id, item.subject) for item in found] == (
        [("script-not-decodable", f"train.py:{line}")] if line else []
    )
    if line == 2 and sys.version_info < (3, 11):
        return  # a comment is passed over there
    ran = subprocess.run([sys.executable, "-I", "-S", path], capture_output=True, text=True, check=False)
    assert ("SyntaxError" in ran.stderr) is (line is not None), ran.stderr


@pytest.mark.parametrize(("python", "level"), [("3.10.13", "note"), ("3.12.1", "fail"), (None, "warn")])
def test_a_comment_in_another_encoding_counts_from_python_3_11_on(
    tmp_path: Path, python: str | None, level: str
) -> None:
    path = tmp_path / "train.py"
    path.write_bytes("x = 1  # 训练\n".encode("gbk"))
    (found,) = lint_source(script_or_complaint(path), {}, "train.py", machine(python))
    assert (found.id, found.level) == ("script-not-decodable", level)


@pytest.mark.parametrize(
    ("line", "python"),
    [
        ("files = !ls *.txt", "files = None"),
        ("out, err = %time f()", "out, err = None"),
        ("    !nvidia-smi", "    pass"),
        ("%pip install torch", "pass"),
        ("model.fit?", "pass"),
        ("x = a % b", "x = a % b"),
        ("# why?", "# why?"),
    ],
)
def test_a_magic_does_nothing(line: str, python: str) -> None:
    assert without_magic(line) == python


def test_cells_for_other_programs_are_left_out() -> None:
    cells = ["%%bash\nls | grep x\n", "if gpu:\n    !nvidia-smi\n", "%%time\nimport torch\nx = !ls\n"]
    tree = {"cells": [{"cell_type": "code", "source": cell} for cell in cells], "nbformat": 4}
    script = read_script(json.dumps(tree), "a.ipynb")
    assert script.imports == {"torch": "torch"}


def test_what_the_parser_has_no_memory_for_is_nested_too_deeply() -> None:
    (found,) = lint_source("x = " + "-" * 200_000 + "1", path="deep.py")
    assert (found.id, found.level) == ("syntax-error", "unknown")


def test_a_script_of_many_loads_is_read_in_time_that_grows_with_it() -> None:
    """Steps counted, not seconds: ten times the script may take no more than twenty times as many."""

    def steps(loads: int) -> int:
        source = "import torch\n" + "\n".join(
            f"def f{n}():\n    return torch.load('a')" for n in range(loads)
        )
        profile = cProfile.Profile()
        profile.runcall(lint_source, source, {"torch": "2.6.0"})
        return sum(row.callcount for row in profile.getstats())

    lint_source("x = 1")
    assert steps(300) < 20 * steps(30)
