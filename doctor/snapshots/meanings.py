"""What a difference means for "will the result be the same", with the reason and where it is written. Pure."""

from __future__ import annotations

from functools import cache
from typing import Literal, NamedTuple

from doctor.checks.versions import major, minor, public
from doctor.model import Text, t
from doctor.tables import load

Verdict = Literal["will-not-run", "other-numbers", "same-numbers", "same-bits"]
VERDICTS: tuple[Verdict, ...] = ("will-not-run", "other-numbers", "same-numbers", "same-bits")
"""Worst first. same-numbers: figures agree to several digits, bits may differ. other-numbers: a band, at best."""

PYTORCH_NOTE = "PyTorch, Reproducibility note"
CUBLAS_NOTE = "cuBLAS documentation, Results reproducibility"
MEASURED = t("measured by us, 2026-11").msgid
PYTHON_DOCS = "Python documentation, PYTHONHASHSEED"


class Meaning(NamedTuple):
    verdict: Verdict
    why: Text
    source: str = ""


@cache
def _listed(kind: str, variables: bool = False) -> frozenset[str]:
    table = load("sameness")
    return frozenset((table["variables"] if variables else table)[kind])


@cache
def _prefixes(variables: bool = False) -> tuple[str, ...]:
    table = load("sameness")
    return tuple((table["variables"] if variables else table)["kernel_prefixes"])


def kind_of(package: str) -> Literal["algorithms", "kernels", "bystanders", "other"]:
    """Return what a package has to do with a run's numbers."""
    if package in _listed("bystanders"):
        return "bystanders"
    if package in _listed("algorithms"):
        return "algorithms"
    return "kernels" if package in _listed("kernels") or package.startswith(_prefixes()) else "other"


def of_version(name: str, a: str, b: str) -> Meaning:
    """Return what another version of a package means."""
    kind = kind_of(name)
    if kind == "bystanders":
        return Meaning("same-bits", t("no number passes through {name}", name=name))
    if name == "torch" and public(a) == public(b):
        return _of_torch_build(a, b)
    if kind == "algorithms" and minor(a) != minor(b):
        return Meaning("other-numbers", t("another release of {name} may compute other things: defaults, algorithms, order of rows", name=name), PYTORCH_NOTE)  # fmt: skip
    if kind == "kernels" and name == "numpy" and major(a) != major(b):
        return Meaning("other-numbers", t("NumPy {a} and {b} promote types differently", a=major(a) or a, b=major(b) or b), "NEP 50")  # fmt: skip
    if kind in ("algorithms", "kernels"):
        return Meaning(
            "same-numbers", t("other kernels of {name} may round differently", name=name), PYTORCH_NOTE
        )
    return Meaning("same-numbers", t("{name} is not known to take part in the numbers", name=name))


def _of_torch_build(a: str, b: str) -> Meaning:
    cpu = [one.endswith("+cpu") for one in (a, b)]
    if cpu[0] != cpu[1]:
        return Meaning("other-numbers", t("one build of torch is for the CPU only: other random numbers, other kernels"), PYTORCH_NOTE)  # fmt: skip
    return Meaning("same-numbers", t("the same torch built for another CUDA: other kernels, other rounding"), CUBLAS_NOTE)  # fmt: skip


def of_bytes(name: str) -> Meaning:
    """Return what the same version with other bytes means: another build, or files that somebody changed."""
    if kind_of(name) == "bystanders":
        return Meaning(
            "same-bits", t("the same version with other files; no number passes through {name}", name=name)
        )
    if kind_of(name) == "other":
        return Meaning(
            "same-numbers", t("the same version with other files: another build, or changed by hand")
        )
    return Meaning("other-numbers", t("the same version of {name} with other files: another build, or changed by hand; its numbers cannot be vouched for", name=name))  # fmt: skip


def of_missing(name: str, requested: bool | None) -> Meaning:
    """Return what it means that B lacks a package of A."""
    kind = kind_of(name)
    if kind == "bystanders":
        return Meaning("same-bits", t("no number passes through {name}", name=name))
    if name == "torch" or (kind == "algorithms" and requested):
        return Meaning("will-not-run", t("{name} is missing there", name=name))
    return Meaning("same-numbers", t("{name} is missing there: what imports it fails, nothing else changes", name=name))  # fmt: skip


def of_added(name: str) -> Meaning:
    """Return what it means that B has a package more than A."""
    if kind_of(name) in ("bystanders", "other"):
        return Meaning("same-bits", t("nothing of A imports {name}", name=name))
    return Meaning(
        "same-numbers", t("libraries may pick {name} up by themselves when it is there", name=name)
    )


def of_variable(name: str) -> Meaning | None:
    """Return what another value of a variable means; None: it belongs to the session and is not compared."""
    if name in _listed("session", True) or name.startswith("LC_"):
        return None
    if name == "PYTHONHASHSEED":
        return Meaning("other-numbers", t("sets of strings are walked in another order"), PYTHON_DOCS)
    if name in _listed("algorithms", True):
        return Meaning("other-numbers", t("{name} decides what is computed", name=name), PYTORCH_NOTE)
    if name in _listed("kernels", True) or name.startswith(_prefixes(True)):
        return Meaning(
            "same-numbers", t("{name} decides how sums are split and rounded", name=name), MEASURED
        )
    return Meaning("same-bits", t("{name} is not known to reach the numbers", name=name))
