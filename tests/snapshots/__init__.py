"""Tests of the snapshot file."""
