"""Builds fake Python installations: interpreters, environments and what is installed in them. Nothing in them
runs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from doctor.probes import Context
from tests.probes.elf_files import write_elf

CPU_VERSION_PY = "__version__ = '2.6.0+cpu'\ndebug = False\ncuda = None\nhip = None\n"
CUDA_VERSION_PY = "from typing import Optional\n__version__ = '2.6.0+cu124'\ncuda: Optional[str] = '12.4'\nhip: Optional[str] = None\n"
TORCH_CHECK = "_ZN3c106detail14torchCheckFailEPKcS2_j"
NEW_STRING, OLD_STRING = "RKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE", "RKSs"


@dataclass
class Site:
    """A site-packages folder to install into."""

    path: Path

    def dist(
        self,
        name: str,
        version: str,
        *,
        requires: Sequence[str] = (),
        metadata: bytes | None = None,
        tags: Sequence[str] = ("py3-none-any",),
        installer: str | None = "pip",
        direct_url: Mapping[str, object] | None = None,
        record: Sequence[str] = (),
        requested: bool = False,
    ) -> Path:
        """Install a distribution's metadata; ``metadata`` replaces what METADATA would hold."""
        folder = self.path / f"{name.replace('-', '_')}-{version}.dist-info"
        folder.mkdir(parents=True)
        lines = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}"]
        lines += [f"Requires-Dist: {line}" for line in requires]
        (folder / "METADATA").write_bytes(
            metadata if metadata is not None else "\n".join([*lines, "", "A readme."]).encode()
        )
        (folder / "WHEEL").write_text("Wheel-Version: 1.0\n" + "".join(f"Tag: {tag}\n" for tag in tags))
        (folder / "RECORD").write_text("".join(f"{path},,\n" for path in record))
        if installer is not None:
            (folder / "INSTALLER").write_text(installer + "\n")
        if direct_url is not None:
            (folder / "direct_url.json").write_text(json.dumps(direct_url))
        if requested:
            (folder / "REQUESTED").touch()
        return folder

    def file(self, name: str, text: str | bytes = "") -> Path:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    def torch(
        self,
        version_py: str = CUDA_VERSION_PY,
        dist: str | None = "2.6.0",
        needed: Sequence[str] = (),
        string: str = NEW_STRING,
        python: str = "311",
    ) -> None:
        """Install a torch whose libraries have real headers: CUDA when ``version_py`` says so."""
        self.file("torch/__init__.py")
        self.file("torch/version.py", version_py)
        module = f"torch/_C.cpython-{python}-x86_64-linux-gnu.so"
        libraries = ["torch/lib/libc10.so", "torch/lib/libtorch_python.so"]
        write_elf(self.path / libraries[0], soname="libc10.so", symbols=[TORCH_CHECK + string])
        arch_list = b"" if "cuda = None" in version_py else b"ipc_hsm_70 sm_80 sm_90 compute_90\0"
        write_elf(self.path / libraries[1], soname="libtorch_python.so", rodata=b"x\0" + arch_list + b"y\0")
        write_elf(self.path / module)
        if "cuda = None" not in version_py:
            libraries.append("torch/lib/libtorch_cuda.so")
            write_elf(self.path / libraries[2], soname="libtorch_cuda.so", needed=needed)
        if dist is not None:
            files = ["torch/__init__.py", "torch/version.py", module, *libraries]
            self.dist("torch", dist, tags=[f"cp{python}-cp{python}-manylinux_2_28_x86_64"], record=files)


@dataclass
class Tree:
    """A fake root: a base interpreter, and environments made from it."""

    root: Path
    minor: str = "3.11"
    patch: str = "3.11.7"

    def base(
        self, prefix: str = "opt/python", debian: bool = False, header: bool = True, tail: str = ""
    ) -> Path:
        """Make a base installation and return its real executable."""
        folder, name = self.root / prefix, f"python{self.minor}{tail}"
        for path in (folder / "bin", folder / "lib" / name, folder / "include" / name):
            path.mkdir(parents=True, exist_ok=True)
        (folder / "lib" / name / "os.py").touch()
        site = folder / "lib/python3/dist-packages" if debian else folder / "lib" / name / "site-packages"
        site.mkdir(parents=True, exist_ok=True)
        if header:
            text = f'#define PY_MAJOR_VERSION 3\n#define PY_VERSION      "{self.patch}"\n'
            (folder / "include" / name / "patchlevel.h").write_text(text)
        executable = write_elf(
            folder / "bin" / name, rodata=b"\x00\x003.1\x00%.80s (%.80s)\x00" + self.patch.encode() + b"\x00"
        )
        executable.chmod(0o755)
        for link in ("python3", "python"):
            (folder / "bin" / link).unlink(missing_ok=True)
            (folder / "bin" / link).symlink_to(name)
        return executable

    def venv(self, name: str, base: Path, settings: Mapping[str, str] | None = None) -> Path:
        """Make a virtual environment on ``base`` and return its folder."""
        folder = self.root / name
        (folder / "bin").mkdir(parents=True)
        (folder / "lib" / f"python{self.minor}" / "site-packages").mkdir(parents=True)
        (folder / "lib64").symlink_to("lib")
        (folder / "bin/python").symlink_to(base)
        (folder / "bin/python3").symlink_to("python")
        lines = {
            "home": str(base.parent),
            "include-system-site-packages": "false",
            "version": self.patch,
        } | dict(settings or {})
        (folder / "pyvenv.cfg").write_text("".join(f"{key} = {value}\n" for key, value in lines.items()))
        return folder

    def site(self, environment: Path) -> Site:
        return Site(environment / "lib" / f"python{self.minor}" / "site-packages")

    def context(self, python: Path | str | None = None, cwd: Path | None = None, **environ: str) -> Context:
        """Return a context that sees only this tree: no PATH, no home but what ``environ`` gives."""
        home = self.root / "home"
        home.mkdir(exist_ok=True)
        work = cwd or self.root / "work"
        work.mkdir(exist_ok=True)
        return Context(
            root=self.root,
            environ={"HOME": str(home), "PATH": "", **environ},
            cwd=work,
            python=None if python is None else str(python),
        )
