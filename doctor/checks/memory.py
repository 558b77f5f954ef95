"""Checks on memory. Pure."""

from __future__ import annotations
