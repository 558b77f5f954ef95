"""Two hosts on one machine: network namespaces with a link between them, that can be cut and slowed."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from runner.rundir import RunDir
from tests.parallel.together import command, free_port

ADDRESSES = ("10.77.0.1", "10.77.0.2")


class Hosts:
    """Two namespaces, ``0`` and ``1``."""

    def __init__(self, tag: str) -> None:
        self.names = [f"doctor-{tag}-{host}" for host in (0, 1)]
        self.links = [f"dr{tag}v{host}" for host in (0, 1)]
        self.port = free_port()

    def make(self) -> str:
        """Make them; return why that cannot be, or nothing."""
        if shutil.which("ip") is None:
            return "there is no ip command"
        steps = [
            *(["ip", "netns", "add", name] for name in self.names),
            ["ip", "link", "add", self.links[0], "type", "veth", "peer", "name", self.links[1]],
        ]
        for host, (name, link) in enumerate(zip(self.names, self.links, strict=True)):
            steps += [
                ["ip", "link", "set", link, "netns", name],
                ["ip", "-n", name, "addr", "add", f"{ADDRESSES[host]}/24", "dev", link],
                ["ip", "-n", name, "link", "set", link, "up"],
                ["ip", "-n", name, "link", "set", "lo", "up"],
            ]
        for step in steps:
            done = subprocess.run(step, capture_output=True, text=True)
            if done.returncode:
                return f"{' '.join(step)}: {done.stderr.strip()}"
        return ""

    def remove(self) -> None:
        for name in self.names:
            subprocess.run(["ip", "netns", "del", name], capture_output=True)

    def start(self, run: RunDir, host: int, *flags: str) -> subprocess.Popen[str]:
        """Start the process of one host; it is met at host 0."""
        together = ["--nproc=1", "--nnodes=2", f"--node-rank={host}", f"--master={ADDRESSES[0]}:{self.port}"]
        argv = ["ip", "netns", "exec", self.names[host], *command(run, 0, *together, *flags)]
        environment = {"OMP_NUM_THREADS": "1", **os.environ, "PYTHONPATH": ""}
        return subprocess.Popen(
            argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment
        )

    def set_link(self, up: bool) -> None:
        """Cut the link, or mend it."""
        state = "up" if up else "down"
        subprocess.run(["ip", "-n", self.names[0], "link", "set", self.links[0], state], check=True)

    def slow(self, rate: str) -> str:
        """Let so much through each way (``8mbit``); return why that cannot be, or nothing."""
        for name, link in zip(self.names, self.links, strict=True):
            argv = ["tc", "-n", name, "qdisc", "add", "dev", link, "root", "tbf", "rate", rate, "burst", "32kbit", "latency", "400ms"]  # fmt: skip
            try:
                done = subprocess.run(argv, capture_output=True, text=True)
            except OSError as error:
                return str(error)
            if done.returncode:
                return done.stderr.strip()
        return ""


@contextmanager
def two_hosts(tag: str) -> Iterator[tuple[Hosts, str]]:
    """Yield two hosts and why they could not be made; they go with everything in them."""
    hosts = Hosts(tag)
    try:
        yield hosts, hosts.make()
    finally:
        hosts.remove()
