"""What a profile trains on, looked at before any run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from runner.data_page import DataPage


def data_page(profile: str, overrides: Sequence[str]) -> DataPage:
    """Read a profile's rows and say what is odd about them.

    Raises:
        doctor.launch.LaunchError: no such profile.
        runner.profile.ProfileError: with every mistake of the profile.
    """
    from doctor.running import find_profile
    from runner.data_page import data_page as page_of
    from runner.profile import load_profile

    return page_of(load_profile(find_profile(profile), tuple(overrides)))
