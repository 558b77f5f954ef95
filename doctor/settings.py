"""The few settings that are kept: ``~/.config/rundoctor/settings.json``. Unreadable means unset, never an error."""

from __future__ import annotations

import json
import os
from pathlib import Path


def settings_path() -> Path:
    """Return the settings file: ``DOCTOR_CONFIG_DIR``, else XDG's config folder."""
    # Spelled out rather than through platformdirs: this runs before `doctor --help`.
    home = os.environ.get("DOCTOR_CONFIG_DIR") or (
        (os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")) + "/rundoctor"  # noqa: PTH111
    )
    return Path(home) / "settings.json"


def read_setting(name: str) -> str | None:
    """Return a saved setting; None when it was never saved or cannot be read."""
    try:
        saved = json.loads(settings_path().read_text("utf-8"))
    except (OSError, ValueError):
        return None
    value = saved.get(name) if isinstance(saved, dict) else None
    return value if isinstance(value, str) else None


def save_setting(name: str, value: str) -> None:
    """Save a setting. Raises OSError where the home cannot be written."""
    path = settings_path()
    try:
        saved = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        saved = {}
    saved = {**(saved if isinstance(saved, dict) else {}), name: value}
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(".tmp")
    temporary.write_text(json.dumps(saved, indent=1), "utf-8")
    os.replace(temporary, path)  # noqa: PTH105
