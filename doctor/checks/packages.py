"""Checks on packages. Pure."""

from __future__ import annotations
