"""Patterns of frameworks beside torch: Paddle in one process with it, OpenMMLab's registry."""

from __future__ import annotations

from doctor.explain.match import Pattern
from doctor.model import t

PATTERNS: tuple[Pattern, ...] = (
    # ImportError: generic_type: type "_gpuDeviceProperties" is already registered!   |   ImportError: generic_type: type "_CudaDeviceProperties" is already registered!
    Pattern(
        id="paddle-beside-torch",
        regex=r"type \"_(?:gpu|Cuda)DeviceProperties\" is already registered",
        meaning=t("Paddle's GPU build (2.5 and newer) and torch cannot be imported into one process, in neither order."),
        advice=t("Run the Paddle part in a process or environment of its own and pass its results over; or the CPU build: `python -m pip uninstall -y paddlepaddle-gpu && python -m pip install paddlepaddle`."),
        hides=("paddle-core",),
    ),
    # Error: Can not import paddle core while this file exists: /root/miniconda3/lib/python3.10/site-packages/paddle/base/libpaddle.so
    Pattern(
        id="paddle-core",
        regex=r"Can not import paddle core while this file exists",
        meaning=t("Paddle's own library does not load; the ImportError below names what it misses, mostly its cuDNN or cuBLAS: torch's wheels bring another release of them into the same environment."),
        advice=t("Give Paddle an environment of its own with the wheel of your CUDA; `python -c \"import paddle; paddle.utils.run_check()\"` proves it. Importing it before torch helps only where both want the same cuDNN."),
        hides=("cudnn-symbol", "cudnn-not-loaded"),
    ),
    # KeyError: 'Adafactor is already registered in optimizer at torch.optim'
    Pattern(
        id="mmengine-registry",
        regex=r"(?P<name>\w+) is already registered in optimizer at torch\.optim",
        meaning=t("mmengine (under XTuner, MMDetection and others) registers the optimizer {name}, and torch has one of that name by now: Adafactor since 2.5.", name="?"),
        advice=t("A newer mmengine where there is one that minds it (`python -m pip install -U mmengine`), or torch 2.4 with the torchvision of that release; an own environment keeps other projects as they are."),
    ),
    # ModuleNotFoundError: No module named 'mmcv._ext'
    Pattern(
        id="mmcv-without-ops",
        regex=r"No module named 'mmcv\._ext'",
        meaning=t("mmcv is installed without its compiled operators: mmcv-lite (or mmcv 1 in place of mmcv-full), or no ready wheel for this torch and CUDA."),
        advice=t("`python -m pip uninstall -y mmcv mmcv-lite mmcv-full`, then with the index of your pair: `pip install mmcv==VERSION -f https://download.openmmlab.com/mmcv/dist/cuXXX/torchX.Y/index.html`. Ready ones exist for some releases of torch only: choose torch by that list."),
        hides=("module-not-found", "extension-not-built"),
    ),
    # AssertionError: MMCV==2.2.0 is used but incompatible. Please install mmcv>=2.0.0rc4, <2.2.0.
    Pattern(
        id="openmmlab-range",
        regex=r"(?P<have>MM\w+==\S+) is used but incompatible\. Please install (?P<wanted>[^\n]{1,60}?)\.?$",
        meaning=t("{have} is installed, and this release of the project takes {wanted}.", have="?", wanted="?"),
        advice=t("`python -m pip install -U openmim && mim install '{wanted}'` (without blanks in it); for mmcv look first which of those has a ready wheel for your torch.", wanted="NAME<VERSION"),
    ),
    # RuntimeError: nms_impl: implementation for device cuda:0 not found.
    Pattern(
        id="mmcv-without-cuda",
        regex=r"\w+_impl: implementation for device cuda:\d+ not found",
        meaning=t("mmcv's operators are there, but were compiled without CUDA: on a machine without toolkit or card, or taken from the CPU index."),
        advice=t("Install the ready wheel of your CUDA and torch from OpenMMLab's index (`-f https://download.openmmlab.com/mmcv/dist/cuXXX/torchX.Y/index.html`); to compile it yourself FORCE_CUDA=1 and a toolkit of torch's CUDA."),
        hides=("mmcv-without-ops",),
    ),
)  # fmt: skip
