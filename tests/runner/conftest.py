"""What the trainer's tests share: one process that forks trainers."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest

from tests.runner.killing import fork_server


@pytest.fixture(scope="session")
def server() -> Iterator[Any]:
    """See :func:`tests.runner.killing.fork_server`."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("OMP_NUM_THREADS", "PYTHONPATH"):  # put back as they were
            patch.setenv(name, os.environ.get(name, ""))
        yield fork_server()
