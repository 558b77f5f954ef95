"""Patterns of torch.compile and Triton: what fails in them, and the compiler that they call."""

from __future__ import annotations

from doctor.explain.match import Pattern
from doctor.model import t

PATTERNS: tuple[Pattern, ...] = (
    # /tmp/tmphyxmvyh2/cuda_utils.c:5:10: fatal error: Python.h: No such file or directory
    Pattern(
        id="python-headers",
        regex=r"fatal error: Python\.h: No such file or directory",
        meaning=t("Something is compiled against Python (Triton does so for torch.compile and its kernels), and this Python has no header files."),
        advice=t("`apt-get update && apt-get install -y python3-dev` (for a second Python its own: python3.12-dev); a Python from conda has them."),
        hides=("dynamo-failed",),
    ),
    # RuntimeError: Failed to find C compiler. Please specify via CC environment variable.
    Pattern(
        id="no-c-compiler",
        regex=r"Failed to find C compiler|error: command '(?:[\w-]+-)?(?:gcc|g\+\+|cc)' failed: No such file",
        meaning=t("Something is compiled here (Triton does so for torch.compile and its kernels), and there is no C compiler."),
        advice=t("`apt-get update && apt-get install -y build-essential`; without root `conda install -y gxx_linux-64`."),
        hides=("dynamo-failed",),
    ),
    # torch._dynamo.exc.InternalTorchDynamoError: AttributeError: 'NoneType' object has no attribute 'shape'   |   torch._inductor.exc.InductorError: RuntimeError: PassManager::run failed
    Pattern(
        id="dynamo-failed",
        regex=r"torch\._dynamo\.exc\.\w+|torch\._inductor\.exc\.\w+",
        meaning=t("torch.compile could not compile this code; the code itself may be sound."),
        advice=t("`TORCHDYNAMO_DISABLE=1 python SCRIPT` runs it without torch.compile, only slower. Then a newer torch, or compile only the part that works."),
        confirms=("torch-compile-python-unsupported",),
    ),
)  # fmt: skip
