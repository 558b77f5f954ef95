"""A stand-in libnvidia-ml.so.1 and its scenarios. By hand: ``python -m tests.nvml --scenario NAME -- COMMAND ...``."""
