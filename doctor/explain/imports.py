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
    # ModuleNotFoundError: No module named 'triton.ops'
    Pattern(
        id="triton-ops",
        regex=r"No module named 'triton\.ops",
        meaning=t("bitsandbytes (or another package in the traceback) is older than this triton, which no longer has triton.ops: torch 2.6 brought it."),
        advice=t("`python -m pip install -U bitsandbytes`; triton itself belongs to torch and stays as it is."),
        confirms=("dependent-library-too-old",),
        hides=("module-not-found",),
    ),
    # NotImplementedError: No operator found for `memory_efficient_attention_forward` with inputs:
    Pattern(
        id="xformers-no-kernel",
        regex=r"No operator found for `memory_efficient_attention_\w+`",
        meaning=t("xformers has no kernel for this card, type and shape: the lines below it give a reason for each that was tried."),
        advice=t("attn_implementation='sdpa' does without xformers; else the xformers built for your torch, newer on a new card. 'Wasn't built' means that its build does not fit torch."),
        confirms=("xformers-torch-mismatch", "gpu-arch-not-in-torch-build"),
    ),
    # ImportError: Using `bitsandbytes` 4-bit quantization requires the latest version of bitsandbytes: `pip install -U bitsandbytes`   |   ImportError: Using `low_cpu_mem_usage=True` or a `device_map` requires Accelerate
    Pattern(
        id="library-demanded",
        regex=r"Using `(?P<what>[^`\n]+)`[^\n]{0,60} requires (?:the latest version of )?(?P<library>[Aa]ccelerate|bitsandbytes)\b",
        meaning=t("{what} needs {library} in the interpreter that runs: it is not there, or too old.", what="?", library="?"),
        advice=t("`python -m pip install -U accelerate bitsandbytes` in that interpreter; in a notebook restart the kernel. What is installed and still not found does not import: `python -m bitsandbytes` says why."),
        confirms=("needed-package-missing", "bitsandbytes-missing-cuda-binary", "user-site-shadows-env"),
        hides=("trainer-needs-accelerate",),
    ),
    # AttributeError: 'AdamW' object has no attribute 'train'
    Pattern(
        id="optimizer-train",
        regex=r"'(?:Adam\w*|SGD|DeepSpeedZeroOptimizer\w*)' object has no attribute 'train'",
        meaning=t("transformers calls a method of optimizers that this accelerate passes on unasked: it is too old for this transformers."),
        advice=t("`python -m pip install -U 'accelerate>=0.34'`, or the older transformers that your framework names."),
        confirms=("accelerate-transformers-mismatch",),
    ),
    # OMP: Error #15: Initializing libiomp5md.dll, but found libiomp5md.dll already initialized.
    Pattern(
        id="openmp-twice",
        regex=r"OMP: Error #15: Initializing (?P<library>\S+?), but found",
        meaning=t("Two copies of the OpenMP library ({library}) are in one process: torch brings one, and numpy or another package from conda (MKL) the other.", library="?"),
        advice=t("Make an environment in which torch and numpy come from one source (pip for both, or conda for both). `KMP_DUPLICATE_LIB_OK=TRUE` lets it run meanwhile; results may then be wrong without a word, so not for a long run."),
    ),
)  # fmt: skip
