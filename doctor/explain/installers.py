"""Patterns of pip and uv: what they refuse to install, and why."""

from __future__ import annotations

from doctor.explain.match import Pattern
from doctor.model import t

PATTERNS: tuple[Pattern, ...] = (
    # ERROR: ResolutionImpossible: for help visit https://pip.pypa.io/...   |   The user requested torch==2.4.0     vllm 0.8.5 depends on torch==2.6.0
    Pattern(
        id="pip-conflict",
        regex=r"ResolutionImpossible|because these package versions have conflicting dependencies|The user requested (?P<asked>\S+)\s+(?P<other>[\w.-]+ \S+) depends on (?P<wanted>\S+)",
        meaning=t("Two of the packages asked for want different versions of a third; the lines under 'The conflict is caused by' name them."),
        advice=t("Drop one of the two pins and let pip choose (a framework such as vllm or unsloth pins its own torch); what cannot live together gets a venv of its own."),
        confirms=("declared-requirement-not-met",),
    ),
    # × No solution found when resolving dependencies:
    Pattern(
        id="uv-no-solution",
        regex=r"No solution found when resolving dependencies",
        meaning=t("uv found no set of versions that fits every requirement, the Python among them; the sentence that begins with 'Because' names those that exclude each other."),
        advice=t("Mostly the Python: `uv venv --python 3.11` (or requires-python in pyproject.toml) where 'no wheels with a matching Python version tag' stands; else loosen the pin that is named."),
        confirms=("python-version-no-wheel",),
    ),
    # hint: This error likely indicates that `flash-attn@2.8.2` depends on `torch`, but doesn't declare it as a build dependency.
    Pattern(
        id="build-isolation",
        regex=r"depends on `?torch`?, but doesn't declare it as a build dependency|Failed to build `?(?:flash[-_]attn|deepspeed|apex|xformers|mamba[-_]ssm|causal[-_]conv1d|auto[-_]gptq)\b[^\n]*\n(?:[^\n]*\n){1,40}?[^\n]*No module named 'torch'",
        meaning=t("The package imports torch while it is built, and the build runs in an empty environment of its own."),
        advice=t("Install torch first, then the package with --no-build-isolation (pip and uv alike; in pyproject.toml no-build-isolation-package), or its ready wheel for your torch."),
        hides=("module-not-found", "wheel-build"),
    ),
    # ERROR: flash_attn-2.7.4.post1+cu12torch2.5cxx11abiFALSE-cp310-cp310-linux_x86_64.whl is not a supported wheel on this platform.
    Pattern(
        id="wheel-not-supported",
        regex=r"(?P<tag>(?:cp|py)\d+-\w+-[\w.]+)\.whl is not a supported wheel on this platform",
        meaning=t("The wheel is for another Python or system ({tag}: cp310 is Python 3.10, the end is system and processor).", tag="?"),
        advice=t("`python -V && uname -m`, then the wheel whose name says the same; for flash-attn its torch and CUDA must fit too."),
        confirms=("python-version-no-wheel",),
    ),
    # ERROR: Package 'transformers' requires a different Python: 3.8.10 not in '>=3.9.0'
    Pattern(
        id="requires-python",
        regex=r"requires a different Python: (?P<have>[\d.]+) not in '(?P<wanted>[^'\n]+)'",
        meaning=t("The package wants Python {wanted}, and {have} runs.", wanted="?", have="?"),
        advice=t("A newer Python in an environment of its own (`conda create -n NAME python=3.11`), or the last release for yours: `python -m pip install 'NAME<VERSION'`."),
        confirms=("python-version-no-wheel",),
    ),
    # ERROR: Could not find a version that satisfies the requirement torch==2.1.0+cu121 (from versions: 2.2.0, 2.2.1)
    Pattern(
        id="local-version",
        regex=r"Could not find a version that satisfies the requirement (?P<name>[\w.-]+)==(?P<version>[\d.]+)\+(?P<build>cu\d+|cpu|rocm[\d.]+)",
        meaning=t("Builds with +{build} are not on the ordinary index, only on PyTorch's own (or there is none of {version} for this Python).", build="?", version="?"),
        advice=t("`python -m pip install {name}=={version} --index-url https://download.pytorch.org/whl/{build}`", name="torch", version="VERSION", build="cu121"),
        confirms=("python-version-no-wheel",),
        hides=("no-matching-distribution",),
    ),
    # error: can't find Rust compiler   |   Cargo, the Rust package manager, is not installed or is not on PATH.
    Pattern(
        id="no-rust",
        regex=r"can't find Rust compiler|Cargo, the Rust package manager, is not installed",
        meaning=t("There is no ready wheel of this version (tokenizers, safetensors, tiktoken and others are written in Rust) for this Python, so pip wants to compile it."),
        advice=t("A newer version of it, or an older Python (3.10, 3.11), has a wheel: `python -m pip install -U pip` first, then `--only-binary :all:` shows which. Installing Rust is the long way."),
        confirms=("python-version-no-wheel",),
        hides=("wheel-build",),
    ),
    # AttributeError: module 'pkgutil' has no attribute 'ImpImporter'. Did you mean: 'zipimporter'?
    Pattern(
        id="pip-before-3-12",
        regex=r"module 'pkgutil' has no attribute 'ImpImporter'",
        meaning=t("A setuptools or pip from before Python 3.12 runs under Python 3.12 or newer, often because an old package pins it for its build."),
        advice=t("`python -m ensurepip --upgrade && python -m pip install -U pip setuptools`; if a package's build says it, take a newer version of that package, or Python 3.11."),
        hides=("wheel-build",),
    ),
    # ERROR: Cannot uninstall 'blinker'. It is a distutils installed project and thus we cannot accurately determine which files belong to it
    Pattern(
        id="cannot-uninstall",
        regex=r"It is a distutils installed project|no RECORD file was found for|uninstall-no-record-file",
        meaning=t("The system's package manager (or conda) installed that package, and pip cannot take it away."),
        advice=t("Work in a venv; or only this once `python -m pip install --ignore-installed NAME`."),
    ),
    # ERROR: Could not open requirements file: [Errno 2] No such file or directory: 'requirements.txt'   |   ERROR: File "setup.py" not found. Directory cannot be installed in editable mode: /data   |   ERROR: Directory '.' is not installable. Neither 'setup.py' nor 'pyproject.toml' found.
    Pattern(
        id="pip-wrong-folder",
        regex=r"Could not open requirements file|Directory cannot be installed in editable mode|is not installable\. Neither 'setup\.py' nor 'pyproject\.toml' found|does not appear to be a Python project: neither 'setup\.py' nor",
        meaning=t("pip was started in another folder than the project's."),
        advice=t("`pwd; ls`, then `cd` into the folder that holds the file."),
    ),
    # ERROR: Could not install packages due to an OSError: [Errno 13] Permission denied: '/usr/local/lib/python3.10/dist-packages/tqdm'
    Pattern(
        id="pip-permission",
        regex=r"Could not install packages due to an (?:OSError|EnvironmentError): \[Errno 13\]",
        meaning=t("pip may not write into this Python: it belongs to root, or to someone else."),
        advice=t("`python3 -m venv ~/env && . ~/env/bin/activate`, then install there; no sudo pip."),
        hides=("permission",),
    ),
    # error: No virtual environment found; run `uv venv` to create an environment, or pass `--system` to install into a non-virtual environment
    Pattern(
        id="uv-no-environment",
        regex=r"No virtual environment found; run `uv venv`",
        meaning=t("uv installs only into a virtual environment, and none is active in this folder."),
        advice=t("`uv venv && source .venv/bin/activate`; in a container whose own Python is meant: `uv pip install --system ...`."),
    ),
    # error: No interpreter found for Python 3.10 in managed installations or search path
    Pattern(
        id="uv-no-interpreter",
        regex=r"No interpreter found for Python (?P<python>[\d.]+)|No download found for request: cpython-(?P<python2>[\d.]+)",
        meaning=t("uv has no Python {python}{python2} here, and may not or cannot download one.", python="", python2=""),
        advice=t("`uv python install VERSION` where the network allows; else conda's Python: `uv venv --python $(which python)`."),
    ),
    # Failed to download distribution due to network timeout. Try increasing UV_HTTP_TIMEOUT (current value: 30s).
    Pattern(
        id="uv-timeout",
        regex=r"Try increasing UV_HTTP_TIMEOUT",
        meaning=t("A large wheel did not arrive within uv's time limit."),
        advice=t("`export UV_HTTP_TIMEOUT=600`, and an index near you (UV_DEFAULT_INDEX)."),
        confirms=("platform-proxy-there", "platform-proxy-on"),
    ),
    # ERROR: Invalid requirement: 'torch=2.1.0': Expected end or semicolon   |   ERROR: Invalid requirement: 'numpy=1.26' (from line 3 of requirements.txt)
    Pattern(
        id="invalid-requirement",
        regex=r"Invalid requirement: '?(?P<what>[^'\n]{1,80})",
        meaning=t("pip does not understand the requirement {what}: one = for two, a conda line, or a stray word.", what="?"),
        advice=t("NAME==VERSION with two signs, in quotes where < or > stands: the shell takes those for files."),
    ),
    # bash: pip: command not found   |   /usr/bin/python3: No module named pip
    Pattern(
        id="no-pip",
        regex=r"\bpip3?: command not found|: No module named pip$",
        meaning=t("This Python has no pip, or the environment that has it is not active."),
        advice=t("`python -m ensurepip --upgrade`, on Debian and Ubuntu `apt-get install -y python3-pip python3-venv`; uv's environments have none: `uv pip install`."),
        hides=("command-not-found",),
    ),
)  # fmt: skip
