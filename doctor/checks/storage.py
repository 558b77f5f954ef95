"""Checks on storage. Pure."""

from __future__ import annotations
