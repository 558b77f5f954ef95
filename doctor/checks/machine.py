"""Checks on machine. Pure."""

from __future__ import annotations
