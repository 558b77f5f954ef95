"""The proof in a snapshot: kept with the run's settings, repeated where it can be, and never called equal where it was not."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from doctor.language import use_language
from doctor.machine import encode_snapshot
from doctor.model import Facts, Host, KeptProof, Provenance, RunSettings, Snapshot, ok, t
from doctor.proof_file import write_record
from doctor.proofs import Place, ProofRecord
from doctor.render.restore_lines import proof_lines
from doctor.render.snapshot_compare import verification_lines
from doctor.snapshots import capture
from doctor.snapshots.verify import ProofCheck, Verification
from doctor.verify_proof import repeat_proof
from runner.plan import decode_plan, encode_plan, make_plan
from runner.profile import load_profile
from runner.rundir import RunDir
from tests.runner.tiny import ONE_CORE, PROFILE, write_rows

ROOT = Path(__file__).parent.parent.parent
BARE = Snapshot(facts=Facts(host=ok(Host())))


def quiet(text: object) -> None: ...


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    """A planned run, not trained."""
    (tmp_path / "tiny.toml").write_text(PROFILE)
    write_rows(tmp_path / "rows.csv", 60)
    made = RunDir(tmp_path / "run")
    made.make()
    made.snapshot.write_bytes(encode_snapshot(BARE))
    made.plan.write_bytes(
        encode_plan(make_plan(load_profile(tmp_path / "tiny.toml", []), ONE_CORE, "2026-11-30"))
    )
    return made


def proved(run: RunDir, **changed: str) -> ProofRecord:
    record = ProofRecord(plan_digest=decode_plan(run.plan.read_bytes()).digest, steps=2, sha256="a" * 64, level="new-process", place=Place(torch="2.13.0", threads=1))  # fmt: skip
    return msgspec.structs.replace(record, **changed)


def kept_in(snapshot: Snapshot) -> KeptProof | None:
    provenance = snapshot.facts.provenance.value
    return provenance.run.proof if provenance and provenance.run else None


def test_an_export_of_a_run_keeps_its_proof(run: RunDir) -> None:
    write_record(run.path / "proof.json", proved(run))
    kept = kept_in(capture.from_run(str(run.path)))
    assert kept is not None and (kept.steps, kept.sha256, kept.torch, kept.threads) == (
        2,
        "sha256:" + "a" * 64,
        "2.13.0",
        1,
    )
    assert kept.plan_sha256 == f"sha256:{decode_plan(run.plan.read_bytes()).digest}"


def test_what_was_proved_not_to_repeat_is_no_proof(run: RunDir) -> None:
    write_record(run.path / "proof.json", proved(run, level="none"))
    assert kept_in(capture.from_run(str(run.path))) is None


def with_proof(**proof: object) -> Snapshot:
    settings = RunSettings(proof=KeptProof(**{"steps": 2, "sha256": "sha256:" + "a" * 64, **proof}))  # type: ignore[arg-type]
    return Snapshot(facts=Facts(provenance=ok(Provenance(run=settings))))


def test_a_snapshot_without_a_proof_says_how_to_make_one() -> None:
    found = repeat_proof(BARE, BARE, "run", sys.executable, quiet)
    assert found.found == "" and not found.differs and "doctor prove RUN" in str(found.why)


def test_another_plan_is_not_trained_and_not_called_different(run: RunDir) -> None:
    found = repeat_proof(
        with_proof(plan_sha256="sha256:" + "0" * 64), BARE, str(run.path), sys.executable, quiet
    )
    assert not found.differs and "its plan is another one" in str(found.why)


def test_a_run_that_is_not_there_is_said(tmp_path: Path) -> None:
    found = repeat_proof(with_proof(), BARE, str(tmp_path / "nowhere"), sys.executable, quiet)
    assert not found.differs and found.why is not None


@pytest.mark.parametrize(
    ("proof", "words", "differs", "incomplete"),
    [
        (ProofCheck(steps=2, expected="a" * 64, found="a" * 64), "The same bits after 2 steps", False, False),
        (
            ProofCheck(steps=2, expected="a" * 64, found="b" * 64),
            "Not the same bits after 2 steps",
            True,
            False,
        ),
        (
            ProofCheck(steps=2, expected="a" * 64, why=t("{why}", why="no card")),
            "was not compared: no card",
            False,
            True,
        ),
    ],
    ids=["equal", "different", "not compared"],
)
def test_the_answer_counts_as_what_it_is(
    proof: ProofCheck, words: str, differs: bool, incomplete: bool
) -> None:
    use_language("en")
    found = Verification(level="proof", equal=1, proof=proof)
    assert (
        "versions, digests and files" in " ".join(verification_lines(found, 100, False))
        or differs
        or incomplete
    )
    assert words in " ".join(proof_lines(found)) and (found.differs, found.incomplete) == (
        differs,
        incomplete,
    )


@pytest.mark.train
def test_a_proof_is_repeated_from_the_snapshot_and_other_data_is_found(tmp_path: Path) -> None:
    (tmp_path / "tiny.toml").write_text(PROFILE)
    write_rows(tmp_path / "rows.csv", 60)
    environ = {**os.environ, "PYTHONPATH": str(ROOT), "DOCTOR_LANG": "en"}
    for words in (
        ["run", "tiny.toml", "--run-dir", "run", "--set", "train.steps=4"],
        ["prove", "run", "--steps", "2"],
    ):
        done = subprocess.run([sys.executable, "-m", "doctor", *words, "--python", sys.executable], cwd=tmp_path, env=environ, capture_output=True, text=True, check=False)  # fmt: skip
        assert done.returncode == 0, done.stderr
    run = tmp_path / "run"
    reference = capture.from_run(str(run))
    same = repeat_proof(reference, reference, str(run), sys.executable, quiet)
    assert same.why is None and len(same.found) == 71 and same.found == same.expected and not same.differs
    rows = (tmp_path / "rows.csv").read_text()
    (tmp_path / "rows.csv").write_text(rows.replace("the soup", "a side").replace("waited", "order"))
    other = repeat_proof(reference, reference, str(run), sys.executable, quiet)
    assert other.differs
