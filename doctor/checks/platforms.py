"""Checks on platforms. Pure."""

from __future__ import annotations
