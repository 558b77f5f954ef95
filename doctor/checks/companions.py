"""Checks on companions. Pure."""

from __future__ import annotations
