"""The profiles at hand, those that ship and those of this folder, each with what it trains in one line."""

from __future__ import annotations

from pathlib import Path

from doctor.running import find_profile, profile_names
from runner.profile import Profile, ProfileError, load_profile
from runner.text import Text, t


def list_profiles(folder: Path = Path()) -> list[tuple[str, Text]]:
    """Return name (what ``doctor run`` takes) and words of each; files of the folder that are no profile are passed over."""
    shipped = [(name, _words(find_profile(name))) for name in profile_names()]
    own = [(str(path), _words(path)) for path in sorted(folder.glob("*.toml")) if _is_profile(path)]
    return own + shipped


def _is_profile(path: Path) -> bool:
    try:
        load_profile(path)
    except ProfileError as error:
        return any("model" in str(problem) for problem in error.problems) and _names_a_model(path)
    except OSError:
        return False
    return True


def _names_a_model(path: Path) -> bool:
    """Return whether a file with mistakes means to be a profile: it has our sections."""
    text = path.read_text("utf-8", "replace")
    return "[model]" in text and "[data]" in text


def _words(path: Path) -> Text:
    try:
        return describe(load_profile(path))
    except ProfileError as error:
        return error.problems[0]


def describe(profile: Profile) -> Text:
    """Return what a profile trains: the task, the model, the data, how long."""
    model, data, train = profile.model, profile.data, profile.train
    named = model.hub or model.package or (Path(model.path).name if model.path else "")
    what = named or str(model.config.get("model_type", "?"))
    rows = data.hub or data.package or data.function or ", ".join(Path(path).name for path in data.train)
    if train.steps is not None:
        return t(
            "{task} · {model} · {data} · steps: {count}",
            task=model.task,
            model=what,
            data=rows,
            count=train.steps,
        )
    return t(
        "{task} · {model} · {data} · epochs: {count}",
        task=model.task,
        model=what,
        data=rows,
        count=train.epochs,
    )
