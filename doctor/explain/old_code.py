"""Patterns of code that is older or newer than its Python and the libraries beside it: names that were moved or removed."""

from __future__ import annotations

from doctor.explain.match import Pattern
from doctor.model import t

PATTERNS: tuple[Pattern, ...] = (
    # ImportError: cannot import name 'Mapping' from 'collections' (/usr/lib/python3.10/collections/__init__.py)
    Pattern(
        id="collections-abc",
        regex=r"cannot import name '(?P<name>Mapping|MutableMapping|Sequence|Iterable|Iterator|Callable|Hashable|Container|Sized|Set)' from 'collections'|module 'collections' has no attribute '(?P<name2>[A-Z]\w+)'",
        meaning=t("Python 3.10 moved {name}{name2} to collections.abc for good; the package in the traceback is older than that.", name="", name2=""),
        advice=t("Update that package; if it has no newer version, an environment with Python 3.9."),
    ),
    # TypeError: unsupported operand type(s) for |: 'type' and 'NoneType'
    Pattern(
        id="union-types",
        regex=r"unsupported operand type\(s\) for \|: '(?:type|ABCMeta|_GenericAlias|types\.GenericAlias)' and",
        meaning=t("The code writes types as X | None, which Python understands from 3.10 on; an older one runs."),
        advice=t("`python -V`; Python 3.10 or newer in a new environment, or the older release of that package."),
        confirms=("python-version-no-wheel",),
    ),
    # AttributeError: module 'distutils' has no attribute 'version'
    Pattern(
        id="distutils-version",
        regex=r"module 'distutils' has no attribute 'version'",
        meaning=t("An old torch (before 1.11) with its TensorBoard part meets a newer setuptools."),
        advice=t("`python -m pip install 'setuptools<60'`, or a newer torch."),
    ),
    # AttributeError: module 'PIL.Image' has no attribute 'ANTIALIAS'
    Pattern(
        id="pillow-constant",
        regex=r"module 'PIL\.Image' has no attribute '(?P<name>ANTIALIAS|LINEAR|CUBIC)'",
        meaning=t("Pillow 10 took away Image.{name}, which older code uses.", name="?"),
        advice=t("Update the package in the traceback, or Image.Resampling.LANCZOS (BILINEAR, BICUBIC) in your own code; else `python -m pip install 'pillow<10'`."),
    ),
    # ModuleNotFoundError: No module named 'torch._six'
    Pattern(
        id="torch-six",
        regex=r"No module named 'torch\._six'|No module named 'torch\.utils\.ffi'",
        meaning=t("torch took that module away (torch._six with 2.0); the code that imports it is older. Installing anything of that name does not help."),
        advice=t("Update the package in the traceback (DeepSpeed 0.9 or newer, apex from its source); in your own code: string_classes is str, inf is math.inf."),
        confirms=("dependent-library-too-old",),
        hides=("module-not-found",),
    ),
    # ImportError: cannot import name 'url_quote' from 'werkzeug.urls'
    Pattern(
        id="werkzeug-3",
        regex=r"cannot import name '(?P<name>url_quote|url_decode|url_encode)' from 'werkzeug\.urls'",
        meaning=t("Werkzeug 3 took that name away, and this Flask is older."),
        advice=t("`python -m pip install -U flask`, or `python -m pip install 'werkzeug<3'`."),
        hides=("library-import-name",),
    ),
    # pydantic.errors.PydanticImportError: `BaseSettings` has been moved to the `pydantic-settings` package.
    Pattern(
        id="pydantic-2",
        regex=r"PydanticImportError|`BaseSettings` has been moved to the `pydantic-settings` package|pydantic\.errors\.PydanticUserError",
        meaning=t("The code in the traceback was written for pydantic 1, and pydantic 2 is installed."),
        advice=t("Update that package; else `python -m pip install 'pydantic<2'` where nothing needs the newer one (vllm and newer deepspeed do)."),
        confirms=("declared-requirement-not-met",),
    ),
    # AttributeError: module 'cv2.dnn' has no attribute 'DictValue'
    Pattern(
        id="opencv-mixed",
        regex=r"module 'cv2(?:\.dnn)?' has no attribute '(?P<name>DictValue|gapi_wip_gst_GStreamerPipeline|_registerMatType)'|module 'cv2\.gapi' has no attribute",
        meaning=t("Two OpenCV packages (opencv-python, -headless, -contrib) lie over each other, in different versions."),
        advice=t("`python -m pip uninstall -y opencv-python opencv-python-headless opencv-contrib-python opencv-contrib-python-headless`, then install one of them."),
        confirms=("duplicate-distribution-metadata",),
    ),
    # ImportError: Please install apex from https://www.github.com/nvidia/apex to use fused_layer_norm   |   ModuleNotFoundError: No module named 'apex'   |   ModuleNotFoundError: No module named 'amp_C'
    Pattern(
        id="apex-missing",
        regex=r"[Pp]lease install apex from|No module named '(?:apex|amp_C|fused_layer_norm_cuda)\b|APEX requires",
        meaning=t("The code asks for NVIDIA's apex, whose part that matters torch has itself today. The package named apex on PyPI is something else."),
        advice=t("torch.amp for mixed precision, torch.nn.LayerNorm, torch.nn.parallel.DistributedDataParallel; Trainer: bf16=True without fp16_backend='apex'. If it must be: from its source, with nvcc of torch's CUDA."),
        hides=("module-not-found",),
    ),
    # ValueError: When localhost is not accessible, a shareable link must be created. Please set share=True or check your proxy settings
    Pattern(
        id="gradio-proxy",
        regex=r"When localhost is not accessible, a shareable link must be created",
        meaning=t("gradio asks its own page over the proxy that the environment names, and gets no answer."),
        advice=t("`export no_proxy=localhost,127.0.0.1,::1 NO_PROXY=localhost,127.0.0.1,::1` before the start (or unset the proxies); reach the page through `ssh -L 7860:localhost:7860`."),
        confirms=("platform-proxy-on",),
    ),
    # fatal: destination path 'repo' already exists and is not an empty directory.
    Pattern(
        id="git-folder-there",
        regex=r"fatal: destination path '(?P<path>[^'\n]+)' already exists and is not an empty directory",
        meaning=t("{path} is there already, from an earlier or a broken clone.", path="?"),
        advice=t("`git -C {path} pull` if it is whole; else move it away and clone again.", path="PATH"),
    ),
    # error: Your local changes to the following files would be overwritten by merge:
    Pattern(
        id="git-local-changes",
        regex=r"Your local changes to the following files would be overwritten by (?:merge|checkout)",
        meaning=t("Files that you changed here would be lost by this update, so git does nothing."),
        advice=t("`git stash && git pull && git stash pop` keeps your changes; `git diff` shows them."),
    ),
)  # fmt: skip
