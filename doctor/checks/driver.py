"""Checks on driver. Pure."""

from __future__ import annotations
