"""Checks on gpu. Pure."""

from __future__ import annotations
