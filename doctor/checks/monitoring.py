"""Checks on monitoring. Pure."""

from __future__ import annotations
