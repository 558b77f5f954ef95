"""An environment made again from a file, exactly or the nearest that runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from doctor.service.diagnosis import examine
from doctor.service.snapshots import snapshot_named, verify_snapshot

if TYPE_CHECKING:
    from doctor.model import Snapshot
    from doctor.restore_commands import Options
    from doctor.snapshots.fit import Obstacle
    from doctor.snapshots.nearest import Change as SetChange
    from doctor.snapshots.nearest import Nearest
    from doctor.snapshots.project_patch import Project
    from doctor.snapshots.restore_plan import RestorePlan
    from doctor.snapshots.verify import Verification


def plan_restore(name: str, torch_index: str | None = None) -> RestorePlan:
    """Return how a snapshot's environment is made again. Raises doctor.snapshots.restore_plan.RestoreError."""
    from doctor.snapshots.formats.sources import TORCH_INDEX
    from doctor.snapshots.restore_plan import plan_restore

    return plan_restore(snapshot_named(name), (torch_index.rstrip("/") + "/") if torch_index else TORCH_INDEX)


def restore_python(plan: RestorePlan, given: str | None = None) -> Path:
    """Return the interpreter to restore with. Raises doctor.snapshots.restore_plan.RestoreError."""
    from doctor.probes import Context
    from doctor.restore_python import find_python

    return find_python(plan.python, given, Context())


def restore_commands(plan: RestorePlan, folder: Path, python: Path, options: Options) -> list[list[str]]:
    """Return every command of a restore in order, for showing."""
    from doctor.restore_commands import install_argv, venv_argv

    return [
        venv_argv(python, folder, options.uv),
        *(install_argv(phase, folder, options) for phase in plan.phases),
    ]


def restore_options(
    consents: Sequence[str] = (),
    find_links: Sequence[str] = (),
    no_index: bool = False,
    installer: str | None = None,
    untested: bool = False,
) -> Options:
    """Return how to install; ``installer`` is pip or uv, None: uv where it asks the same indexes as pip."""
    from doctor.probes import Context
    from doctor.restore_commands import Options, our_uv
    from doctor.restore_python import choose_uv

    uv = our_uv() if installer == "uv" else None if installer == "pip" else choose_uv(Context())
    links = tuple(one if "://" in one else str(Path(one).absolute()) for one in find_links)
    return Options(consents=tuple(consents), find_links=links, no_index=no_index, uv=uv, untested=untested)


def may_restore(plan: RestorePlan, options: Options) -> None:
    """Raise doctor.snapshots.restore_plan.RestoreError where the plan wants a yes that was not given."""
    from doctor.restore import may_restore

    may_restore(plan, options)


def nearest_set(
    name: str, python: Path, options: Options, torch_index: str | None, tell: Callable[[str], None]
) -> Nearest:
    """Return the nearest set that can be had and runs here. Raises doctor.snapshots.restore_plan.RestoreError."""
    from doctor.probes import Context
    from doctor.probes.index_config import read_indexes
    from doctor.restore_nearest import find_nearest
    from doctor.snapshots.fit import MACHINE
    from doctor.snapshots.formats.sources import TORCH_INDEX

    where = (torch_index.rstrip("/") + "/") if torch_index else TORCH_INDEX
    here, lines = examine(str(python), (*MACHINE, "python")), read_indexes(Context(), None, {})
    return find_nearest(snapshot_named(name), here, python, options, lines, where, tell)


def plan_nearest(nearest: Nearest, torch_index: str | None = None) -> RestorePlan:
    """Return how a nearest set is made. Raises doctor.snapshots.restore_plan.RestoreError."""
    from doctor.snapshots.formats.sources import TORCH_INDEX
    from doctor.snapshots.restore_plan import plan_restore

    return plan_restore(nearest.snapshot, (torch_index.rstrip("/") + "/") if torch_index else TORCH_INDEX)


def check_project(name: str, folder: Path) -> None:
    """Raise doctor.snapshots.restore_plan.RestoreError unless the snapshot's changes apply to ``folder``."""
    from doctor.restore_project import check_project

    check_project(snapshot_named(name), folder)


def restore_project(name: str, folder: Path) -> Project:
    """Make the snapshot's changes to the code in ``folder``. Raises as :func:`check_project`."""
    from doctor.restore_project import restore_project

    return restore_project(snapshot_named(name), folder)


def restore_snapshot(
    name: str,
    plan: RestorePlan,
    folder: Path,
    python: Path,
    options: Options,
    tell: Callable[[str], None],
    changes: Sequence[SetChange] = (),
) -> Verification:
    """Make the environment in ``folder`` and verify it by content. Raises RestoreError, KeyboardInterrupt.

    ``changes``: how the plan is another set than the snapshot's, for verify to say again.
    """
    from doctor.restore import restore
    from doctor.restore_nearest import keep_changes

    folder = folder.absolute()
    restore(plan, folder, python, options, tell)
    if changes:
        keep_changes(folder, changes)
    return verify_snapshot(name, "record", str(folder))


def credentials_named(name: str) -> list[str]:
    """Return the names of variables that were set there and hold credentials; no snapshot keeps their values."""
    from doctor.redact_secrets import is_credential_variable
    from runner.strings import shown

    environment = snapshot_named(name).facts.environment.value
    return [shown(one) for one in environment.names if is_credential_variable(one)] if environment else []


def unfit_here(name: str | Snapshot) -> list[Obstacle]:
    """Return what makes this machine unable to take a snapshot, whatever Python runs the doctor."""
    from doctor.snapshots.fit import MACHINE, fit

    here = examine(sections=MACHINE)
    snapshot = snapshot_named(name) if isinstance(name, str) else name
    return [one for one in fit(snapshot, here).obstacles if one.level == "fail"]
