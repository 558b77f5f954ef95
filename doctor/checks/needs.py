"""Checks on the packages that a run imports or that its calls need. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from doctor.checks import check, evidence
from doctor.checks.requirements import normal
from doctor.checks.versions import pip, torch_version, within
from doctor.model import (
    Finding,
    Incident,
    Packages,
    Python,
    Reading,
    Text,
    Torch,
    Workload,
    ok,
    t,
)


@check("needed-package-missing")
def the_run_finds_its_packages(
    packages: Packages,
    workload: Reading[Workload],
    incident: Reading[Incident],
    python: Reading[Python],
    torch: Reading[Torch],
) -> Iterator[Finding]:
    """Is a package missing that the run imports or that its calls need?"""
    wanted = dict(_refused(incident.value)) | dict(
        _wanted(packages, workload.value, torch_version(torch, ok(packages)))
    )
    for name, why in wanted.items():
        if packages.is_missing(name):
            yield Finding(
                id="needed-package-missing",
                level="fail",
                subject=name,
                title=why,
                evidence=evidence(
                    packages__not_installed=name if name in packages.not_installed else None,
                    packages__complete=packages.complete,
                    workload__source=workload.value.source or None if workload.value else None,
                ),
                advice=t("{pip} install {name}", pip=pip(python), name=name),
            )


_MODULES = {
    "sklearn": "scikit-learn", "PIL": "pillow", "cv2": "opencv-python", "yaml": "pyyaml", "bs4": "beautifulsoup4",
    "skimage": "scikit-image", "sentence_transformers": "sentence-transformers", "flash_attn": "flash-attn",
    "huggingface_hub": "huggingface-hub", "google.protobuf": "protobuf", "tensorboard": "tensorboard",
} | {
    name: name
    for name in (
        "accelerate", "bitsandbytes", "datasets", "deepspeed", "evaluate", "jieba", "matplotlib", "nltk", "numpy", "onnx",
        "onnxruntime", "onnxscript", "pandas", "peft", "safetensors", "scipy", "seaborn", "sentencepiece", "seqeval",
        "tensorboardX", "tiktoken", "timm", "tokenizers", "torchaudio", "torchmetrics", "torchvision", "tqdm",
        "transformers", "trl", "wandb", "xformers",
    )
}  # fmt: skip
"""Module -> distribution, for modules that are certainly not files of the project."""


# ModuleNotFoundError: No module named 'sklearn' | ImportError: ... requires the SentencePiece library but it was not found
_NO_MODULE = re.compile(
    r"No module named ['\"]([A-Za-z0-9_]+)|requires the ([A-Za-z0-9_]+) library but it was not found"
)


def _refused(incident: Incident | None) -> Iterator[tuple[str, Text]]:
    """Yield what a log says is missing; the list of packages must confirm it."""
    for line in incident.log_lines if incident else ():
        match = _NO_MODULE.search(line)
        module = (match[1] or match[2]) if match else ""
        name = next((_MODULES[one] for one in _MODULES if one.lower() == module.lower()), "")
        if name:
            yield (
                normal(name),
                t(
                    "the run failed for want of {module}, and {name} is not installed",
                    module=module,
                    name=normal(name),
                ),
            )


_NEEDED_BY = {
    "bitsandbytes": "bitsandbytes", "device-map": "accelerate", "sentencepiece": "sentencepiece", "deepspeed": "deepspeed",
    "wandb": "wandb", "tensorboard": "tensorboard", "flash-attention-2": "flash-attn",
}  # fmt: skip
"""What a run does (purpose.py) -> the distribution without which that raises."""


def _wanted(packages: Packages, workload: Workload | None, torch: str | None) -> Iterator[tuple[str, Text]]:
    for module in workload.imports if workload else ():
        if module in _MODULES and not (module == "onnxruntime" and packages.get("onnxruntime-gpu")):
            name = normal(_MODULES[module])
            if not (name == "opencv-python" and packages.get("opencv-python-headless")):
                yield (
                    name,
                    t("the run imports {module}, and {name} is not installed", module=module, name=name),
                )
    features = workload.features if workload else ()
    if "onnx-export-default-exporter" in features and within(torch, ">=2.9"):
        yield (
            "onnxscript",
            t(
                "torch.onnx.export of torch {torch} imports onnxscript by default, which is not installed",
                torch=torch or "",
            ),
        )
    for feature, name in _NEEDED_BY.items():
        old = feature != "sentencepiece" or within(packages.version("transformers"), "<5") is True
        if feature in features and old:
            yield name, t("the run uses what {name} brings, which is not installed", name=name)
    trains = "trainer" in features or bool(workload and workload.training_args)
    if trains and packages.get("transformers"):
        yield "accelerate", t("the Trainer of transformers needs accelerate, which is not installed")
