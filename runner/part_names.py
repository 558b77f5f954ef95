"""What the parts of a step, and what else a training is busy with, are called: by the trainer's clock and by stacks. Pure."""

from __future__ import annotations

from runner.text import t

_NAMES = {
    "data": t("data"),
    "copy": t("copy to GPU"),
    "forward": t("forward"),
    "backward": t("backward"),
    "optimizer": t("optimizer"),
    "evaluation": t("evaluation"),
    "saving": t("saving"),
    "logging": t("logging"),
    "ranks": t("waiting for ranks"),
    "worker": t("loader worker"),
    "other": t("other"),
}


def part_name(part: str) -> str:
    """Return the msgid of a part's name; a name that is none of ours as it stands."""
    return _NAMES[part].msgid if part in _NAMES else part
