"""``doctor export --onnx`` that is cut short: nothing half-written is called a model."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.deploy.tiny import save_model

pytestmark = pytest.mark.long


@pytest.mark.train
def test_a_full_disk_is_one_sentence_and_no_model(tmp_path: Path) -> None:
    """A limit on the size of a file fails a write as a full disk does; the graph is larger than it."""
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    model = save_model(tmp_path / "model", "AutoModelForSequenceClassification", num_hidden_layers=6)
    code = "import sys; from doctor.commands import main; sys.exit(main())"
    argv = f"ulimit -f 40; exec {sys.executable} -c '{code}' export {model} --onnx --exporter torchscript --python {sys.executable}"
    done = subprocess.run(["bash", "-c", argv], capture_output=True, text=True, timeout=200)
    assert done.returncode == 1, done.stderr
    complaint = [line for line in done.stderr.splitlines() if line.startswith("doctor:")]
    assert len(complaint) == 1 and "File too large" in complaint[0], done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
