"""Patterns of packages that do not fit each other, the interpreter or the system."""

from __future__ import annotations

from doctor.explain.match import Pattern
from doctor.model import t

PATTERNS: tuple[Pattern, ...] = (
    # RuntimeError: operator torchvision::nms does not exist
    Pattern(
        id="torchvision-nms",
        regex=r"operator torchvision::nms does not exist|Couldn't load custom C\+\+ ops",
        meaning=t("The installed torchvision was built for another torch."),
        advice=t("Install the torchvision of your torch release, from the same index, with --no-deps."),
        confirms=("torchvision-torch-mismatch",),
    ),
    # ImportError: flash_attn_2_cuda.cpython-310-x86_64-linux-gnu.so: undefined symbol: _ZN3c104cuda9SetDeviceEi
    Pattern(
        id="extension-torch-symbol",
        regex=r"(?<![\w.\-])(?P<library>[\w.\-]+?\.so)\S*: undefined symbol: (?P<symbol>_ZN?K?\d*(?:3c10|2at|5torch|6caffe2)\w*)",
        meaning=t(
            "{library} was compiled for another torch (or another C++ ABI) than the one installed.",
            library="?",
        ),
        advice=t(
            "Install the wheel built for your torch, CUDA and Python, or run without it (flash-attn: attn_implementation='sdpa')."
        ),
        confirms=(
            "flash-attn-torch-abi-mismatch",
            "torchvision-torch-mismatch",
            "extension-torch-abi-mismatch",
        ),
    ),
    # RuntimeError: FlashAttention only supports Ampere GPUs or newer.
    Pattern(
        id="flash-attn-gpu",
        regex=r"FlashAttention only supports Ampere GPUs or newer",
        meaning=t("flash-attn 2 has no kernels for cards before Ampere (T4, V100, RTX 20)."),
        advice=t("Use attn_implementation='sdpa'."),
        confirms=("flash-attn-unsupported-gpu",),
    ),
    # ImportError: FlashAttention2 has been toggled on, but it cannot be used due to the following error: the package flash_attn seems to be not installed.
    Pattern(
        id="flash-attn-missing",
        regex=r"FlashAttention2 has been toggled on, but it cannot be used",
        meaning=t("The code asks for flash-attn, which is not installed (or does not import) here."),
        advice=t("Use attn_implementation='sdpa', or install the flash-attn wheel built for your torch."),
        confirms=("needed-package-missing", "flash-attn-torch-abi-mismatch"),
    ),
    # RuntimeError: Configured CUDA binary not found at /opt/.../bitsandbytes/libbitsandbytes_cuda124.so
    Pattern(
        id="bitsandbytes-binary",
        regex=r"Configured (?:CUDA|ROCm|XPU)? ?binary not found at|libbitsandbytes_cpu\.so: undefined symbol|CUDA Setup failed despite GPU being available|'NoneType' object has no attribute 'cget_managed_ptr'",
        meaning=t("bitsandbytes has no binary for the CUDA of your torch."),
        advice=t("Install a newer bitsandbytes wheel; running from a source folder finds no binaries."),
        confirms=("bitsandbytes-missing-cuda-binary",),
    ),
    # A module that was compiled using NumPy 1.x cannot be run in NumPy 2.0.0 as it may crash.
    Pattern(
        id="numpy-abi",
        regex=r"compiled using NumPy 1\.x cannot be run in\s+NumPy (?P<numpy>[\d.]+)|RuntimeError: Numpy is not available|numpy\.dtype size changed, may indicate binary incompatibility|_ARRAY_API not found",
        meaning=t("A package was built for NumPy 1 and NumPy 2 is installed (or the reverse)."),
        advice=t(
            "`python -m pip install 'numpy<2'` where torch is older than 2.3; else update the package that the message names."
        ),
        confirms=("numpy2-torch-abi",),
    ),
    # AttributeError: partially initialized module 'torch' has no attribute 'Tensor' (most likely due to a circular import)
    Pattern(
        id="shadowed-module",
        regex=r"partially initialized module '(?P<module>[\w.]+)' has no attribute|cannot import name '\w+' from partially initialized module '(?P<module2>[\w.]+)'",
        meaning=t(
            "A module was found half loaded: often a file of your own has a library's name (torch.py, random.py, datasets/)."
        ),
        advice=t("Look for such a file beside your script and rename it; remove its __pycache__."),
        confirms=("torch-install-broken", "leftover-of-an-install"),
        hides=("torch-attribute",),
    ),
    # ImportError: numpy.core.multiarray failed to import
    Pattern(
        id="numpy-multiarray",
        regex=r"numpy\._?core\.multiarray failed to import",
        meaning=t(
            "A compiled package cannot talk to this NumPy: it was built for the other major, or two NumPys are mixed."
        ),
        advice=t(
            "Look at the line above for the package; update it, or `python -m pip install 'numpy<2'` where it is too old for NumPy 2."
        ),
        confirms=("numpy2-torch-abi", "duplicate-distribution-metadata", "user-site-shadows-env"),
    ),
    # AttributeError: module 'torch' has no attribute 'compiler'
    Pattern(
        id="torch-attribute",
        regex=r"module 'torch' has no attribute '(?P<name>\w+)'",
        meaning=t(
            "This torch has no torch.{name}: it is older than the library that asks for it expects (or it is half installed).",
            name="?",
        ),
        advice=t("Take an older version of that library, or a newer torch that the driver serves."),
        confirms=("transformers-torch-too-old", "dependent-library-too-old", "torch-install-broken"),
    ),
    # OSError: /opt/conda/lib/python3.11/site-packages/torch/lib/libtorch_global_deps.so: cannot open shared object file: No such file or directory
    Pattern(
        id="torch-file-missing",
        regex=r"(?P<library>lib(?:torch\w*|c10\w*)\.so): cannot open shared object file",
        meaning=t(
            "A file of torch itself is missing ({library}): the installation was cut short, or two were mixed.",
            library="?",
        ),
        advice=t("Uninstall torch until pip finds none, then install it again in the same interpreter."),
        confirms=("torch-install-broken", "distribution-files-missing", "leftover-of-an-install"),
    ),
    # ModuleNotFoundError: No module named 'datasets'
    Pattern(
        id="module-not-found",
        regex=r"(?<!caught was: )No module named '(?P<module>[\w.]+)'",
        meaning=t(
            "{module} is not installed in the interpreter that runs; often it is in another one.", module="?"
        ),
        advice=t(
            "`which python` and `python -m pip -V` must show the same environment; install with that `python -m pip`."
        ),
        confirms=("needed-package-missing", "user-site-shadows-env"),
    ),
    # ImportError: /lib/x86_64-linux-gnu/libc.so.6: version `GLIBC_2.32' not found (required by .../flash_attn_2_cuda.so)
    Pattern(
        id="glibc",
        regex=r"version [`']GLIBC_(?P<needed>[\d.]+)' not found",
        meaning=t("A compiled package needs glibc {needed}; this system's is older.", needed="?"),
        advice=t(
            "Take a wheel built for an older glibc, build it here, or a newer image; glibc itself cannot be swapped."
        ),
        confirms=("glibc-too-old-for-wheel",),
    ),
    # ImportError: /usr/lib/libstdc++.so.6: version `GLIBCXX_3.4.29' not found
    Pattern(
        id="libstdcxx",
        regex=r"version [`'](?P<needed>(?:GLIBCXX|CXXABI)_[\d.]+)' not found",
        meaning=t("An old libstdc++ was found first; {needed} is missing in it.", needed="?"),
        advice=t(
            "Take the old compiler's folder out of LD_LIBRARY_PATH; in conda: `conda install -c conda-forge libstdcxx-ng`."
        ),
        confirms=("libstdcxx-too-old",),
    ),
    # ERROR: No matching distribution found for torch==1.13.1
    Pattern(
        id="no-matching-distribution",
        regex=r"No matching distribution found for (?P<wanted>\S+)",
        meaning=t("No wheel of {wanted} exists for this Python, platform or index.", wanted="?"),
        advice=t(
            "Check `python -V` against the release's Pythons; builds with +cuXXX are only on the PyTorch index."
        ),
        confirms=("python-version-no-wheel",),
    ),
    # error: externally-managed-environment
    Pattern(
        id="externally-managed",
        regex=r"externally-managed-environment",
        meaning=t("This is the system's own Python, which pip must not change."),
        advice=t(
            "`python3 -m venv --system-site-packages ~/env && . ~/env/bin/activate`, then install there."
        ),
    ),
    # ERROR: pip's dependency resolver does not currently take into account all the packages that are installed.
    Pattern(
        id="pip-resolver",
        regex=r"pip's dependency resolver does not currently take into account",
        meaning=t(
            "pip installed what you asked for although an installed package declares another range. It may still work."
        ),
        advice=t(
            "`python -m pip check` says what does not fit now; an old message means nothing once that is clean."
        ),
        confirms=("transformers-requirement-out-of-range", "declared-requirement-not-met"),
    ),
    # RuntimeError: Dynamo is not supported on Python 3.12+
    Pattern(
        id="compile-python",
        regex=r"Dynamo is not supported on Python (?P<python>[\d.]+)\+?|torch\.compile is not supported on Python (?P<python2>[\d.]+)",
        meaning=t("This torch cannot compile on this Python."),
        advice=t("Run without torch.compile, or take a newer torch or an older Python."),
        confirms=("torch-compile-python-unsupported",),
        hides=("dynamo-failed",),
    ),
    # ImportError: cannot import name ... / RuntimeError: Cannot find a working triton installation.
    Pattern(
        id="triton-missing",
        regex=r"Cannot find a working triton installation|TritonMissing",
        meaning=t("torch.compile on a GPU needs triton of torch's own version, which is not there."),
        advice=t("Install the triton that torch pins (see `pip show torch`), or run without torch.compile."),
        confirms=("needed-package-missing", "declared-requirement-not-met"),
        hides=("dynamo-failed",),
    ),
    # Specified provider 'CUDAExecutionProvider' is not in available provider names.
    Pattern(
        id="onnx-provider",
        regex=r"'CUDAExecutionProvider' is not in available provider names|Failed to create CUDAExecutionProvider",
        meaning=t(
            "onnxruntime runs on the CPU: the CPU package lies over the GPU one, or it was built for another CUDA."
        ),
        advice=t("Uninstall onnxruntime and onnxruntime-gpu, then install onnxruntime-gpu alone."),
        confirms=("onnxruntime-cpu-shadows-gpu", "onnxruntime-cuda-major-mismatch"),
    ),
    # ImportError: cannot import name 'packaging' from 'pkg_resources'
    Pattern(
        id="setuptools",
        regex=r"cannot import name 'packaging' from 'pkg_resources'|No module named 'pkg_resources'|No module named 'distutils'",
        meaning=t(
            "A package still uses a part of setuptools that newer Pythons or setuptools no longer bring."
        ),
        advice=t("`python -m pip install 'setuptools<81'`, or update the package."),
        hides=("module-not-found",),
    ),
)
