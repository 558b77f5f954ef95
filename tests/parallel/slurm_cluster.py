"""A SLURM of our own for tests: a controller and two nodes on this machine, with a key, ports and folders that nobody else has."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

PROGRAMS = ("slurmctld", "slurmd", "srun", "munged", "unshare")
CONFIGURATION = """\
ClusterName=here
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.sock
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/controller.pid
SlurmdPidFile={folder}/%n.pid
SlurmctldLogFile={folder}/controller.log
SlurmdLogFile={folder}/%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
KillWait=30
SlurmdParameters=config_overrides
NodeName=node01 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[1]} CPUs=4
NodeName=node02 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[2]} CPUs=4
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE
"""
START = """\
mount --bind {folder}/hosts /etc/hosts
munged --force --key-file={folder}/munge.key --socket={folder}/munge.sock --pid-file={folder}/munged.pid \
  --log-file={folder}/munged.log --seed-file={folder}/seed --num-threads=2
slurmctld -c && slurmd -N node01 && slurmd -N node02
"""
"""In a mount namespace of its own, where the nodes have addresses."""


def why_not() -> str:
    """Return why there can be no cluster here; empty: there can."""
    missing = [name for name in PROGRAMS if shutil.which(name) is None]
    if missing:
        return f"not installed: {', '.join(missing)} (slurmctld, slurmd, slurm-client, munge)"
    return "" if os.geteuid() == 0 else "SLURM's daemons and a mount namespace need root"


class Cluster:
    """Two nodes with room for four tasks each."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment = {**os.environ, "SLURM_CONF": str(folder / "slurm.conf")}

    def start(self) -> None:
        (self.folder / "state").mkdir()
        key = self.folder / "munge.key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o400)
        hosts = Path("/etc/hosts").read_text() + "\n127.0.0.1 node01 node02\n"
        (self.folder / "hosts").write_text(hosts)
        settings = CONFIGURATION.format(host=socket.gethostname(), folder=self.folder, ports=_free_ports(3))
        (self.folder / "slurm.conf").write_text(settings)
        subprocess.run(
            ["unshare", "-m", "sh", "-ec", START.format(folder=self.folder)],
            env=self.environment, check=True, timeout=60, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        end = time.monotonic() + 60
        while self.said("sinfo", "-h", "-o", "%D %t").strip() != "2 idle":
            assert time.monotonic() < end, (self.folder / "controller.log").read_text()[-2000:]
            time.sleep(0.2)

    def said(self, *argv: str) -> str:
        return subprocess.run(argv, env=self.environment, capture_output=True, text=True, timeout=60).stdout

    def stop(self) -> None:
        """End every job and daemon."""
        self.said("scancel", "--user=root")
        self.said("scancel", "--user=root", "--signal=KILL")
        end = time.monotonic() + 20
        while self.said("squeue", "-h").strip() and time.monotonic() < end:
            time.sleep(0.2)  # a step whose daemons are gone would never end
        pids = [int(path.read_text()) for path in sorted(self.folder.glob("*.pid"), reverse=True)]
        for pid in pids:  # the nodes before what they speak to
            _send(pid, signal.SIGTERM)
            end = time.monotonic() + 5
            while Path(f"/proc/{pid}").exists() and time.monotonic() < end:
                time.sleep(0.1)
            _send(pid, signal.SIGKILL)


def _send(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def _free_ports(count: int) -> list[int]:
    held = [socket.socket() for _ in range(count)]
    for one in held:
        one.bind(("127.0.0.1", 0))
    ports = [int(one.getsockname()[1]) for one in held]
    for one in held:
        one.close()
    return ports
