"""The trained model that a verb's first argument names: a run, a folder, or an ONNX file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from doctor.commands import CommandError, Exit
from doctor.commands.export_share import is_repository
from doctor.commands.run_resume import no_such_run
from runner.text import t

if TYPE_CHECKING:
    from doctor.model_source import Source

SHORTEST_TOKENS = 4
"""As train.max_length: a mark before and after each of two texts."""


def source_named(name: str, checkpoint: str) -> Source:
    """Return the model that ``name`` means. Raises CommandError."""
    from doctor import service
    from doctor.launch import LaunchError

    try:
        return service.find_model(name, checkpoint)
    except FileNotFoundError as error:
        if is_repository(name):
            raise CommandError(t("there is neither a run nor a folder {name}; a model of the hub is fetched first: hf download {name} --local-dir DIR, "
                                 "then name DIR", name=name), Exit.USAGE) from None  # fmt: skip
        raise CommandError(no_such_run(name, error), Exit.USAGE) from None
    except LaunchError as error:
        raise CommandError(error.text) from None


def require_length(tokens: int | None) -> None:
    """Refuse a --max-length that leaves no room for a text beside the marks around it. Raises CommandError."""
    if tokens is not None and tokens < SHORTEST_TOKENS:
        raise CommandError(
            t("--max-length takes a number from {least} up", least=SHORTEST_TOKENS), Exit.USAGE
        )
