"""One seed made into many: a hash of (seed, purpose, numbers), so that no two uses ever share a stream.

Sums would: seed 42 in epoch 1 is then seed 43 in epoch 0.
"""

from __future__ import annotations

import hashlib

PURPOSES = ("init", "split", "order", "step", "loader", "python-hash")
"""init: new weights; split: which rows are held out; order: of samples, with (epoch); step: dropout and
whatever else draws in a training step, with (step); loader: the loader's private generator, with (epoch)."""


def seed_for(seed: int, purpose: str, *numbers: int) -> int:
    """Return a seed of 62 bits for ``purpose``; ``numbers`` part its uses (epoch, step, sample)."""
    words = ":".join([str(seed), purpose, *map(str, numbers)])
    return int.from_bytes(hashlib.sha256(words.encode()).digest()[:8], "big") >> 2
