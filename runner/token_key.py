"""What decides a run's token ids, as one hash: two runs with the same one may share them."""

from __future__ import annotations

import hashlib

import msgspec

from runner.inputs import file_sha256
from runner.plan import Plan
from runner.rundir import RunDir
from runner.survey import Survey
from runner.token_cache import LAYOUT


def key_of(plan: Plan, run: RunDir, survey: Survey, max_length: int) -> str:
    """Return a hash of everything that decides the ids: the rows, which of them, the tokenizer, the settings."""
    import tokenizers
    import transformers

    model, data = plan.profile.model, plan.profile.data
    content = {
        "rows": {part: digest.hex() for part, digest in survey.digests.items()},
        "fate": {part: hashlib.sha256(fate).hexdigest() for part, fate in survey.fate.items()},
        "classes": survey.classes,
        "task": model.task,
        "max_length": max_length,
        "paired": bool(data.text_pair),
        "packing": plan.profile.train.packing,
        "tokenizer": {
            path.name: file_sha256(path) for path in sorted(run.tokenizer.iterdir()) if path.is_file()
        },
        "made_by": [LAYOUT, tokenizers.__version__, transformers.__version__],
    }
    return hashlib.sha256(msgspec.json.encode(content, order="sorted")).hexdigest()
