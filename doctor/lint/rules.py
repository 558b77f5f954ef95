"""What a rule is: what it is given, what it answers, and how it is registered."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from packaging.version import InvalidVersion, Version

from doctor.lint.script import Call, Script
from doctor.model import Level, Snapshot, Text

# Ids that rules give, so that others can name them without importing every rule.
RULE_IDS = (
    "accumulation-loss-not-scaled", "argument-too-new", "checkpoint-keys-not-loaded", "ckpt-missing-state", "clip-before-unscale",
    "clipping-missing", "cublas-workspace-unset", "cuda-visible-devices-set-late", "ddp-unused-parameters", "deepspeed-config-wrong", "deprecated-api",
    "eval-logits-accumulate", "evaluation-without-eval", "flash-attn-unsupported-gpu", "fp16-on-bf16-pretrained", "fp16-params-with-gradscaler",
    "last-window-dropped", "learning-rate-too-high", "loss-kept-as-tensor", "needed-package-missing", "numpy-worker-seed",
    "onnx-dynamo-default-dynamic-axes", "onnx-export-in-train-mode", "onnx-fixed-axes", "onnx-input-order-mismatch", "oom-cleanup-skipped", "oom-retry-inside-except", "optimizer-before-cuda", "override-signature-changed",
    "padding-to-max-length", "reentrant-checkpoint-frozen-inputs", "removed-argument", "removed-import", "resume-not-bitwise", "script-not-decodable", "seeds-missing",
    "syntax-error", "torchfix", "token-id-out-of-vocab", "texts-not-padded", "torch-load-weights-only-default", "unknown-argument", "unscale-twice",
    "vocab-file-splitlines-corruption", "zero-grad-missing",
)  # fmt: skip


@dataclass(frozen=True)
class Problem:
    """What a rule found, before it is tied to a file."""

    id: str
    level: Level
    line: int
    title: Text
    advice: Text | None = None
    about: str = ""


@dataclass(frozen=True)
class Installed:
    """What the examined environment holds: versions by distribution name, and the machine where it is known."""

    versions: Mapping[str, str]
    snapshot: Snapshot | None = None

    @cached_property
    def _by_normal_name(self) -> dict[str, str]:
        return {normal_name(name): version for name, version in self.versions.items()}

    def version(self, name: str) -> Version | None:
        """Return the installed version without its local part; None when unknown."""
        text = self.versions.get(name) or self._by_normal_name.get(normal_name(name))
        if not text:
            return None
        try:
            return Version(Version(text).public)
        except InvalidVersion:
            return None

    def at_least(self, name: str, version: str) -> bool | None:
        """Return whether ``name`` is ``version`` or newer; None when its version is unknown."""
        installed = self.version(name)
        return None if installed is None else installed >= Version(version)

    def is_missing(self, name: str) -> bool:
        """Return whether ``name`` is certainly not installed."""
        packages = self.snapshot.facts.packages.value if self.snapshot else None
        return bool(packages and packages.is_missing(name))

    def variable(self, name: str) -> str | None:
        environment = self.snapshot.facts.environment.value if self.snapshot else None
        return environment.get(name) if environment else None

    def lowest_capability(self) -> tuple[int, int] | None:
        """Return the compute capability of the weakest card; None when no card's is known."""
        gpus = self.snapshot.facts.gpus.value if self.snapshot else None
        found = (
            [
                tuple(map(int, gpu.compute_capability.split(".")))
                for gpu in gpus.items
                if gpu.compute_capability
            ]
            if gpus
            else []
        )
        return min(((major, minor) for major, minor in found), default=None)


def normal_name(name: str) -> str:
    """``huggingface_hub`` -> ``huggingface-hub``, as PEP 503 has it."""
    return re.sub(r"[-_.]+", "-", name).lower()


RuleFunction = Callable[[Script, Installed], Iterator[Problem]]


RULES: list[RuleFunction] = []


def rule(function: RuleFunction) -> RuleFunction:
    """Register a rule; its docstring is its question.

    Raises:
        ValueError: it has no docstring.
    """
    if not function.__doc__:
        raise ValueError(f"rule {function.__name__} needs a docstring that asks its question")
    RULES.append(function)
    return function


def problem(
    finding_id: str,
    level: Level,
    at: Call | ast.AST | int,
    title: Text,
    advice: Text | None = None,
    about: str = "",
) -> Problem:
    """Return a problem at a call, a node or a line."""
    line = at if isinstance(at, int) else at.line if isinstance(at, Call) else getattr(at, "lineno", 1)
    assert finding_id in RULE_IDS, finding_id
    return Problem(finding_id, level, line, title, advice, about)
