"""CUDA_VISIBLE_DEVICES set in a script: a warning only where CUDA may have read it before."""

from __future__ import annotations

import pytest

from doctor.lint import lint_source

NOW = {"torch": "2.6.0", "transformers": "4.51.3"}
SET = "os.environ['CUDA_VISIBLE_DEVICES'] = '1'\n"
USE = "model = torch.nn.Linear(4, 4).to('cuda')\n"


def late(source: str, versions: dict[str, str]) -> bool:
    return "cuda-visible-devices-set-late" in [item.id for item in lint_source(source, versions)]


WORKS = {
    "torch-alone": f"import os, torch\n{SET}{USE}",
    "transformers-imported": f"import os, torch\nfrom transformers import AutoModel\n{SET}{USE}",
    "seeded-before": f"import os, torch\ntorch.cuda.manual_seed_all(1)\n{SET}{USE}",
    "under-main-guard": f"import os, torch\nif __name__ == '__main__':\n    {SET}    {USE}",
    "in-main": f"import os, torch\ndef main():\n    {SET}    {USE}main()\n",
    "used-in-a-function-defined-above": f"import os, torch\ndef fit():\n    {USE}{SET}fit()\n",
    "moved-to-the-cpu": f"import os, torch\nx = torch.ones(2).to('cpu')\n{SET}{USE}",
}
TOO_LATE = {
    "asked-before": f"import os, torch\ndevice = 'cuda' if torch.cuda.is_available() else 'cpu'\n{SET}",
    "model-on-the-card-before": f"import os, torch\n{USE}{SET}",
    "own-function-before": f"import os, torch\ndef fit():\n    {USE}fit()\n{SET}",
    "library-that-asks": f"import os, torch, deepspeed\n{SET}{USE}",
    "function-of-an-unknown-caller": f"import os, torch\ndef pick():\n    {SET}",
    "within-a-method": f"import os, torch\nclass A:\n    def f(self):\n        {SET}A().f()\n",
    "asked-before-main": f"import os, torch\nn = torch.cuda.device_count()\ndef main():\n    {SET}main()\n",
}


@pytest.mark.parametrize("source", WORKS.values(), ids=list(WORKS))
def test_where_it_still_works_nothing_is_said(source: str) -> None:
    assert not late(source, NOW)


@pytest.mark.parametrize("source", TOO_LATE.values(), ids=list(TOO_LATE))
def test_where_cuda_may_have_read_it_a_warning_is_given(source: str) -> None:
    assert late(source, NOW)


@pytest.mark.parametrize(
    ("versions", "warned"),
    [
        ({}, True),
        ({"torch": "1.12.0"}, True),
        ({"torch": "1.12.1"}, False),
        ({"torch": "2.6.0+cu124"}, False),
    ],
    ids=["unknown", "1.12.0-asks-at-import", "1.12.1", "2.6"],
)
def test_the_release_of_torch_decides(versions: dict[str, str], warned: bool) -> None:
    assert late(WORKS["torch-alone"], versions) is warned


@pytest.mark.parametrize(("version", "warned"), [("4.30.0", True), ("4.38.2", False), ("5.24.0", False)])
def test_of_transformers_the_traced_releases_are_trusted(version: str, warned: bool) -> None:
    assert late(WORKS["transformers-imported"], NOW | {"transformers": version}) is warned
