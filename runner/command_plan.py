"""The plan of a supervised command (``doctor run -- python train.py``): what was started, where, and with which
variables. Pure; the runner's own trainer never reads it."""

from __future__ import annotations

import hashlib
import shlex
from typing import Any

import msgspec

from runner.decisions import Decision
from runner.plan import Plan, PlanError, decode_plan
from runner.strings import unescape
from runner.text import t

SCHEMA = 1
_LATER = frozenset({"resume_with", "checkpoints"})


class CommandPlan(msgspec.Struct, frozen=True, kw_only=True):
    """``plan.json`` of kind ``command``. Words that are not valid UTF-8 are kept escaped (:mod:`runner.strings`)."""

    schema: int = SCHEMA
    kind: str = "command"
    name: str
    made_at: str
    """ISO 8601."""
    argv: tuple[str, ...]
    cwd: str
    environment: dict[str, str]
    """Variables set for the command before it starts; every other is the session's."""
    decisions: tuple[Decision, ...]
    """Every one of :attr:`environment` with its reason, and those left as the user had them."""
    retries: int = 0
    """How often it is started again after a failure."""
    resume_with: str = ""
    """Words added to a further start that has a checkpoint to go on from; ``{checkpoint}`` stands for its path."""
    checkpoints: str = ""
    """A glob that the script's own checkpoints answer to; empty: Trainer's, accelerate's and Lightning's names."""
    on_finish: str = ""
    """A shell command for after the end; empty: none."""
    on_finish_always: bool = False
    """Also after a stop by hand."""
    countdown_s: float = 30.0
    """From the end to :attr:`on_finish`: time to cancel it."""
    digest: str = ""
    """SHA-256 of all of the above but ``made_at``."""

    @property
    def command(self) -> str:
        """The command as a shell takes it."""
        return shlex.join(self.words)

    @property
    def folder(self) -> str:
        """The working directory, as the kernel takes it."""
        return unescape(self.cwd)

    @property
    def words(self) -> list[str]:
        """The command's words as the kernel takes them; undecodable bytes as ``surrogateescape`` characters."""
        return [unescape(word) for word in self.argv]


def sealed(plan: CommandPlan) -> CommandPlan:
    """Return ``plan`` with its digest."""
    return msgspec.structs.replace(plan, digest=command_digest(plan))


def command_digest(plan: CommandPlan) -> str:
    """Return the digest; a setting that came later counts where it is set, so that older plans keep theirs."""
    bare = msgspec.to_builtins(msgspec.structs.replace(plan, made_at="", digest=""))
    kept = {name: value for name, value in bare.items() if value or name not in _LATER}
    return hashlib.sha256(msgspec.json.encode(kept, order="sorted")).hexdigest()


def encode_command(plan: CommandPlan) -> bytes:
    """Return ``plan.json``."""
    return msgspec.json.format(msgspec.json.encode(plan), indent=1) + b"\n"


def is_command(data: bytes | str) -> bool:
    """Return whether a ``plan.json`` is a supervised command's."""
    try:
        tree: Any = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False
    return isinstance(tree, dict) and tree.get("kind") == "command"


def decode_command(data: bytes | str) -> CommandPlan:
    """Read a ``plan.json`` of kind ``command``.

    Raises:
        PlanError: it is none, of a newer schema, or changed since it was made.
    """
    try:
        tree: Any = msgspec.json.decode(data)
        schema = tree.get("schema") if isinstance(tree, dict) else None
        if isinstance(schema, int) and schema > SCHEMA:
            raise PlanError(
                t("plan.json has schema {schema}, newer than this runner: update rundoctor", schema=schema)
            )
        plan = msgspec.convert(tree, CommandPlan)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise PlanError(t("plan.json is not a plan: {why}", why=str(error))) from error
    if plan.digest != command_digest(plan):
        raise PlanError(
            t("plan.json was changed after it was made (its digest does not fit); make a new run")
        )
    return plan


def decode_any(data: bytes | str) -> Plan | CommandPlan:
    """Read either kind of ``plan.json``. Raises PlanError."""
    return decode_command(data) if is_command(data) else decode_plan(data)
