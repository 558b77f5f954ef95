"""DeepSpeed started for one model: ZeRO cuts moments (stage 1), gradients (2) and weights (3) into parts over the ranks.

The engine is told of one micro-batch an update, and where a window ends is said to it before each backward pass: so its
gradients can be measured, clipped or dropped here (:mod:`runner.deepspeed_engine`) before its own ``step()`` makes the update
with torch's AdamW. Weights are fp32, in lower precision by autocast, so what is saved is what any other run saves.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import warnings
from datetime import timedelta
from types import ModuleType
from typing import Any

import torch
from packaging.version import Version
from torch.distributed.distributed_c10d import _set_pg_timeout

from runner.inputs import InputError
from runner.optim import make_optimizer
from runner.plan import Plan
from runner.text import t

KNOWN = ((0, 16), (0, 20))
"""From the first to before the second: where a rank's part of the gradients lies is no promise of DeepSpeed's."""
COMMAND = "pip install 'deepspeed>=0.16,<0.20'"
# FutureWarning: `torch.distributed.all_gather_into_tensor` is deprecated. Please use `torch.distributed.all_gather_single` instead.
RENAMED = r"`torch\.distributed\.\w+` is deprecated"
BUCKET = 50_000_000
"""Gradients exchanged at a time: DeepSpeed's own 500 million would take 2 GB of fp32 on each card."""
NEVER = 1 << 40
"""Steps between DeepSpeed's own lines: a run's events say it."""


def imported() -> ModuleType:
    """Return deepspeed, which says nothing below a warning, and that on stderr.

    Raises:
        InputError: it is not installed, cannot be imported here, or is of a release whose inside is not known.
    """
    with contextlib.redirect_stdout(sys.stderr):
        try:
            import deepspeed
        except Exception as error:  # it looks at compilers and cards when imported, and fails in many ways
            raise InputError(
                t("parallel.strategy = \"deepspeed\" needs deepspeed, which cannot be imported ({why}); install it with: {command}",
                  why=f"{type(error).__name__}: {error}"[:300], command=COMMAND)
            ) from error  # fmt: skip
    release = Version(deepspeed.__version__).release[:2]
    if not KNOWN[0] <= release < KNOWN[1]:
        raise InputError(t("deepspeed {version}: this runner looks at gradients inside it, and knows other releases; install one with: {command}",
                           version=deepspeed.__version__, command=COMMAND))  # fmt: skip
    for handler in logging.getLogger("DeepSpeed").handlers:
        if isinstance(handler, logging.StreamHandler):
            handler.setStream(sys.stderr)
    logging.getLogger("DeepSpeed").setLevel(logging.WARNING)
    warnings.filterwarnings("ignore", RENAMED, FutureWarning)
    module: ModuleType = deepspeed
    return module


def started(model: Any, device: torch.device, plan: Plan) -> Any:
    """Return DeepSpeed's engine around ``model``, whose weights are cut into parts in place at stage 3.

    Raises:
        InputError: DeepSpeed cannot be used here.
    """
    if device.type == "cpu":
        os.environ["DS_ACCELERATOR"] = "cpu"
    deepspeed = imported()
    # It would compile an exchange over shared memory at the first start, to be used by none of what is done here.
    deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False
    optimizer = make_optimizer(model, plan.profile.train, plan.settings.fused)
    with contextlib.redirect_stdout(sys.stderr):
        deepspeed.init_distributed(dist_backend="nccl" if device.type == "cuda" else "gloo", verbose=False)
        engine, _, _, _ = deepspeed.initialize(
            model=model, optimizer=optimizer, config=config_of(plan, device), dist_init_required=False
        )
    # It exchanges in a group of its own, which would wait half an hour for a rank that stands still.
    _set_pg_timeout(timedelta(seconds=plan.profile.parallel.timeout_s), engine.data_parallel_group)
    engine.optimizer.torch_autocast_gradscaler = (
        None  # fp16: losses are scaled by the run's own (runner.deepspeed_engine)
    )
    engine.set_gradient_accumulation_boundary(True)
    return engine


def config_of(plan: Plan, device: torch.device) -> dict[str, Any]:
    """Return DeepSpeed's configuration. Batch sizes in it are for its own counting only."""
    own, offload = plan.profile.parallel.deepspeed, plan.settings.offload
    zero: dict[str, Any] = {
        "reduce_bucket_size": BUCKET,
        "allgather_bucket_size": BUCKET,
        **own,
        "stage": plan.profile.parallel.stage,
    }
    for part, is_away in (
        ("offload_optimizer", offload != "none"),
        ("offload_param", offload == "parameters"),
    ):
        zero.pop(part, None)
        if is_away:
            zero[part] = {"pin_memory": device.type == "cuda", **own.get(part, {}), "device": "cpu"}
    lower = {"bf16": "bfloat16", "fp16": "float16"}.get(plan.settings.precision)
    return {
        "train_micro_batch_size_per_gpu": 1,
        "gradient_accumulation_steps": 1,
        "gradient_clipping": 0.0,
        "zero_optimization": zero,
        "zero_allow_untested_optimizer": True,
        "zero_force_ds_cpu_optimizer": False,
        "steps_per_print": NEVER,
        # Gradients are added up in fp32: no layer's are exchanged in less.
        "torch_autocast": {
            "enabled": lower is not None,
            "dtype": lower or "bfloat16",
            "lower_precision_safe_modules": [],
        },
    }
