"""Checks on training. Pure."""

from __future__ import annotations
