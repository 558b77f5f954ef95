"""Driver, cards, CPU, Python, C library and variables of two snapshots. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from doctor.checks.versions import minor
from doctor.model import Gpus, Host, Snapshot, t
from doctor.snapshots.differences import Difference, difference
from doctor.snapshots.meanings import CUBLAS_NOTE, MEASURED, PYTORCH_NOTE, Meaning, of_variable


def machine_differences(a: Snapshot, b: Snapshot) -> Iterator[Difference]:
    yield from _cards(a, b)
    yield from _driver(a, b)
    yield from _python(a, b)
    yield from _host(a, b)
    yield from _variables(a, b)


def _cards(a: Snapshot, b: Snapshot) -> Iterator[Difference]:
    one, other = _counted(a.facts.gpus.value), _counted(b.facts.gpus.value)
    if one is None and a.facts.gpus.status != "absent":
        return
    if other is None and b.facts.gpus.status != "absent":
        return
    mine, theirs = one or Counter(), other or Counter()
    if mine == theirs:
        return
    yield difference("machine", "GPU", _names(mine), _names(theirs), _of_cards(mine, theirs))


def _counted(gpus: Gpus | None) -> Counter[str] | None:
    if gpus is None:
        return None
    return Counter(f"{gpu.name or '?'}{' MIG' if gpu.mig_enabled else ''}" for gpu in gpus.items)


def _names(cards: Counter[str]) -> str:
    return ", ".join(f"{count} x {name}" for name, count in sorted(cards.items()))


def _of_cards(mine: Counter[str], theirs: Counter[str]) -> Meaning:
    if not theirs:
        return Meaning("will-not-run", t("there is no GPU"))
    if not mine:
        return Meaning("other-numbers", t("a GPU computes with other kernels and other random numbers than a CPU"), PYTORCH_NOTE)  # fmt: skip
    if set(mine) == set(theirs):
        return Meaning("other-numbers", t("with another number of cards batches and sums are split differently"), PYTORCH_NOTE)  # fmt: skip
    return Meaning("other-numbers", t("another card: random numbers and sums are promised for one model only"), CUBLAS_NOTE)  # fmt: skip


def _driver(a: Snapshot, b: Snapshot) -> Iterator[Difference]:
    one, other = a.facts.driver.value, b.facts.driver.value
    if one is None or other is None or not one.version or not other.version or one.version == other.version:
        return
    why = t("the driver compiles what a build has no code for; kernels of the wheels stay the same")
    yield difference(
        "machine", "driver", one.version, other.version, Meaning("same-numbers", why, PYTORCH_NOTE)
    )


def _python(a: Snapshot, b: Snapshot) -> Iterator[Difference]:
    one, other = a.facts.python.value, b.facts.python.value
    if one is None or other is None or not one.version or not other.version or one.version == other.version:
        return
    same_minor = minor(one.version) == minor(other.version)
    if same_minor and 1 in (one.version.count("."), other.version.count(".")):  # only the minor was named
        return
    why = (
        t("another patch release of Python: no change of numbers is known")
        if same_minor
        else t("another Python: wheels compiled for it are other files")
    )
    yield difference("machine", "Python", one.version, other.version, Meaning("same-numbers", why))


_HOST_FIELDS = ("arch", "glibc", "cpu_model", "affinity_count", "os_name", "kernel")


def _host(a: Snapshot, b: Snapshot) -> Iterator[Difference]:
    one, other = a.facts.host.value, b.facts.host.value
    if one is None or other is None:
        return
    for field in _HOST_FIELDS:
        mine, theirs = getattr(one, field), getattr(other, field)
        if mine and theirs and mine != theirs:
            yield difference("machine", field, mine, theirs, _of_host(field, one, other))


def _of_host(field: str, one: Host, other: Host) -> Meaning:
    if field == "arch":
        return Meaning("other-numbers", t("another processor architecture: other wheels, other kernels"), PYTORCH_NOTE)  # fmt: skip
    if field == "glibc":
        return Meaning(
            "same-numbers", t("another C library: its mathematical functions may round differently")
        )
    if field == "cpu_model":
        return Meaning("same-numbers", t("another CPU may have other vector units, which round differently"), MEASURED)  # fmt: skip
    if field == "affinity_count":
        return Meaning("same-numbers", t("with another number of threads sums on the CPU are split differently, unless OMP_NUM_THREADS is set"), MEASURED)  # fmt: skip
    return Meaning("same-bits", t("the operating system does not compute"))


def _variables(a: Snapshot, b: Snapshot) -> Iterator[Difference]:
    one, other = a.facts.environment.value, b.facts.environment.value
    if one is None or other is None:
        return
    for name in sorted({*one.variables, *other.variables}):
        mine, theirs = one.get(name), other.get(name)
        unknown = (mine is None and not one.complete) or (theirs is None and not other.complete)
        meaning = of_variable(name)
        if mine != theirs and meaning and not unknown:
            yield difference("environment", name, mine, theirs, meaning)
