"""Checks on torch_build. Pure."""

from __future__ import annotations
