"""A profile with some keys set anew: the rest stays to the letter."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from doctor.bench_write import write_changed
from doctor.launch import LaunchError
from doctor.profile_edit import with_keys
from runner.profile import load_profile
from runner.tomltree import read_toml
from tests.runner.tiny import PROFILE

TEXT = """\
# why this run is
[run]
name = "p"  # short

[model.files]
"a.bin" = "x"

[train]
# the card is small
batch_size = 8
precision = "auto"  # as the card can

[alerts]
bell = true
"""


@pytest.mark.parametrize(
    ("settings", "section", "expected"),
    [
        ({"train.precision": "bf16"}, "train", {"batch_size": 8, "precision": "bf16"}),
        ({"train.compile": True}, "train", {"batch_size": 8, "precision": "auto", "compile": True}),
        ({"train.batch_size": None}, "train", {"precision": "auto"}),
        ({"data.train": ["/a b.csv", "/中文.csv"]}, "data", {"train": ["/a b.csv", "/中文.csv"]}),
        ({"model.attention": "sdpa"}, "model", {"files": {"a.bin": "x"}, "attention": "sdpa"}),
    ],
    ids=["replaced", "added", "taken out", "new section", "a section that only has sub-sections"],
)
def test_a_key_is_set_where_it_belongs(
    tmp_path: Path, settings: dict[str, Any], section: str, expected: Any
) -> None:
    changed = with_keys(TEXT, settings)
    (tmp_path / "p.toml").write_text(changed)
    tree = read_toml(tmp_path / "p.toml")[0].values
    assert tree[section] == expected
    assert (
        tree["alerts"] == {"bell": True}
        and "# the card is small" in changed
        and "# why this run is" in changed
    )


def test_the_written_profile_is_the_measured_one_wherever_it_lies(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("text,label\na,0\nb,1\n")
    source, target = tmp_path / "p.toml", tmp_path / "elsewhere" / "fast.toml"
    source.write_text(PROFILE)
    target.parent.mkdir()
    write_changed(source, ["train.lr=2e-3"], {"train.precision": "bf16", "train.workers": 2}, target)
    found = load_profile(target)
    assert (found.train.precision, found.train.workers, found.train.lr) == ("bf16", 2, 2e-3)
    assert found.data.train == load_profile(source).data.train
    assert [path.name for path in target.parent.iterdir()] == ["fast.toml"]


@pytest.mark.parametrize(
    ("line", "written"),
    [
        ('precision = "auto"  # as the card can', 'precision = "bf16"  # as the card can'),
        ('  precision = "a#b" # why', '  precision = "bf16" # why'),
        ("precision = 'auto'", 'precision = "bf16"'),
    ],
    ids=["comment", "a number sign in the value, and an indent", "no comment"],
)
def test_the_comment_and_the_indent_of_a_changed_line_stay(line: str, written: str) -> None:
    assert with_keys(f"[train]\n{line}\n", {"train.precision": "bf16"}) == f"[train]\n{written}\n"


def test_beside_its_source_a_written_profile_keeps_every_other_line(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("text,label\na,0\nb,1\n")
    (tmp_path / "p.toml").write_text(PROFILE)
    write_changed(tmp_path / "p.toml", [], {"train.precision": "bf16"}, tmp_path / "q.toml")
    before, after = PROFILE.splitlines(), (tmp_path / "q.toml").read_text().splitlines()
    assert [line for line in before if line not in after] == ['precision = "fp32"']


def test_a_file_that_is_there_is_not_written_over(tmp_path: Path) -> None:
    (tmp_path / "p.toml").write_text(PROFILE)
    with pytest.raises(LaunchError, match="another name"):
        write_changed(tmp_path / "p.toml", [], {"train.workers": 2}, tmp_path / "p.toml")
