"""Checks on libraries. Pure."""

from __future__ import annotations
