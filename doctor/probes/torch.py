"""The torch of the judged interpreter, read from its files: build, architectures, ABI, copies. It is not
imported.

``torch/version.py`` tells the build (PyPI's wheel has no local tag but has CUDA), libtorch_python.so the
architectures, the symbols of libc10.so the C++ ABI.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import TYPE_CHECKING

from doctor.model import Reading, Text, Torch, ok, t
from doctor.probes.bounded import is_folder, is_there, names_in, read_text, text_or_empty
from doctor.probes.dist_info import name_and_version
from doctor.probes.elf import Elf, ElfError
from doctor.probes.extensions import cxx11_abi
from doctor.probes.fatbin import fatbin_arch_list, literal_arch_list
from doctor.probes.packages import conda_packages
from doctor.probes.target import without_python
from doctor.probes.torch_damage import broken
from runner.strings import printable

if TYPE_CHECKING:
    from doctor.probes import Context
    from doctor.probes.target import Target

Literals = dict[str, str | bool | None]


def probe(context: Context) -> Reading[Torch]:
    target = context.target
    if target.executable is None:
        return without_python(target)
    notes = _dist_infos(target)
    site = _imported_from(target)
    closed = target.closed_folder
    if site is None and not notes and closed is not None:
        return Reading(status="failed", why=t("{folder} may not be read", folder=printable(str(closed))))
    if site is None and not notes:
        return Reading(
            status="absent",
            why=t("no torch where {python} looks", python=str(target.executable)),
            source="torch/version.py",
        )
    if site is None:
        folder, name = notes[0]
        torch = Torch(
            version=name_and_version(name)[1],
            copies=_copies(notes, None),
            broken=f"{name}, but no torch/__init__.py",
        )
        return ok(torch, source=f"{folder}/{name}")
    return ok(_describe(context, site, notes), source=f"{site}/torch/version.py")


def _dist_infos(target: Target) -> list[tuple[Path, str]]:
    """Return every dist-info of torch along the import path, in order."""
    pattern = re.compile(r"torch-[^-]+(?:-[^-]+)?\.(?:dist|egg)-info$", re.IGNORECASE)
    return [
        (folder, name) for folder in target.site_packages for name in names_in(folder) if pattern.match(name)
    ]


def _imported_from(target: Target) -> Path | None:
    """Return the folder that ``import torch`` takes: the first with a ``torch/__init__.py``."""
    return next((folder for folder in target.site_packages if is_there(folder / "torch/__init__.py")), None)


def _copies(notes: list[tuple[Path, str]], target: Target | None) -> tuple[str, ...]:
    """Return each dist-info, and each package folder that has none beside it, in import order."""
    found = [f"{folder}/{name}" for folder, name in notes]
    noted = {folder for folder, _name in notes}
    for folder in target.site_packages if target else ():
        if folder not in noted and is_there(folder / "torch/__init__.py"):
            found.append(f"{folder}/torch")
    return tuple(map(printable, found))


def _describe(context: Context, site: Path, notes: list[tuple[Path, str]]) -> Torch:
    target, package = context.target, site / "torch"
    unread: dict[str, Text] = {}
    try:
        literals = parse_version_py(read_text(package / "version.py"))
    except (OSError, ValueError, SyntaxError) as error:
        literals = {}
        unread["cuda"] = t(
            "{file} cannot be read: {error}", file=str(package / "version.py"), error=str(error)
        )
    own = [name for folder, name in notes if folder == site]
    version = str(literals.get("__version__") or (name_and_version(own[0])[1] if own else ""))
    cuda, hip = _build(literals)
    library = library_folder(package, target)
    arch_list, arch_source = read_arch_list(library, cuda, unread)
    return Torch(
        version=printable(version),
        cuda=cuda,
        hip=hip,
        arch_list=arch_list,
        arch_source=arch_source,
        cxx11_abi=_abi(library / "libc10.so", unread),
        location=printable(str(package)),
        copies=_copies(notes, target),
        broken=printable(broken(context, site, own, cuda, library)),
        cudnn_version=_companion(target, "cudnn"),
        nccl_version=_companion(target, "nccl"),
        transformers_minimum=transformers_minimum(target),
        unread=unread,
    )


def parse_version_py(text: str) -> Literals:
    """Return the literals of torch/version.py: ``cuda: Optional[str] = '13.0'`` and ``cuda = None`` alike.

    Raises:
        SyntaxError, ValueError: it is no Python.
    """
    found: Literals = {}
    for node in ast.parse(text).body:
        targets = (
            node.targets
            if isinstance(node, ast.Assign)
            else [node.target]
            if isinstance(node, ast.AnnAssign)
            else []
        )
        value = getattr(node, "value", None)
        for one in targets:
            if (
                isinstance(one, ast.Name)
                and isinstance(value, ast.Constant)
                and isinstance(value.value, (str, bool, type(None)))
            ):
                found[one.id] = value.value
    return found


def _build(literals: Literals) -> tuple[str | None, str | None]:
    """Return CUDA ("" for a build without) and HIP version; None where version.py does not say."""
    hip = literals.get("hip") or literals.get("rocm")
    cuda = (literals["cuda"] or "") if "cuda" in literals else None
    return (str(cuda) if cuda is not None else None), (str(hip) if hip else None)


def library_folder(package: Path, target: Target) -> Path:
    """Return where libtorch lies: ``torch/lib``, or the environment's own ``lib`` (conda-forge)."""
    shared = target.prefix / "lib" if target.prefix else package
    return (
        shared
        if not is_there(package / "lib/libc10.so") and is_there(shared / "libc10.so")
        else package / "lib"
    )


def read_arch_list(
    library: Path, cuda: str | None, unread: dict[str, Text]
) -> tuple[tuple[str, ...] | None, str]:
    """Return the architectures and where they were read; the reason goes into ``unread`` where they could not
    be."""
    if cuda == "":
        return None, ""
    problem = ""
    try:
        if literal := literal_arch_list(library / "libtorch_python.so"):
            return literal, "string"
    except (OSError, ElfError) as error:
        problem = str(error)
    # torch 1.13 keeps its kernels in libtorch_cuda_cu.so; libtorch_cuda.so is a stub there.
    for name in ("libtorch_cuda.so", "libtorch_cuda_cu.so"):
        try:
            if images := fatbin_arch_list(library / name):
                return images, "fatbin"
        except (OSError, ElfError) as error:
            problem = problem or f"{name}: {error}"
    if cuda or is_there(library / "libtorch_cuda.so"):
        unread["arch_list"] = t(
            "torch's libraries do not tell their architectures: {error}",
            error=printable(problem) or "no list, no kernels",
        )
    return None, ""


def _abi(libc10: Path, unread: dict[str, Text]) -> bool | None:
    try:
        with Elf(libc10) as library:
            return cxx11_abi(library.strings)
    except (OSError, ElfError) as error:
        unread["cxx11_abi"] = t(
            "{file} cannot be read: {error}", file=str(libc10), error=printable(str(error))
        )
        return None


def _companion(target: Target, name: str) -> str | None:
    """Return the version of the installed cuDNN or NCCL wheel (or conda package); None where there are two,
    or none."""
    pattern = re.compile(rf"nvidia_{name}(?:_cu\d+)?-([^-]+)\.dist-info$")
    versions = {
        match[1]
        for folder in target.site_packages
        for entry in names_in(folder)
        if (match := pattern.match(entry))
    }
    if not versions and target.kind == "conda":
        versions = {version for package, version in conda_packages(target.prefix).items() if package == name}
    return printable(versions.pop()) if len(versions) == 1 else None


def transformers_minimum(target: Target) -> str | None:
    """Return the oldest torch that the installed transformers accepts at run time."""
    for folder in target.site_packages:
        if is_folder(folder / "transformers"):
            text = text_or_empty(folder / "transformers/utils/import_utils.py", 1 << 19)
            return parse_transformers_minimum(text)
    return None


# f"Disabling PyTorch because PyTorch >= 2.6 is required but found {torch_version}"
_DISABLING = re.compile(r"Disabling PyTorch because PyTorch >= ?(\d+\.\d+(?:\.\d+)?)")


def parse_transformers_minimum(text: str) -> str | None:
    """Return the version in transformers' own sentence; None where it has no such floor."""
    found = _DISABLING.search(text)
    return found[1] if found else None
