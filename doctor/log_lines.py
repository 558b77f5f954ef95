"""What one line of a training log says in numbers: a progress bar, Trainer's dictionary, JSON, ``key=value``. Pure.

A line is read only when it looks like one of these forms; a loss, a learning rate or a metric is taken under the names
that training scripts use. Everything else is not progress, and says nothing.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any

from doctor.log_values import METRICS, NUMBER, in_share, number_in, sorted_values

LONGEST = 4000
"""Characters; no line of progress is longer."""

RESULT_LINE = 160
"""Characters; a result that is told alone (``Test accuracy: 91.2%``) stands in a short line."""

ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")

# Epoch 1:  10%|█         | 50/500 [00:10<01:30,  5.01it/s, loss=0.693]
_BAR = re.compile(
    r"^(?P<title>.*?)(?:\s*\d{1,3}%\|[^|]*\|)\s*(?P<done>\d+)/(?P<total>\d+) "
    r"\[(?P<spent>[\d:]+)<[^,\]]*(?:,\s*(?P<rate>[^,\]]*))?(?P<postfix>(?:,[^\]]*)?)\]"
)
# 'loss': 0.6931   |   'loss': '0.6931'   |   "loss": NaN
_PAIR_IN_DICT = re.compile(rf"""['"]([\w/ .-]+)['"]:\s*['"]?({NUMBER})['"]?(?=\s*[,}}])""", re.IGNORECASE)
# step=100 loss=0.5   |   Step: 100, train loss: 0.5   |   Loss: 0.2345
_PAIR = re.compile(
    rf"([A-Za-z][\w/]*(?: (?:loss|acc|accuracy|lr|norm|rate))?)\s*[=:]\s*({NUMBER})(?![\w:])(\s*%)?",
    re.IGNORECASE,
)
# iter 100: loss 4.2   |   Step [100/600]   |   Batch 10/50   |   step: 100/600
_PLACE = re.compile(
    r"\b(?P<name>global_step|step|iter|iteration|batch|epoch)\s*[=:#]?\s*[\[(]?\s*(?P<done>\d+)"
    r"(?:\s*(?:/|of)\s*(?P<total>\d+))?",
    re.IGNORECASE,
)
# iter 100: loss 4.2103   |   | loss 0.53 | ppl 1.7
_BARE = re.compile(
    rf"\b((?:train|training|val|valid|validation|eval|test)?[ _/]?(?:loss|lr|acc|accuracy))\s+({NUMBER})\b",
    re.IGNORECASE,
)

# epoch 0: {'accuracy': 0.8456, 'f1': 0.8912}
_EPOCHS_RESULT = re.compile(r"\bepoch\s*(\d+)\s*:\s*(\{[^{}]*\})$", re.IGNORECASE)
# Test set: Average loss: 0.0512, Accuracy: 9825/10000 (98%)
_TITLED_RESULT = re.compile(r"(?:^|[\s\]>-])(?:test|valid|validation|val|eval|evaluation|dev)(?: set| results?)?\s*:\s(?P<rest>.+)$", re.IGNORECASE)  # fmt: skip
_FRACTION = re.compile(r"\baccuracy\s*[=:]\s*(\d+)/(\d+)", re.IGNORECASE)


@dataclass(frozen=True)
class Said:
    """What a line said; absent: it did not say it."""

    done: int | None = None
    """The position it names: a step, or a place within an epoch (:attr:`total`)."""
    total: int | None = None
    is_bar: bool = False
    title: str = ""
    """What stands before a progress bar."""
    epoch: float | None = None
    epochs: int | None = None
    """How many there will be: ``Epoch 1/3``."""
    values: dict[str, float] = field(default_factory=dict)
    """``loss lr grad_norm`` of training."""
    evaluation: dict[str, float] = field(default_factory=dict)

    @property
    def is_progress(self) -> bool:
        return bool(self.values or self.evaluation or (self.is_bar and self.done is not None))


def read_line(line: str) -> Said | None:
    """Return what ``line`` says of a training's progress; None: nothing that is recognised."""
    if len(line) > LONGEST:
        return None
    text = " ".join(ESCAPES.sub("", line).split())
    bar = _BAR.search(text)
    if bar is not None:
        return _from_bar(bar)
    if text.startswith("{") and text.endswith("}"):
        said = _from_json(text) or _from_dict(text)
    else:
        said = _epochs_result(text) or _from_words(text) or _titled_result(text)
    return said if said is not None and said.is_progress else None


def _from_bar(match: re.Match[str]) -> Said:
    title = match["title"].strip().rstrip(":")
    words = f"{title} {match['postfix'] or ''}"
    pairs: dict[str, Any] = {found[1]: in_share(found[2], found[3]) for found in _PAIR.finditer(words)}
    values, evaluation, _ = sorted_values(pairs)
    # Downloads and file reads count bytes or examples: 440M/440M [00:05<00:00, 80.1MB/s], 1000 examples/s
    counts_steps = (match["rate"] or "").strip().endswith(("it/s", "s/it"))
    return Said(
        done=int(match["done"]) if counts_steps else None,
        total=int(match["total"]) if counts_steps else None,
        is_bar=True,
        title=title,
        values=values,
        evaluation=evaluation,
    )


def _from_json(text: str) -> Said | None:
    try:
        tree = json.loads(text)
    except ValueError:
        return None
    return _from_pairs({str(name): value for name, value in tree.items()}) if isinstance(tree, dict) else None


def _from_dict(text: str) -> Said | None:
    return _from_pairs(dict(_PAIR_IN_DICT.findall(text)))


def _from_pairs(pairs: dict[str, Any]) -> Said | None:
    values, evaluation, done = sorted_values(pairs)
    if not values and not evaluation:
        return None
    return Said(done=done, epoch=number_in(pairs.get("epoch")), values=values, evaluation=evaluation)


def _epochs_result(text: str) -> Said | None:
    found = _EPOCHS_RESULT.search(text)
    if found is None:
        return None
    evaluation = _known(dict(_PAIR_IN_DICT.findall(found[2])))
    return Said(epoch=float(found[1]), evaluation=evaluation) if evaluation else None


def _titled_result(text: str) -> Said | None:
    """Read a short line whose title says that it is a result."""
    found = _TITLED_RESULT.search(text)
    if found is None or len(text) > RESULT_LINE:
        return None
    evaluation = _known({pair[1]: in_share(pair[2], pair[3]) for pair in _PAIR.finditer(found["rest"])})
    if (fraction := _FRACTION.search(text)) and int(fraction[2]):
        evaluation |= {"accuracy": int(fraction[1]) / int(fraction[2]), "samples": float(fraction[2])}
    return Said(evaluation=evaluation) if evaluation else None


def _known(pairs: dict[str, Any]) -> dict[str, float]:
    """Return the metrics among ``pairs``, whatever a loss is called."""
    named = {name: number_in(value) for name, value in sorted_values(_as_evaluation(pairs))[1].items()}
    return {name: value for name, value in named.items() if value is not None and name in METRICS}


def _as_evaluation(pairs: dict[str, Any]) -> dict[str, Any]:
    # Average loss -> eval_loss, Accuracy -> eval_accuracy
    return {
        f"eval_{re.sub(r'^(?:average|avg|mean) ', '', name.lower())}": value for name, value in pairs.items()
    }


def _from_words(text: str) -> Said | None:
    """Read ``key=value`` words; without a place (a step, a batch or an epoch) only a short line with a known metric counts."""
    places = {match["name"].lower(): match for match in _PLACE.finditer(text)}
    pairs: dict[str, Any] = dict(_BARE.findall(text))
    pairs.update({match[1]: in_share(match[2], match[3]) for match in _PAIR.finditer(text)})
    values, evaluation, done = sorted_values(pairs)
    place = next(
        (places[name] for name in ("global_step", "step", "iter", "iteration", "batch") if name in places),
        None,
    )
    epoch = places.get("epoch")
    if "loss" not in values and not evaluation:
        return None
    if not (place or epoch or done is not None):
        known = {name: value for name, value in evaluation.items() if name in METRICS}
        return Said(evaluation=known) if known and len(text) <= RESULT_LINE else None
    if place is not None:
        done = int(place["done"])
    total = int(place["total"]) if place and place["total"] else None
    return Said(
        done=done,
        total=total,
        epoch=float(epoch["done"]) if epoch else None,
        epochs=int(epoch["total"]) if epoch and epoch["total"] else None,
        values=values,
        evaluation=evaluation,
    )
