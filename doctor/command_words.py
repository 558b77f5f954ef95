"""A command taken apart: its options by name, so that two commands can be held against each other. Pure."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

# --lr | -b | --per_device_train_batch_size=16
_OPTION = re.compile(r"^(--?[A-Za-z][\w.-]*)(?:=(.*))?$", re.DOTALL)
# optim.lr=0.1   ++model.width=64        (hydra, OmegaConf)
_SETTING = re.compile(r"^[+~]{0,2}([A-Za-z_][\w./-]*)=(.*)$", re.DOTALL)
# a negative number is a value, not an option: --margin -0.5
_NUMBER = re.compile(r"^-[\d.]")


def words_by_name(command: str) -> dict[str, str]:
    """Return ``command`` (a shell line) as its options with their values, and what is left of it under ``command``.

    An option without a value has ``yes``. Of one that is given twice the values stand side by side.
    """
    try:
        words = shlex.split(command)
    except ValueError:  # what was hidden in it took a quotation mark along
        return {"command": command}
    found: dict[str, str] = {}
    rest: list[str] = []
    for name, value in _parts(words):
        if name:
            found[name] = f"{found[name]} {value}" if name in found else value
        else:
            rest.append(value)
    return {"command": shlex.join(rest), **found}


def _parts(words: list[str]) -> Iterator[tuple[str, str]]:
    """Yield (option, value), or ("", word) for a word that belongs to no option."""
    index = 0
    while index < len(words):
        word, index = words[index], index + 1
        option, setting = _OPTION.match(word), _SETTING.match(word)
        if option is None:
            yield (setting[1], setting[2]) if setting and index > 1 else ("", word)
        elif option[2] is not None:
            yield option[1], option[2]
        elif option[1] in ("-m", "-c"):  # python -m package, bash -c words: part of what is started
            yield "", word
        elif index < len(words) and _is_value(words[index]):
            yield option[1], words[index]
            index += 1
        else:
            yield option[1], "yes"


def _is_value(word: str) -> bool:
    return bool(_NUMBER.match(word)) or (not word.startswith("-") and not re.search(r"\.(?:py|sh)$", word))
