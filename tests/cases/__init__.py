"""Reported problems as a test: a file of cases in, found / missed / forbidden out."""
