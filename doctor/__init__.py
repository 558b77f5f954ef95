"""Checks a rented GPU machine, names the one root cause, fixes it, and starts a training run you can trust."""

__version__ = "0.1.0"
