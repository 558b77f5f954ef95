"""What a ``must_not`` entry rules out: an id, "ID at warning or error", or a sentence as ids and words.

An entry that nothing here understands is "not checked", and said so; it never counts as kept.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from doctor.model import Finding, Report
from tests.cases.names import ours

Rejudge = Callable[[Mapping[str, Any]], list[Finding]]
"""Facts of a case, changed -> the findings of that other machine, and of the script on it."""


@dataclass(frozen=True)
class Given:
    """What the doctor said of one case, and how to ask it about a changed one."""

    findings: tuple[Finding, ...]
    """All of them, symptoms included."""
    report: Report | None
    facts: Mapping[str, Any]
    rejudge: Rejudge
    said: tuple[str, ...] = ()
    """The explanations of the case's text."""

    def ids(self, *levels: str) -> set[str]:
        return {item.id for item in self.findings if not levels or item.level in levels}

    def causes(self) -> set[str]:
        """Ids that stand at the head of a diagnosis, above note."""
        heads = [diagnosis.finding for diagnosis in self.report.diagnoses] if self.report else self.findings
        return {item.id for item in heads if item.level in ("fail", "warn")}

    def words(self) -> list[str]:
        return [f"{item.title}\n{item.advice or ''}" for item in self.findings] + list(self.said)

    def advises(self, pattern: str) -> bool:
        """Whether a sentence of advice says ``pattern`` and does not say "not", "never" or "no" before it."""
        for item in self.findings:
            for sentence in re.split(r"(?<=[.;:])\s+|\n", str(item.advice or "")):
                match = re.search(pattern, sentence, re.IGNORECASE)
                if match and not re.search(
                    r"\b(not|never|no|without|instead of)\b", sentence[: match.end()], re.I
                ):
                    return True
        return False

    def says(self, pattern: str) -> bool:
        return any(re.search(pattern, words, re.IGNORECASE) for words in self.words())


Broken = Callable[[Given], bool]


def _about(finding_id: str, subject: str, *levels: str) -> Broken:
    return lambda given: any(
        item.id == finding_id and item.subject == subject and (not levels or item.level in levels)
        for item in given.findings
    )


def _disk_full(path: str) -> Broken:
    return lambda given: any(
        item.subject == path and item.level in ("fail", "warn") and "disk" in item.id
        for item in given.findings
    )


def _on_linux(given: Given) -> bool:
    """The finding that this case expects, on the same machine with Linux x86_64 wheels."""
    facts = {key: value for key, value in given.facts.items() if key != "platform"}
    return any(item.id == "python-version-no-wheel" for item in given.rejudge(facts))


def _unbuilt_extension(given: Given) -> bool:
    """The same machine, without the file that has something to compile."""
    facts = {key: value for key, value in given.facts.items() if key != "files"}
    return any(
        item.id == "nvcc-torch-cuda-mismatch" and item.level == "fail" for item in given.rejudge(facts)
    )


def _fails_with(finding_id: str, name: str, *versions: str) -> Broken:
    """Whether the same machine and script would give a failure with other versions of ``name``."""

    def broken(given: Given) -> bool:
        packages = dict(given.facts.get("packages", {}))
        for version in versions:
            facts = {**given.facts, "packages": {**packages, name: version}}
            if name == "torch":
                facts["torch"] = version
            if any(item.id == finding_id and item.level == "fail" for item in given.rejudge(facts)):
                return True
        return False

    return broken


_TRAINING_SCRIPT = {
    "clip-before-unscale", "unscale-twice", "fp16-params-with-gradscaler", "optimizer-before-cuda",
    "removed-argument", "removed-import", "unknown-argument", "eval-logits-accumulate", "numpy-worker-seed",
    "learning-rate-too-high", "cuda-visible-devices-set-late", "accumulation-loss-not-scaled",
    "ckpt-missing-state", "oom-retry-inside-except",
}  # fmt: skip

SENTENCES: dict[str, Broken] = {
    "any advice to install a CUDA toolkit": lambda g: g.advises(r"install\b.*\bcuda[- ]?toolkit"),
    "advice to install a CUDA toolkit": lambda g: g.advises(r"install\b.*\bcuda[- ]?toolkit"),
    "advice to install a driver or a CUDA toolkit": lambda g: g.advises(
        r"install\b.*\b(driver|cuda[- ]?toolkit)\b"
    ),
    "advice to upgrade torch": lambda g: g.advises(
        r"\b(upgrade|update)\b|install\b.* -U\b|\bnewer (torch|release|build)"
    ),
    "torch reinstall advice": lambda g: g.advises(r"\breinstall|install\b.*\btorch"),
    "any script advice": lambda g: bool(g.ids() & _TRAINING_SCRIPT),
    "removed-argument at error on 4.46-4.57 (accepted with a notice there: info)": _fails_with(
        "removed-argument", "transformers", "4.46.0", "4.50.3", "4.57.1"
    ),
    "optimizer-before-cuda at error on torch >= 2.4": _fails_with(
        "optimizer-before-cuda", "torch", "2.4.0", "2.9.1"
    ),
    "any error severity": lambda g: bool(g.ids("fail")),
    "error severity": lambda g: bool(g.ids("fail")),
    "any warning": lambda g: bool(g.ids("fail", "warn")),
    "any error or warning on 11.2 versus 11.3": lambda g: bool(g.ids("fail", "warn")),
    "any error or warning because the driver is unknown": lambda g: bool(g.ids("fail", "warn")),
    "memory leak": lambda g: g.says(r"\bleak"),
    "torch not installed": lambda g: (
        g.says(r"torch is not installed|no torch\b") or "torch-missing" in g.ids()
    ),
    "pip check is clean, therefore nothing to report": lambda g: not g.ids("fail", "warn"),
    "torch-cpu-only-build as error (no GPU present)": lambda g: "torch-cpu-only-build" in g.ids("fail"),
    "any advice to replace the system libc": lambda g: g.advises(
        r"(install|upgrade|replace|build|update)\b.*\bg?libc\b"
    ),
    "advice to symlink system libraries": lambda g: g.advises(r"\bln -s|symlink"),
    "the same finding on manylinux x86_64": _on_linux,
    "error severity when no extension is built": _unbuilt_extension,
    "disk full on /root/autodl-tmp": _disk_full("/root/autodl-tmp"),
    "reporting free space of / for the output directory": _about("checkpoint-budget-exceeds-disk", "/"),
    "checkpoint-budget-exceeds-disk computed from df only": lambda g: (
        "checkpoint-budget-exceeds-disk" in g.ids()
    ),
    "gpu out of memory": lambda g: g.says(r"(gpu|cuda|vram)[^.]*out of memory|out of (gpu|cuda) memory"),
    "advice to use len(os.sched_getaffinity(0))": lambda g: g.advises(r"sched_getaffinity"),
    "no finding because cpu.max is max": lambda g: "cpu-quota-below-host-count" not in g.ids(),
    "unconditional advice expandable_segments:True": lambda g: g.advises(r"expandable_segments:True"),
    "-100 reported as out of range (it is ignore_index)": lambda g: any(
        item.id == "label-out-of-range" and "-100" in str(item.title) for item in g.findings
    ),
    "advice to use sudo when uid is 0": lambda g: g.advises(r"\bsudo\b"),
    "advice docker run --cap-add (this is a pod)": lambda g: g.says(r"--cap-add"),
    "advice pkill -9 python": lambda g: g.says(r"\b(pkill|killall)\b"),
    "gpu reset advice": lambda g: g.advises(r"gpu-reset|reset the (gpu|card)"),
    "showing 0 %": lambda g: g.says(r"(?<![\d.])0 ?%"),
    "wrong vocabulary / wrong language": lambda g: g.says(r"wrong (vocabulary|language|tokenizer)"),
    "file-encoding-not-utf8 (GBK)": lambda g: any(
        item.id == "file-encoding-not-utf8" and re.search(r"gb", str(item.title), re.I) for item in g.findings
    ),
    "advice errors='ignore'": lambda g: g.advises(r"errors\s*=\s*['\"]ignore"),
    "wrong checkpoint": lambda g: g.says(r"wrong checkpoint"),
}
"""Each sentence of the open cases -> whether the doctor's answer breaks it."""

_ID = r"(?P<id>[a-z0-9]+(?:-[a-z0-9]+)+)"
_LOUD = ("fail", "warn")
_PATTERNS: tuple[tuple[re.Pattern[str], tuple[str, ...]], ...] = (
    # learning-rate-too-high (3e-4 is usual for T5) | unscale-twice in the user's script
    (re.compile(rf"{_ID}(?: \(.*\)| in the user's script)?"), ()),
    # optimizer-before-cuda at warning or error for AdamW | shm-too-small above info
    (
        re.compile(
            rf"{_ID} (?:at|as) (?:a )?warning\b.*|{_ID.replace('<id>', '<id2>')} above (?:info|note)\b.*"
        ),
        _LOUD,
    ),
    # removed-argument at error on 4.46-4.57 (...) | cuda-visible-devices-invalid as error
    (re.compile(rf"{_ID} (?:at|as) (?:an )?error\b.*"), ("fail",)),
)
# any error or warning on 11.2 versus 11.3 | any finding above info | any warning
_ANYTHING = re.compile(r"any (?:error or warning|warning or error|warning|finding above (?:info|note))\b.*")
_ANY_ERROR = re.compile(r"(?:any )?error(?: severity)?\b.*")
# cgroup-memory-below-host as the cause
_CAUSE = re.compile(rf"{_ID} as (?:the|a|root) cause\b.*")
# advice to set PYTORCH_CUDA_ALLOC_CONF | advice pip install --upgrade
_ADVICE = re.compile(r"(?:any |unconditional )?advice (?:to )?(?P<words>.+)")
# what can be looked for word by word: a flag, a variable, a call, a file, a command
_LITERAL = re.compile(
    r"--[a-z][\w-]+(?:=\S+)?|\b[A-Z][A-Z0-9]*_[A-Z0-9_]+(?:=\S+)?|\b\w+\.\w+\([^)]*\)|\b\w+=\w+|/[\w/.-]+|\b[a-z]+_[a-z_]+\b"
    r"|\b(?:sudo|pkill|killall|reboot|ln -s|chmod|rmmod|apt|conda)\b"
)


def rule(entry: str) -> Broken | None:
    """Return what tells whether ``entry`` was broken; None when the sentence is not understood."""
    if entry in SENTENCES:
        return SENTENCES[entry]
    if entry.startswith("saying "):
        return lambda given: given.says(entry.removeprefix("saying "))
    for pattern, levels in _PATTERNS:
        match = pattern.fullmatch(entry)
        if match:
            return _gives(next(filter(None, match.groups())), levels)
    if _ANYTHING.fullmatch(entry):
        return lambda given: bool(given.ids(*_LOUD))
    if _ANY_ERROR.fullmatch(entry):
        return lambda given: bool(given.ids("fail"))
    match = _CAUSE.fullmatch(entry)
    if match:
        names = set(ours(match["id"]))
        return lambda given: bool(names & given.causes())
    match = _ADVICE.fullmatch(entry)
    words = _LITERAL.findall(match["words"]) if match else []
    if words:
        return lambda given: all(given.advises(re.escape(word)) for word in words)
    return None


def _gives(finding_id: str, levels: tuple[str, ...]) -> Broken:
    names = set(ours(finding_id))
    return lambda given: bool(names & given.ids(*levels))
