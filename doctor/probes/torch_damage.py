"""Why an installed torch cannot be imported, where its files show it: lost files, another Python's build,
lost libraries."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from doctor.probes.bounded import is_there, names_in
from doctor.probes.library_folders import unresolved_libraries
from doctor.probes.packages import missing_files_once

if TYPE_CHECKING:
    from doctor.probes import Context


def broken(context: Context, site: Path, own: list[str], cuda: str | None, library: Path) -> str:
    """Return why ``import torch`` must fail, where files show it; empty: nothing seen."""
    package, minor = site / "torch", context.target.minor
    missing = [path for name in own[:1] for path in missing_files_once(context, site, name, "torch")]
    if missing:
        return f"missing: {', '.join(missing[:3])}{' ...' if len(missing) > 3 else ''}"
    if not is_there(package / "version.py"):
        return "missing: torch/version.py"
    modules = [name for name in names_in(package) if name.startswith("_C.") and name.endswith(".so")]
    if not modules:
        return "missing: torch/_C.*.so"
    # _C.cpython-311-x86_64-linux-gnu.so
    tags = {match[1] for name in modules if (match := re.match(r"_C\.cpython-(\d+)t?[dm]*-", name))}
    if (
        minor
        and tags
        and minor.replace(".", "") not in tags
        and not any(".abi3." in name for name in modules)
    ):
        return f"built for another Python: {modules[0]}, not for {minor}"
    lost = unresolved_libraries(context, library) if cuda else []
    return f"not found: {', '.join(lost[:3])}{' ...' if len(lost) > 3 else ''}" if lost else ""
