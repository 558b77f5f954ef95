"""TorchFix's rules beside ours: merged once a line, levels by what they mean, silent where it is not there."""

from __future__ import annotations

import pytest

from doctor.lint import lint_source
from doctor.lint.torchfix import is_installed, torchfix_findings

pytestmark = pytest.mark.skipif(
    not is_installed(), reason="TorchFix is not installed (extra torchfix; it holds libcst to older releases)"
)

NOW = {"torch": "2.13.0", "transformers": "5.24.0"}


def said(source: str) -> list[tuple[str, str]]:
    found = torchfix_findings(source, "s.py", lint_source(source, NOW, "s.py"))
    return [(item.subject.split()[-1], item.level) for item in found]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        pytest.param("import torch\nx = torch.symeig(a)", [("TOR001", "warn")], id="removed"),
        pytest.param("import torch\nx = torch.ger(a, b)", [("TOR101", "note")], id="deprecated"),
        pytest.param("import torch\np.require_grad = False", [("TOR002", "warn")], id="a misspelt attribute"),
        pytest.param("import torch\nx = torch.outer(a, b)", [], id="right"),
        pytest.param("x = 1", [], id="nothing of torch"),
        pytest.param("import torch\nx = torch.ger(a, b)  # doctor: ignore[torchfix]", [], id="silenced"),
        pytest.param("import torch\nx = = 1", [], id="not Python: lint says so itself"),
    ],
)
def test_its_findings_have_levels_by_what_they_mean(source: str, expected: list[tuple[str, str]]) -> None:
    assert said(source) == expected


def test_a_line_of_which_our_rule_spoke_is_left_to_it() -> None:
    source = "import torch\nc = torch.load(p)\na = c['args']"
    ours = lint_source(source, NOW, "s.py")
    assert [item.id for item in ours] == ["torch-load-weights-only-default"]
    assert torchfix_findings(source, "s.py", ours) == []
    assert [item.subject.split()[-1] for item in torchfix_findings(source, "s.py", [])] == ["TOR102"]
