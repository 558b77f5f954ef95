"""Which interpreter is judged: ``--python``, VIRTUAL_ENV, CONDA_PREFIX, the first ``python`` on PATH, else
our own.

A tool environment of ours (uv tool, pipx, uvx) holds the doctor and nothing that trains: it is judged only
when there is no other Python at all.
"""

from __future__ import annotations

import os
import re
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from doctor.model import Reading, Text, t
from doctor.probes.bounded import is_file, is_folder, is_there, may_be_listed
from doctor.probes.interpreter import Layout, ask_child, read_layout
from doctor.probes.on_path import on_path, through_shim
from doctor.probes.search_path import SearchPath, search_path
from runner.strings import printable

if TYPE_CHECKING:
    from doctor.probes import Context

DEADLINE_S = 3.0
"""A folder on PATH may lie on a mount that hangs."""


class BadPython(ValueError):  # noqa: N818 - it is what it says
    """``--python`` names something that is no interpreter. ``text`` says what it is and what would do."""

    def __init__(self, text: Text) -> None:
        super().__init__(str(text))
        self.text = text


class Target(msgspec.Struct, frozen=True):
    """An interpreter found on disk."""

    executable: Path | None
    """None: no Python was found."""
    prefix: Path | None = None
    version: str = ""
    kind: str = ""
    chosen_by: str = ""
    site_packages: tuple[Path, ...] = ()
    """Folders of installed packages in import order, PYTHONPATH and user site included."""
    layout: Layout | None = None
    search: SearchPath | None = None
    problem: Text | None = None
    """Why it cannot run, or why none could be looked for."""
    looked: bool = True
    """False: looking for one did not end; "none" is then no answer."""
    first_on_path: Path | None = None
    """What ``python`` runs in this session, where that is another one."""

    @property
    def closed_folder(self) -> Path | None:
        """A folder on the way to what is installed that this user may not look into; None: all are open."""
        above: tuple[Path, ...] = ()
        if self.prefix is not None and self.layout is not None:
            above = (self.prefix / "lib", self.prefix / "lib" / self.layout.library_name)
        return next(
            (
                folder
                for folder in (*above, *self.site_packages)
                if is_there(folder) and not may_be_listed(folder)
            ),
            None,
        )

    @property
    def minor(self) -> str:
        return self.layout.minor if self.layout else ""


def without_python(target: Target) -> Reading[Any]:
    """Return what a probe of the environment answers where no interpreter was found."""
    return Reading(status="absent" if target.looked else "failed", why=target.problem, source="PATH")


def find_target(context: Context, own_prefix: str | None = None) -> Target:
    """Return the interpreter to judge. Looks for at most three seconds.

    Raises:
        BadPython: ``context.python`` names no interpreter.
    """
    answer: list[Target | BadPython] = []

    def look() -> None:
        try:
            answer.append(_look(context, own_prefix or sys.prefix))
        except BadPython as error:
            answer.append(error)

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    thread.join(DEADLINE_S)
    if not answer:
        why = t(
            "looking for Python took longer than {seconds} s: a folder on PATH hangs",
            seconds=round(DEADLINE_S),
        )
        return Target(executable=None, problem=why, looked=False)
    if isinstance(answer[0], BadPython):
        raise answer[0]
    return answer[0]


def _look(context: Context, own_prefix: str) -> Target:
    if context.python is not None:
        return describe(context, resolve_given(context.python, context), "--python")
    passed_over: list[Target] = []
    for executable, chosen_by in candidates(context):
        target = describe(context, executable, chosen_by)
        if chosen_by == "PATH" and target.version.startswith(
            "2."
        ):  # an old system's `python`; nothing trains with it
            passed_over.append(target)
        elif not (str(target.prefix) == own_prefix and is_tool_environment(target.prefix)):
            return target
    if passed_over:
        return passed_over[0]
    ours = Path(own_prefix) / "bin" / "python"
    if is_there(ours):
        return describe(context, ours, "ours")
    return Target(
        executable=None, problem=t("there is no Python here: none on PATH, no VIRTUAL_ENV, no CONDA_PREFIX")
    )


def describe(context: Context, executable: Path, chosen_by: str) -> Target:
    """Return the target for an interpreter that was chosen."""
    layout = read_layout(executable)
    if not layout.version and layout.problem is None:
        return _silent(executable, chosen_by)
    found = search_path(layout, context.environ, context.cwd, same_user=os.getuid() == os.geteuid())
    first = next(on_path(context), None)
    return Target(
        executable=executable,
        prefix=layout.prefix,
        version=layout.version,
        kind=layout.kind,
        chosen_by=chosen_by,
        site_packages=found.folders,
        layout=layout,
        search=found,
        problem=layout.problem,
        first_on_path=None if first is None or _same(first, executable) else first,
    )


def _silent(executable: Path, chosen_by: str) -> Target:
    """Of something called python that tells nothing: what is installed for it is not known, which is not "nothing"."""
    why = t(
        "no file beside {python} tells its version, and it does not answer as a Python does",
        python=printable(str(executable)),
    )
    return Target(executable=None, chosen_by=chosen_by, problem=why, looked=False)


def _same(one: Path, other: Path) -> bool:
    """Whether two paths run as the same environment: the same folder, however the link is named."""
    return os.path.realpath(one.parent) == os.path.realpath(other.parent) and os.path.realpath(
        one
    ) == os.path.realpath(other)


def candidates(context: Context) -> Iterator[tuple[Path, str]]:
    """Yield interpreters in the order they are preferred, with what named them."""
    for variable in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        if folder := context.environ.get(variable):
            for name in ("python", "python3"):
                if os.path.lexists(
                    path := Path(folder) / "bin" / name
                ):  # a dead link is an environment that is broken
                    yield path, variable
                    break
    for path in on_path(context):
        yield path, "PATH"


def is_tool_environment(prefix: Path | None) -> bool:
    """Whether a prefix was made by uv tool, pipx or uvx for one command line tool."""
    if prefix is None:
        return False
    marked = any(is_there(prefix / name) for name in ("uv-receipt.toml", "pipx_metadata.json"))
    # uvx keeps its environments in uv's cache: ~/.cache/uv/archive-v0/Fq3zX...
    return marked or any(part.startswith(("archive-v", "environments-v")) for part in prefix.parts)


def resolve_given(given: str, context: Context) -> Path:
    """Return the interpreter that ``--python`` means: a path, an environment's folder, or a name on PATH.

    Raises:
        BadPython: it is none of these.
    """
    path = context.cwd / os.path.expanduser(given)  # noqa: PTH111 - a home that is not known stays a tilde
    if is_folder(path):
        for name in ("bin/python", "bin/python3"):
            if os.path.lexists(path / name):
                return _interpreter(path / name, given, context)
        raise BadPython(
            t(
                "--python {path}: no bin/python in this folder. Name an environment's folder or an interpreter.",
                path=given,
            )
        )
    if "/" not in given and not is_there(path):
        return _named_on_path(given, context)
    if not os.path.lexists(path):
        raise BadPython(t("--python {path}: there is no such file or folder", path=given))
    if is_there(path) and not (is_file(path) and os.access(path, os.X_OK)):
        raise BadPython(t("--python {path}: this is not an executable file", path=given))
    return _interpreter(path, given, context)


def _named_on_path(given: str, context: Context) -> Path:
    for folder in context.environ.get("PATH", "").split(":"):
        path = Path(context.cwd, folder, given)
        if is_file(path) and os.access(path, os.X_OK):
            return _interpreter(path, given, context)
    raise BadPython(t("--python {path}: there is no such command on PATH, and no such file here", path=given))


def _interpreter(path: Path, given: str, context: Context) -> Path:
    if not is_there(path):  # a dead link: the environment is broken, and that is what will be reported
        return path
    found = through_shim(path, context)
    if found is None or not (_PYTHON.match(Path(os.path.realpath(found)).name) or ask_child(found)):
        raise BadPython(t("--python {path}: this is not a Python interpreter", path=given))
    return found


_PYTHON = re.compile(r"(python|pypy)")
