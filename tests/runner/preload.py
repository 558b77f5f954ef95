"""Imported once by the process that forks trainers for the kill tests."""

import runner.trainer  # noqa: F401
