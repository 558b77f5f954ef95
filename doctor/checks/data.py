"""Checks on data. Pure."""

from __future__ import annotations
