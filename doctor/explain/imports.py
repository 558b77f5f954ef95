"""Patterns of imports that fail over something beside the package that was asked for."""

from __future__ import annotations

from doctor.explain.match import Pattern
from doctor.model import t

PATTERNS: tuple[Pattern, ...] = (
    # ImportError: .../torch/lib/libtorch_cpu.so: undefined symbol: iJIT_NotifyEvent
    Pattern(
        id="mkl-symbol",
        regex=r"undefined symbol: iJIT_\w+",
        meaning=t("conda's torch was built for an older MKL than the one that conda installed beside it."),
        advice=t("`conda install -y mkl=2024.0`, or torch from pip in place of conda's: it brings its own MKL."),
    ),
    # WARNING[XFORMERS]: xFormers can't load C++/CUDA extensions. xFormers was built for:
    Pattern(
        id="xformers-build",
        regex=r"xFormers can't load C\+\+/CUDA extensions(?:[^\n]*\n\s*PyTorch (?P<built>\S+) with CUDA \d+ \(you have (?P<have>[^)\s]+)\))?",
        meaning=t("xformers was built for another torch ({built}) than the one that runs ({have}), so its attention kernels are not there.", built="?", have="?"),
        advice=t("Install the xformers release of your torch, with --no-deps so that it leaves torch alone; if yours ends in +cpu, torch itself is the one to replace: `doctor check`."),
        confirms=("xformers-torch-mismatch", "torch-cpu-only-build"),
    ),
    # ValueError: Your currently installed version of Keras is Keras 3, but this is not yet supported in Transformers.
    Pattern(
        id="keras-3",
        regex=r"currently installed version of Keras is Keras 3",
        meaning=t("transformers found TensorFlow with Keras 3 and loads its TensorFlow half, which a torch program does not need."),
        advice=t("`export USE_TF=0` before Python starts, or `python -m pip install tf-keras`."),
    ),
    # ImportError: DeepSpeed is not available => install it using `pip3 install deepspeed` or build it from source
    Pattern(
        id="deepspeed-missing",
        regex=r"DeepSpeed is not available => install it",
        meaning=t("The run is configured for DeepSpeed, and the interpreter that runs has none."),
        advice=t("`python -m pip install deepspeed`, or take the deepspeed entry out of the arguments or accelerate's configuration (`accelerate config`)."),
        confirms=("needed-package-missing",),
    ),
)  # fmt: skip
