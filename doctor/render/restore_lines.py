"""A restore's sets, changes and code, and the known-good environments, as text for a terminal. Says what it is given. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from doctor.language import say
from doctor.model import t
from doctor.render.layout import indent, pad, paint
from doctor.snapshots.known_good import KnownEnvironment, Wants
from doctor.snapshots.nearest import Change
from doctor.snapshots.project_patch import Project
from doctor.snapshots.verify import Verification
from runner.strings import shown


def change_lines(changes: Sequence[Change], width: int) -> Iterator[str]:
    """Yield how the nearest set is another one, a line and a reason each."""
    if not changes:
        yield say("The exact set can be had and runs here: nothing is given up.")
        return
    yield say(t("Not the same environment. {count} of its packages would be others:", count=len(changes)))
    for one in changes:
        left = f"{shown(one.wanted) or '-'} -> {shown(one.got) or '-'}"
        yield from indent(f"{shown(one.name)} {left}: {shown(say(one.why))}", width, "  ", "      ")


def chosen_lines(found: Verification) -> Iterator[str]:
    if found.chosen:
        yield say(t("Of these, {count} were chosen when it was restored with --nearest.", count=found.chosen))


def proof_lines(found: Verification) -> Iterator[str]:
    """Yield how the proof's steps came out here."""
    proof = found.proof
    if proof is None:
        return
    if proof.why is not None:
        yield say(t("The proof was not compared: {why}", why=say(proof.why)))
    elif proof.differs:
        yield say(t("Not the same bits after {steps} {steps:step|steps}: {expected} there, {found} here. `doctor prove RUN` says where they part.", steps=proof.steps, expected=proof.expected[:23], found=proof.found[:23]))  # fmt: skip
    else:
        yield say(t("The same bits after {steps} {steps:step|steps}: weights, batches, random state, gradients and optimizer ({found}).", steps=proof.steps, found=proof.found[:23]))  # fmt: skip


def project_lines(done: Project, width: int) -> Iterator[str]:
    """Yield what was done with the code, and what of it is in no snapshot."""
    if not done.patched:
        yield say(t("{folder} is at commit {commit}; there were no changes to make.", folder=shown(done.folder), commit=done.commit[:12]))  # fmt: skip
    elif done.same_patch:
        yield say(t("{folder} is at commit {commit} with the snapshot's changes, compared by their digest.", folder=shown(done.folder), commit=done.commit[:12]))  # fmt: skip
    elif done.same_patch is False:
        yield say(t("{folder} is at commit {commit} with the snapshot's changes made, and yet `git diff` there is not, byte for byte, what it was.", folder=shown(done.folder), commit=done.commit[:12]))  # fmt: skip
    else:
        yield say(t("{folder} is at commit {commit} with the snapshot's changes; whether nothing else differs could not be compared.", folder=shown(done.folder), commit=done.commit[:12]))  # fmt: skip
    if done.missing_count:
        names = ", ".join(map(shown, done.missing[:10])) or "?"
        yield from indent(say(t("{count} files that git did not know are not in a snapshot, copy them: {names}", count=done.missing_count, names=names)), width, "", "  ")  # fmt: skip


# ---------------------------------------------------------------------------------------- list
def known_lines(known: Sequence[KnownEnvironment], width: int, colour: bool) -> Iterator[str]:
    """Yield each known-good environment with what it wants of a machine and how it is known."""
    widest = max((len(one.name) for one in known), default=0)
    for one in known:
        mark = say("tested") if one.tested else say("untested")
        yield f"{pad(shown(one.name), widest)}  {paint(mark, 'good' if one.tested else 'warn', colour)}  {shown(one.label)}"
        yield from indent(_wants(one.wants), width, "    ", "    ")
        if one.how is not None:
            yield from indent(shown(say(one.how)), width, "    ", "    ")


def _wants(wants: Wants) -> str:
    words = [
        say(t("driver {driver} or newer (CUDA {cuda})", driver=wants.driver, cuda=wants.cuda)) if wants.driver else say("no GPU"),
        say(t("compute capability {cards}", cards=" ".join(map(_capability, wants.cards)))) if wants.cards else "",
        f"Python {wants.python}",
        say(t("glibc {glibc} or newer", glibc=wants.glibc)) if wants.glibc else "",
        wants.arch,
    ]  # fmt: skip
    return " · ".join(word for word in words if word)


def _capability(arch: str) -> str:
    """``sm_86`` -> 8.6; ``compute_90``, which newer cards compile for themselves -> 9.0+."""
    kind, _, number = arch.partition("_")
    digits = number.rstrip("af")
    return f"{digits[:-1]}.{digits[-1:]}" + ("+" if kind == "compute" else "")
