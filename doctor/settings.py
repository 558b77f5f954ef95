"""The few settings that are kept: ``~/.config/rundoctor/settings.json``. Unreadable means unset, never an error."""

from __future__ import annotations

import os


def settings_path() -> str:
    """Return the settings file: ``DOCTOR_CONFIG_DIR``, else XDG's config folder."""
    # Spelled out rather than through platformdirs and pathlib: this runs before `doctor --help`.
    home = os.environ.get("DOCTOR_CONFIG_DIR") or (
        (os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")) + "/rundoctor"  # noqa: PTH111
    )
    return f"{home}/settings.json"


def read_setting(name: str) -> str | None:
    """Return a saved setting; None when it was never saved or cannot be read."""
    value = _saved().get(name)
    return value if isinstance(value, str) else None


def _saved() -> dict[str, object]:
    try:
        with open(settings_path(), encoding="utf-8") as file:
            text = file.read()
    except (OSError, ValueError):
        return {}
    import json

    try:
        saved = json.loads(text)
    except ValueError:
        return {}
    return saved if isinstance(saved, dict) else {}


def save_setting(name: str, value: str) -> None:
    """Save a setting. Raises OSError where the home cannot be written."""
    import json
    from pathlib import Path

    path = Path(settings_path())
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(".tmp")
    temporary.write_text(json.dumps({**_saved(), name: value}, indent=1), "utf-8")
    temporary.replace(path)
