"""Small trees that stand for ``/`` on machines with an NVIDIA driver, and contexts on the stand-in NVML."""

from __future__ import annotations

from pathlib import Path

from doctor.probes import Context
from tests.nvml.build import environment

NVRM = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  {version}  Tue Mar  5 22:23:56 UTC 2024\nGCC version:  gcc\n"


def write(root: Path, files: dict[str, str]) -> Path:
    """Write ``files`` (absolute path -> text) below ``root`` and return it."""
    for name, text in files.items():
        path = root / name.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    return root


def pci_device(address: str, vendor: str, kind: str = "0x030000", device: str = "0x2684") -> dict[str, str]:
    folder = f"/sys/bus/pci/devices/{address}"
    return {
        f"{folder}/vendor": f"{vendor}\n",
        f"{folder}/class": f"{kind}\n",
        f"{folder}/device": f"{device}\n",
    }


def driver_files(version: str = "550.54.15") -> dict[str, str]:
    """Return the files of a machine with one RTX 4090 and a loaded driver."""
    return {
        "/sys/module/nvidia/version": f"{version}\n",
        "/proc/driver/nvidia/version": NVRM.format(version=version),
        "/proc/driver/nvidia/gpus/0000:01:00.0/information": "Model: \t\t NVIDIA GeForce RTX 4090\nGPU UUID: \t GPU-5c\n",
        "/dev/nvidia0": "",
        "/dev/nvidiactl": "",
        "/dev/nvidia-uvm": "",
        "/dev/nvidia-modeset": "",
        **pci_device("0000:01:00.0", "0x10de"),
    }


def bare_machine(root: Path) -> Path:
    """Write a machine without NVIDIA: a PCI bus with a network card."""
    return write(root, pci_device("0000:00:03.0", "0x1af4", "0x020000"))


def context_on(scenario: str | Path, root: Path, **variables: str) -> Context:
    """Return a context whose NVML is the stand-in with ``scenario`` and whose ``/`` is ``root``."""
    base = {"PATH": str(root / "bin"), **variables}
    return Context(root=root, environ=environment(scenario, base), cwd=root)


def process(
    root: Path, pid: int, command: str, *files: str, start: int = 4000, state: str = "S", flags: int = 0
) -> None:
    """Write /proc/PID of a process that holds ``files`` open."""
    name = command.split()[0].rsplit("/", 1)[-1][:15] if command else "kworker/0:1"
    stat = f"{pid} ({name}) {state} 1 {pid} {pid} 0 -1 {flags} 0 0 0 0 10 5 0 0 20 0 3 0 {start} 1000000 2500 18446744073709551615 1 1\n"
    write(
        root,
        {
            f"/proc/{pid}/stat": stat,
            f"/proc/{pid}/cmdline": command.replace(" ", "\0") + "\0" * bool(command),
        },
    )
    folder = root / "proc" / str(pid) / "fd"
    folder.mkdir(exist_ok=True)
    for number, target in enumerate(("/dev/null", *files)):
        (folder / str(number)).symlink_to(target)
