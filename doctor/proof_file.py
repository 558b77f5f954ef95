"""A run's proof as it is kept: ``RUN/proof.json``."""

from __future__ import annotations

from pathlib import Path

import msgspec

from doctor.proofs import ProofRecord


def read_record(path: Path) -> ProofRecord | None:
    """Return the proof kept in a run; None: there is none, or it is of a schema that this doctor does not know."""
    try:
        record = msgspec.json.decode(path.read_bytes(), type=ProofRecord)
    except (OSError, msgspec.DecodeError):
        return None
    return record if record.schema == ProofRecord().schema else None


def write_record(path: Path, record: ProofRecord) -> None:
    """Write ``proof.json`` whole or not at all. Raises OSError."""
    temporary = path.with_name(path.name + ".tmp")
    temporary.write_bytes(msgspec.json.format(msgspec.json.encode(record), indent=1) + b"\n")
    temporary.replace(path)
