"""``doctor check --profile`` and ``--script``: what the purpose names and is not here is said, and counts."""

from __future__ import annotations

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
