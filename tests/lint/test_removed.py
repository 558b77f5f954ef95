"""Names and arguments that a release took away: said where they are gone, silent where they are not."""

from __future__ import annotations

import pytest

from doctor.lint import lint_source
from doctor.tables import load
from doctor.tables.removed_names import removed_name

LLAMA = "from transformers.models.llama.modeling_llama import LlamaFlashAttention2"
STEP_LR = "import torch\ns = torch.optim.lr_scheduler.StepLR(o, 3, verbose=True)"
SFT = "from trl import SFTConfig\na = SFTConfig(max_seq_length=512)"
TF = "import transformers\nm = transformers.TFBertModel.from_pretrained(p)"


def loud(source: str, **versions: str) -> set[str]:
    return {item.id for item in lint_source(source, versions) if item.level in ("fail", "warn")}


@pytest.mark.parametrize(
    ("source", "package", "gone", "there", "finding"),
    [
        (LLAMA, "transformers", "4.48.0", "4.47.1", "removed-import"),
        (TF, "transformers", "5.0.0", "4.57.1", "removed-import"),
        ("from transformers.deepspeed import HfDeepSpeedConfig", "transformers", "4.46.0", "4.45.2", "removed-import"),
        (STEP_LR, "torch", "2.7.0", "2.6.0", "removed-argument"),
        (SFT, "trl", "0.20.0", "0.19.1", "removed-argument"),
    ],
)  # fmt: skip
def test_a_name_is_missed_from_the_release_that_dropped_it(
    source: str, package: str, gone: str, there: str, finding: str
) -> None:
    assert loud(source, **{package: gone}) == {finding}
    assert loud(source, **{package: there}) == set()
    assert loud(source) == set()


@pytest.mark.parametrize(
    "source",
    [
        "try:\n    from transformers import TFBertModel\nexcept ImportError:\n    TFBertModel = None",
        "from transformers import Trainer, TrainerState",
        "from unsloth import FastModel\nfrom trl import SFTConfig\na = SFTConfig(max_seq_length=512)",
        "from trl import SFTConfig\nclass Mine(SFTConfig):\n    max_seq_length: int = 1\na = Mine(max_seq_length=512)",
    ],
    ids=["in a try", "names that are still there", "unsloth's own trainers", "a class of the script"],
)
def test_a_script_that_provides_for_it_is_left_alone(source: str) -> None:
    assert loud(source, transformers="5.2.0", trl="0.24.0") == set()


def test_what_hangs_on_a_module_that_is_gone_is_named_by_the_module() -> None:
    row = removed_name("transformers.deepspeed.HfDeepSpeedConfig")
    assert row is not None and (row.name, row.gone) == ("transformers.deepspeed", "4.46")
    assert removed_name("transformers.Trainer") is None
    assert removed_name("transformers.TFBertModel") is not None
    assert removed_name("transformers.TFidf") is None


def test_no_name_stands_in_two_groups() -> None:
    names = [name for group in load("removed_names")["names"] for name in group.get("names", ())]
    names += [row["name"] for row in load("api_changes")["name"]]
    assert len(names) == len(set(names))
