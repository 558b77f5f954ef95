"""Measurements, not tests: ratios within one run, medians. Each file runs alone: ``python -m
benchmarks.check``."""
