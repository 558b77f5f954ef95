"""Asks the indexes, through uv, for the nearest set that can be had and runs here. Needs the indexes; installs nothing."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

import msgspec

from doctor.model import IndexLine, Snapshot, t
from doctor.redact_secrets import without_secrets
from doctor.restore_commands import NOTES, Options, Tell, installer_environ, our_uv
from doctor.snapshots.nearest import Change, Nearest, nearest
from doctor.snapshots.nearest_wishes import NoTorch, Wish, blamed, loosened, torch_swap, wishes_of
from doctor.snapshots.restore_plan import RestoreError
from doctor.state_dir import write_whole

UV_LIMIT_S = 300.0
ROUNDS = 60
_PINNED = re.compile(r"([A-Za-z0-9._-]+)==(\S+)")
_OPTIONS = {"index-url": "--default-index", "extra-index-url": "--index", "find-links": "--find-links"}


def find_nearest(
    snapshot: Snapshot,
    here: Snapshot,
    python: Path,
    options: Options,
    indexes: Sequence[IndexLine],
    torch_index: str,
    tell: Tell,
) -> Nearest:
    """Return what to restore in the snapshot's place. Raises RestoreError: nothing that runs can be had."""
    try:
        swap = torch_swap(snapshot, here)
    except NoTorch as error:
        raise RestoreError(error.text) from None
    wishes = wishes_of(snapshot, swap)
    own = [swap.index] if swap and swap.index else []
    labels = dict.fromkeys(wish.requirement.partition("+")[2] for wish in wishes if "+cu" in wish.requirement or "+cpu" in wish.requirement)  # fmt: skip
    extra = dict.fromkeys([*own, *(f"{torch_index}{label}" for label in labels)])
    words = [
        *_places(options, indexes),
        *(() if options.no_index else (word for one in extra for word in ("--index", one))),
    ]
    for _ in range(ROUNDS):
        done = _ask(wishes, python, words, options)
        if done.returncode == 0:
            return nearest(snapshot, here, wishes, dict(_PINNED.findall(done.stdout)), swap)
        names, gone = blamed(done.stderr)
        looser = loosened(wishes, names, gone)
        if looser is None:
            break
        tell(", ".join(f"{one.requirement} ?" for one in wishes if one.name in names))
        wishes = looser
    reason = without_secrets(" ".join(done.stderr.split())[:400])
    raise RestoreError(t("no set that runs here can be had: {error}", error=reason))


def _places(options: Options, indexes: Sequence[IndexLine]) -> list[str]:
    words = (
        ["--no-index"]
        if options.no_index
        else [word for line in indexes for word in (_OPTIONS[line.option], line.url)]
    )
    return [*words, *(word for links in options.find_links for word in ("--find-links", links))]


def _ask(
    wishes: Sequence[Wish], python: Path, words: Sequence[str], options: Options
) -> subprocess.CompletedProcess[str]:
    uv = our_uv()
    if uv is None:
        raise RestoreError(t("the indexes are asked through uv, which is not here: pip install uv"))
    argv = [uv, "pip", "compile", "in.txt", "--python", str(python), "--index-strategy", "unsafe-best-match", "--no-header", "--no-annotate", "--quiet"]  # fmt: skip
    argv += [] if "sdists" in options.consents else ["--only-binary", ":all:"]
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "in.txt").write_text("".join(f"{one.requirement}\n" for one in wishes), "utf-8")
        try:
            return subprocess.run(
                [*argv, *words], cwd=folder, env=installer_environ(os.environ), stdin=subprocess.DEVNULL, capture_output=True,
                encoding="utf-8", errors="replace", timeout=UV_LIMIT_S, check=False,
            )  # fmt: skip
        except (OSError, subprocess.TimeoutExpired) as error:
            raise RestoreError(t("uv could not look the packages up: {error}", error=str(error))) from None


# ---------------------------------------------------------------------------------------- remembered
def keep_changes(folder: Path, changes: Sequence[Change]) -> None:
    """Write beside the restore's state how it is another set, so that verify can say so. Raises RestoreError."""
    try:
        write_whole(folder / NOTES / "nearest.json", msgspec.json.encode(changes), 0o600)
    except OSError as error:
        raise RestoreError(t("cannot write {folder}: {error}", folder=str(folder), error=error.strerror or "")) from None  # fmt: skip


def kept_changes(prefix: Path | None) -> tuple[Change, ...]:
    """Return how the environment in ``prefix`` was chosen to be another set; empty: it was not, or nothing says."""
    try:
        return (
            msgspec.json.decode((prefix / NOTES / "nearest.json").read_bytes(), type=tuple[Change, ...])
            if prefix
            else ()
        )
    except (OSError, msgspec.MsgspecError):
        return ()
