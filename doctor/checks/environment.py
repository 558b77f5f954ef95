"""Checks on environment. Pure."""

from __future__ import annotations
