"""A folder of wheels and a script that installs from it, for a machine without network. pip does the work."""

from __future__ import annotations

import importlib.metadata
import os
import re
import shlex
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

from doctor import __version__
from doctor.model import Text, t
from doctor.probes.bounded import is_there
from doctor.probes.dist_info import parse_direct_url
from doctor.probes.target import BadPython
from runner.strings import printable

if TYPE_CHECKING:
    from doctor.probes import Context
    from doctor.probes.target import Target

DOWNLOAD_DEADLINE_S = 3600.0
EXTRAS = ("tui", "train", "stacks", "lint", "peft", "trackers", "demo")
SCRIPT = "install.sh"


class WheelhouseError(Exception):
    """It could not be collected; ``text`` says why and what would help, ``usage`` that the request itself is
    wrong."""

    def __init__(self, text: Text, usage: bool = False) -> None:
        super().__init__(str(text))
        self.text = text
        self.usage = usage


@dataclass(frozen=True)
class Wheelhouse:
    folder: Path
    files: tuple[str, ...]
    size_bytes: int
    python: str
    """The minor version that the wheels are for."""


def collect(folder: Path, extras: Sequence[str], context: Context, options: Sequence[str] = ()) -> Wheelhouse:
    """Download rundoctor, its ``extras`` and all that they need into ``folder`` and write ``install.sh``
    there.

    ``options`` are handed to pip as they are (``--index-url URL``, ``--find-links DIR``).

    Raises:
        WheelhouseError: unknown extra, no usable Python or pip, or pip could not find or fetch something.
    """
    unknown = [name for name in extras if name not in EXTRAS]
    if unknown:
        known = ", ".join(EXTRAS)
        raise WheelhouseError(
            t("there is no extra {name}; there are {known}", name=unknown[0], known=known), usage=True
        )
    target = _usable(context)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _cannot_write(folder, error) from None
    wanted = requirement(extras)
    _download(target, folder, wanted, options)
    try:
        write_script(folder, wanted, target.minor)
    except OSError as error:
        raise _cannot_write(folder, error) from None
    files = sorted(path.name for path in folder.iterdir() if path.name.endswith((".whl", ".tar.gz", ".zip")))
    size = sum((folder / name).stat().st_size for name in files)
    return Wheelhouse(folder=folder, files=tuple(files), size_bytes=size, python=target.minor)


def _download(target: Target, folder: Path, wanted: str, options: Sequence[str]) -> None:
    """Fetch from the index; a rundoctor that no index has (a checkout, a wheel file) is built or taken
    first."""
    download = ["download", "--dest", str(folder), *options, wanted]
    try:
        _run_pip(target, download)
    except WheelhouseError as error:
        source = own_source()
        if source is None or "rundoctor" not in str(error.text.params.get("requirement", "")):
            raise
        _run_pip(target, ["wheel", "--no-deps", "--wheel-dir", str(folder), *options, str(source)])
        _run_pip(target, [*download, "--find-links", str(folder)])


def own_source() -> Path | None:
    """Return the checkout or wheel file that this doctor was installed from; None when it came from an
    index."""
    try:
        noted = importlib.metadata.distribution("rundoctor").read_text("direct_url.json")
    except importlib.metadata.PackageNotFoundError:
        return None
    url, _editable = parse_direct_url(noted or "")
    path = Path(unquote(url.removeprefix("file://"))) if url and url.startswith("file:///") else None
    return path if path and is_there(path) else None


def requirement(extras: Sequence[str]) -> str:
    """Return what pip is asked for: this very version of rundoctor."""
    names = ",".join(dict.fromkeys(extras))
    return f"rundoctor[{names}]=={__version__}" if names else f"rundoctor=={__version__}"


def _cannot_write(folder: Path, error: OSError) -> WheelhouseError:
    return WheelhouseError(
        t("cannot write {folder}: {error}", folder=str(folder), error=error.strerror or str(error))
    )


def _usable(context: Context) -> Target:
    try:
        target = context.target
    except BadPython as error:
        raise WheelhouseError(error.text, usage=True) from None
    if target.executable is None or target.problem is not None:
        raise WheelhouseError(target.problem or t("no Python was found"))
    if _minor(target.minor) < (3, 10):
        text = t("{python} is Python {version}; rundoctor needs 3.10 or newer. Name another with --python.",
                 python=str(target.executable), version=target.version or "?")  # fmt: skip
        raise WheelhouseError(text)
    return target


def _minor(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:2])


def _run_pip(target: Target, arguments: list[str]) -> None:
    command = [str(target.executable), "-m", "pip", "--disable-pip-version-check", *arguments]
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=DOWNLOAD_DEADLINE_S,
            env=dict(os.environ),
        )
    except OSError as error:
        raise WheelhouseError(
            t(
                "{python} could not be started: {error}",
                python=str(target.executable),
                error=error.strerror or "",
            )
        ) from None
    except subprocess.TimeoutExpired:
        raise WheelhouseError(t("pip did not end within an hour; what it fetched is kept")) from None
    if done.returncode:
        raise WheelhouseError(why_pip_failed(done.stderr.decode("utf-8", "replace"), target))


def why_pip_failed(stderr: str, target: Target) -> Text:
    """Return pip's failure as a sentence with a way out."""
    # /usr/bin/python3: No module named pip
    if "No module named pip" in stderr:
        return t(
            "{python} has no pip: run `{python} -m ensurepip`, or name another Python with --python",
            python=str(target.executable),
        )
    # ERROR: No matching distribution found for textual>=3.0
    if match := re.search(r"No matching distribution found for (.+)", stderr):
        return t(
            "pip finds no {requirement} for Python {version}. Is there a network, and is the index the right one? "
            "Another one: doctor wheelhouse DIR --index-url URL",
            requirement=printable(match[1].strip()), version=target.version,
        )  # fmt: skip
    errors = [
        line.removeprefix("ERROR:").strip() for line in stderr.splitlines() if line.startswith("ERROR:")
    ]
    last = errors[-1] if errors else next(iter(stderr.strip().splitlines()[-1:]), "")
    return t("pip could not fetch everything: {error}", error=printable(last))


def write_script(folder: Path, wanted: str, minor: str) -> None:
    """Write ``install.sh``: installs from the folder that it lies in, into the Python that it is given."""
    text = f"""#!/bin/sh
# Installs {wanted} from the files beside this script, without network.
# The wheels are for Python {minor} on this kind of machine.
#   sh install.sh [PYTHON]      PYTHON: the interpreter to install into (default: python3)
set -eu
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
python=${{1:-python3}}
found=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
if [ "$found" != "{minor}" ]; then
    echo "install.sh: these wheels are for Python {minor}, and $python is $found" >&2
    exit 2
fi
# A torch that is already there stays: pip is told not to touch what is installed.
exec "$python" -m pip install --no-index --find-links "$here" --upgrade-strategy only-if-needed {shlex.quote(wanted)}
"""
    path = folder / SCRIPT
    path.write_text(text, "utf-8")
    path.chmod(0o755)
