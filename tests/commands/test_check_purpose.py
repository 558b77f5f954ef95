"""``doctor check --profile`` and ``--script``: what the purpose names and is not here is said, and counts."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.commands_run import doctor


def test_a_profile_whose_data_is_not_here_is_told_before_the_run_tells_it() -> None:
    done = doctor("check", "--profile", "chinese-sentiment", "--fail-on", "fail")
    assert "data.train: there is no" in done.stderr
    assert done.returncode == 1


@pytest.mark.parametrize("option", ["--profile=", "--script="])
def test_an_empty_name_is_not_taken_for_no_name(option: str) -> None:
    done = doctor("check", option)
    assert done.returncode == 2
    assert done.stdout == ""


def test_a_script_named_without_an_option_is_judged_as_one(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(
        "from transformers import TrainingArguments\nTrainingArguments('out', no_such_argument=1)\n"
    )
    plain = doctor("check", "--json", str(script), "--fail-on", "fail")
    assert "no_such_argument" in plain.stdout
    assert plain.returncode == doctor("check", "--json", "--script", str(script)).returncode


def test_another_file_named_without_an_option_is_refused_with_the_options_there_are(tmp_path: Path) -> None:
    done = doctor("check", str(tmp_path / "machine.json"))
    assert done.returncode == 2
    assert "--facts" in done.stderr and "--profile" in done.stderr
