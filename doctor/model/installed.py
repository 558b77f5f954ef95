"""What is installed and set on it: Python, packages, torch, libraries, disks, variables, processes."""

from __future__ import annotations

from functools import cached_property

from doctor.model.readings import Record, Section


class PipCommand(Record, frozen=True):
    """The first ``pip`` on PATH."""

    path: str
    python: str
    """The interpreter that it starts, and so installs into: ``head -1 $(which pip)``."""
    is_of_judged: bool
    """That is the judged Python."""


class Python(Section, frozen=True):
    """The interpreter that is judged; not the one that runs the doctor, unless they are the same."""

    version: str | None = None
    executable: str | None = None
    prefix: str | None = None
    kind: str | None = None
    """venv, conda, system, pyenv, uv ..."""
    chosen_by: str | None = None
    """Why this one: ``--python``, VIRTUAL_ENV, CONDA_PREFIX, first on PATH, ours."""
    conda_env: str | None = None
    search_path: tuple[str, ...] | None = None
    """site-packages directories in import order."""
    user_site_enabled: bool | None = None
    user_site_before_env: bool | None = None
    externally_managed: bool | None = None
    has_pip: bool | None = None
    pip_command: PipCommand | None = None
    """None also where PATH has none, or its script does not tell."""
    writable: bool | None = None
    """Its site-packages can be written by this user."""


class Distribution(Record, frozen=True):
    name: str
    """Normalised as PEP 503 has it: lower case, dashes."""
    version: str = ""
    location: str = ""
    """The directory that holds its ``*.dist-info``."""
    requires_dist: tuple[str, ...] | None = None
    requires_python: str | None = None
    wheel_tags: tuple[str, ...] = ()
    installer: str | None = None
    requested: bool | None = None
    direct_url: str | None = None
    """Redacted: no userinfo, no query."""
    editable: bool | None = None
    missing_files: tuple[str, ...] = ()
    """RECORD entries of import-critical files (.so, __init__.py) that are not there."""
    metadata_error: str = ""
    """Why its METADATA could not be read; empty: read."""
    from_conda: bool | None = None


class Extension(Record, frozen=True):
    """A compiled package and what it was built for."""

    distribution: str
    torch: str | None = None
    """torch minor it was built for: ``2.6``."""
    cuda: str | None = None
    cxx11_abi: bool | None = None
    needs_glibc: str | None = None
    needs_glibcxx: str | None = None
    cuda_builds: tuple[str, ...] | None = None
    """CUDA versions it carries binaries for (bitsandbytes); None: not looked."""
    loads_package: str | None = None
    """The distribution whose files really lie in the import folder (onnxruntime over onnxruntime-gpu)."""


class Packages(Section, frozen=True, dict=True):
    items: tuple[Distribution, ...] = ()
    complete: bool = True
    """False: an excerpt. What is not in it may well be installed."""
    not_installed: tuple[str, ...] = ()
    """Looked for in vain (only where ``complete`` is False)."""
    extensions: tuple[Extension, ...] = ()
    leftovers: tuple[str, ...] = ()
    """``~orch``-like remains of interrupted installs."""

    @cached_property
    def _first_copies(self) -> dict[str, Distribution]:
        return {item.name: item for item in reversed(self.items)}

    def get(self, name: str) -> Distribution | None:
        """Return the first copy on the import path, or None."""
        return self._first_copies.get(name)

    def version(self, name: str) -> str | None:
        found = self.get(name)
        return found.version if found and found.version else None

    def is_missing(self, name: str) -> bool | None:
        """Return whether ``name`` is certainly not installed; None when the list cannot say."""
        if self.get(name):
            return False
        return True if self.complete or name in self.not_installed else None

    def extension(self, name: str) -> Extension | None:
        return next((item for item in self.extensions if item.distribution == name), None)


class Torch(Section, frozen=True):
    """The torch of the examined interpreter, read from its files; ``absent`` when there is none."""

    version: str = ""
    """``torch.__version__`` (from torch/version.py): ``2.6.0+cu124``."""
    cuda: str | None = None
    """``torch.version.cuda``: "12.4"; "" for a build without CUDA; None: unknown."""
    hip: str | None = None
    arch_list: tuple[str, ...] | None = None
    """``torch.cuda.get_arch_list()``: sm_75 ... compute_90."""
    arch_source: str = ""
    """fatbin, string or table."""
    cxx11_abi: bool | None = None
    location: str = ""
    copies: tuple[str, ...] = ()
    """Every dist-info or package folder of torch on the import path, in order."""
    broken: str = ""
    """Why it cannot import, where that shows without importing (a missing .so); empty: nothing seen."""
    cudnn_version: str | None = None
    nccl_version: str | None = None
    transformers_minimum: str | None = None
    """The oldest torch that the installed transformers accepts (a literal in its import_utils.py)."""


class FoundLibrary(Record, frozen=True):
    soname: str
    path: str
    version: str | None = None
    found_by: str = ""
    """LD_LIBRARY_PATH, bundled, system, conda."""
    newest_symbol: str | None = None
    """Newest versioned symbol (GLIBCXX_3.4.21), for libstdc++."""


class Libraries(Section, frozen=True):
    items: tuple[FoundLibrary, ...] = ()
    nvcc_version: str | None = None
    nvcc_path: str | None = None
    compiles_extensions: tuple[str, ...] | None = None
    """What is compiled here and needs nvcc: distributions (deepspeed) or files of the project (setup.py)."""
    compiler_version: str | None = None


class Mount(Record, frozen=True):
    path: str
    fstype: str = ""
    source: str = ""
    size_bytes: int | None = None
    free_bytes: int | None = None
    inodes_total: int | None = None
    inodes_free: int | None = None
    quota_bytes: int | None = None
    quota_used_bytes: int | None = None
    read_bytes_per_s: float | None = None
    """Measured; None: nobody measured."""
    rotational: bool | None = None
    read_only: bool | None = None
    error: str = ""
    """statvfs failed or hung; the sizes are unknown then."""


class Place(Record, frozen=True):
    """A directory that matters, and where it lies."""

    name: str
    """hf_home, hf_hub_cache, torch_home, pip_cache, uv_cache, triton_cache, wandb_dir, tmp, home, cwd ..."""
    path: str
    exists: bool | None = None
    mount: str | None = None
    set_by: str = ""
    """The variable that set it; empty: a default."""
    size_bytes: int | None = None
    writable: bool | None = None


class WriteProbe(Record, frozen=True):
    path: str
    size_bytes: int
    errno: int
    """0: it could be written (and was removed again)."""


class Storage(Section, frozen=True):
    mounts: tuple[Mount, ...] = ()
    places: tuple[Place, ...] = ()
    write_probes: tuple[WriteProbe, ...] = ()

    def mount(self, path: str) -> Mount | None:
        """Return the mount that holds the absolute ``path``: the longest mount point above it."""
        above = [
            item for item in self.mounts if path == item.path or path.startswith(item.path.rstrip("/") + "/")
        ]
        return max(above, key=lambda item: len(item.path), default=None)

    def place(self, name: str) -> Place | None:
        return next((item for item in self.places if item.name == name), None)


class Environment(Section, frozen=True):
    """Variables of the session that will train. Values only of names on the allow-list (see redact.py)."""

    variables: dict[str, str] = {}
    names: tuple[str, ...] = ()
    """Every other name that is set; its value was not taken."""
    complete: bool = True
    """False: names not listed may be set."""

    def get(self, name: str) -> str | None:
        return self.variables.get(name)


class Process(Record, frozen=True):
    pid: int
    parent_pid: int | None = None
    uid: int | None = None
    command: str = ""
    state: str = ""
    """R, S, D, Z ... as in ``ps -o stat``."""
    age_s: float | None = None
    rss_bytes: int | None = None
    gpu_files: tuple[str, ...] = ()
    """Open /dev/nvidia* files."""
    is_ours: bool | None = None
    started_ticks: int | None = None
    """Field 22 of /proc/PID/stat: with the pid it names one process for good."""


class Processes(Section, frozen=True):
    """Processes that hold a GPU device file, train, or are asked about; not the whole table."""

    items: tuple[Process, ...] = ()
