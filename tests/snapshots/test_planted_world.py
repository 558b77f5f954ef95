"""Thirty-three kinds of credentials in every real file that an export reads, asked for as a person asks: none comes out.

The world is on disk: variables, pip's and uv's and conda's configuration, direct_url.json, conda-meta, a git remote, branch,
patch and untracked names, a notebook's outputs, a process's command line, and a run's plan, snapshot and events.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from doctor.machine import encode_snapshot
from doctor.model import Facts, Process, Processes, Snapshot, ok
from runner.plan import MachineFacts, encode_plan, make_plan
from runner.profile import Profile
from runner.rundir import RunDir
from tests.planted import KINDS, line_of, secret_of
from tests.snapshots.wheels import install

SECRETS = {kind: secret_of(kind) for kind in KINDS}
LINES = [line_of(kind) for kind in KINDS]
FORMS = ("requirements", "conda", "dockerfile", "apptainer", "cyclonedx", "markdown", "patch", "pylock")


def address_of(secret: str) -> str:
    return f"https://me:{secret}@h.example/t/{secret}/simple?token={secret}"


def name_of(kind: str) -> str:
    return re.sub(r"\W+", "_", kind).upper()


class World:
    """One machine, home folder, environment, project and run, full of credentials."""

    def __init__(self, root: Path) -> None:
        self.root, self.home, self.code, self.venv = root, root / "home", root / "code", root / "venv"
        self.home.mkdir()
        self._configure()
        self._environment()
        self._project()
        self.run = self._run()

    @property
    def variables(self) -> dict[str, str]:
        found = {
            "HOME": str(self.home),
            "PATH": os.environ["PATH"],
            "DOCTOR_LANG": "en",
            "DOCTOR_CONFIG_DIR": str(self.root / "config"),
        }
        found |= {f"PLANTED_{name_of(kind)}": line_of(kind) for kind in KINDS}
        found |= {f"NCCL_{name_of(kind)}": line_of(kind) for kind in KINDS}  # an allowed family
        urls = " ".join(address_of(secret) for secret in SECRETS.values())
        return {
            **found, "PIP_EXTRA_INDEX_URL": urls, "UV_INDEX": urls, "HF_TOKEN": SECRETS["Hugging Face token"], "WANDB_API_KEY": SECRETS["W&B key"],
            "https_proxy": f"http://me:{SECRETS['proxy']}@proxy.example:3128", "PYTORCH_CUDA_ALLOC_CONF": "|".join(LINES), "LD_LIBRARY_PATH": ":".join(LINES),
        }  # fmt: skip

    def _configure(self) -> None:
        urls = [address_of(secret) for secret in SECRETS.values()]
        (self.home / ".config/pip").mkdir(parents=True)
        (self.home / ".config/uv").mkdir()
        (self.home / ".config/pip/pip.conf").write_text(
            "[global]\nextra-index-url =\n" + "".join(f"    {url}\n" for url in urls)
        )
        (self.home / ".config/uv/uv.toml").write_text(
            "".join(f'[[index]]\nname = "i{n}"\nurl = "{url}"\n' for n, url in enumerate(urls))
        )
        (self.home / ".condarc").write_text("channels:\n" + "".join(f"  - {url}\n" for url in urls))
        (self.home / ".netrc").write_text(
            "".join(f"machine h{n} login me password {one}\n" for n, one in enumerate(SECRETS.values()))
        )

    def _environment(self) -> None:
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(self.venv)], check=True)
        site = next((self.venv / "lib").glob("python3.*/site-packages"))
        (self.venv / "conda-meta").mkdir()
        (self.venv / "conda-meta/history").write_text(
            "".join(f"# cmd: conda install {line}\n" for line in LINES)
        )
        for number, (kind, secret) in enumerate(SECRETS.items()):
            url = address_of(secret)
            note = {"url": url, "archive_info": {}} if number % 2 else {"url": url, "vcs_info": {"vcs": "git", "commit_id": "a" * 40, "requested_revision": line_of(kind)}}  # fmt: skip
            install(site, f"lib{number}", "1.0", notes={"direct_url.json": json.dumps(note).encode()})
            record = {
                "name": f"c{number}",
                "version": "1.0",
                "build": "0",
                "channel": url,
                "url": f"{url}/c.conda",
                "requested_spec": line_of(kind),
            }
            (self.venv / f"conda-meta/c{number}-1.0-0.json").write_text(json.dumps(record))

    def git(self, *words: str) -> None:
        identity = ("-c", "user.name=t", "-c", "user.email=t@example.org")
        subprocess.run(["git", *identity, *words], cwd=self.code, check=True, capture_output=True)

    def _project(self) -> None:
        self.code.mkdir()
        self.git("init", "-q", "-b", SECRETS["GitHub token"])
        cell: dict[str, Any] = {"cell_type": "code", "source": [], "outputs": []}
        (self.code / "n.ipynb").write_text(
            json.dumps({"cells": [cell], "nbformat": 4, "nbformat_minor": 5, "metadata": {}})
        )
        (self.code / "train.py").write_text("import torch\n")
        self.git("add", ".")
        self.git("commit", "-qm", "one")
        self.git("remote", "add", "origin", address_of(SECRETS["GitHub token"]))
        self.git("config", "http.extraHeader", line_of("JWT"))
        (self.code / "train.py").write_text("import torch\n" + "\n".join(LINES) + "\n")
        cell["outputs"] = [{"output_type": "stream", "text": LINES}]
        (self.code / "n.ipynb").write_text(
            json.dumps({"cells": [cell], "nbformat": 4, "nbformat_minor": 5, "metadata": {}})
        )
        (self.code / ".env").write_text("\n".join(LINES))
        (self.code / "requirements.txt").write_text(
            "".join(
                f"lib @ {address_of(one)}\n--extra-index-url {address_of(one)}\n" for one in SECRETS.values()
            )
        )
        for line in LINES:
            path = self.code / line.replace("\n", " ")[:200].lstrip("/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("x")

    def _run(self) -> RunDir:
        profile = msgspec.convert(
            {
                "run": {"name": "short", "seed": 7},
                "model": {"hub": "x/y"},
                "data": {"train": "|".join(LINES)},
            },
            Profile,
        )
        run = RunDir(self.root / "run")
        run.make()
        known = Facts(
            processes=ok(Processes(items=tuple(Process(pid=n, command=line) for n, line in enumerate(LINES))))
        )
        run.snapshot.write_bytes(encode_snapshot(Snapshot(facts=known)))
        run.plan.write_bytes(
            encode_plan(make_plan(profile, MachineFacts(device="cpu", cpu_cores_usable=2), "2026-11-30"))
        )
        events = "".join(json.dumps({"seq": n, "t": 0.0, "source": "trainer-0", "kind": "note", "data": {"text": line}}) + "\n" for n, line in enumerate(LINES))  # fmt: skip
        (run.path / "events").mkdir(exist_ok=True)
        (run.path / "events/trainer-0.jsonl").write_text(events)
        return run

    def doctor(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, "-m", "doctor", *words], cwd=self.code, env=self.variables, capture_output=True, text=True, check=False)  # fmt: skip


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    made = World(tmp_path_factory.mktemp("world"))
    words = [
        sys.executable,
        "-c",
        "import time; time.sleep(300)",
        *(word for line in LINES for word in line.split()),
    ]
    process = subprocess.Popen(words, env=made.variables, cwd=made.code)
    try:
        yield made
    finally:
        process.kill()
        process.wait()


def found_in(text: str) -> list[str]:
    return [kind for kind, secret in SECRETS.items() if secret in text]


def test_the_world_holds_each_of_them_in_every_place(world: World) -> None:
    files = [
        world.home / ".config/pip/pip.conf", world.home / ".config/uv/uv.toml", world.home / ".condarc", world.code / "train.py", world.code / "n.ipynb",
        world.code / ".env", world.code / "requirements.txt", world.run.snapshot, world.run.plan, world.run.path / "events/trainer-0.jsonl",
    ]  # fmt: skip
    for file in files:
        text = file.read_text()
        assert len(found_in(text)) == len(SECRETS), file
    metas = "".join(path.read_text() for path in (world.venv / "conda-meta").iterdir())
    notes = "".join(path.read_text() for path in world.venv.rglob("direct_url.json"))
    assert (
        len(found_in(metas))
        == len(found_in(notes))
        == len(found_in(json.dumps(world.variables)))
        == len(SECRETS)
    )


def test_an_export_with_such_changes_is_refused_and_says_none_of_them(world: World) -> None:
    done = world.doctor("snapshot", "export", "-o", "-", "--python", str(world.venv))
    assert done.returncode == 1 and "n.ipynb:" in done.stderr and "--no-patch" in done.stderr
    assert found_in(done.stdout + done.stderr) == []


@pytest.mark.parametrize("words", [("--no-patch",), ("--share",)], ids=["for oneself", "for strangers"])
def test_an_export_holds_none_of_them(world: World, words: tuple[str, ...]) -> None:
    done = world.doctor("snapshot", "export", "-o", "-", "--python", str(world.venv), *words)
    assert done.returncode == 0, done.stderr
    assert found_in(done.stdout + done.stderr) == []
    tree = json.loads(done.stdout)
    provenance = tree["facts"]["provenance"]["value"]
    assert (
        len(provenance["contents"]) >= len(SECRETS)
        and len(provenance["conda"]) == len(SECRETS)
        and len({row["source"] for row in provenance["indexes"]}) >= 4
    )
    assert "PLANTED_JWT" in tree["facts"]["environment"]["value"]["names"]


def test_an_export_of_a_run_holds_none_of_them(world: World) -> None:
    done = world.doctor("snapshot", "export", "-o", "-", "--from-run", str(world.run.path))
    assert (
        done.returncode == 0
        and json.loads(done.stdout)["facts"]["provenance"]["value"]["run"]["name"] == "short"
    )
    assert found_in(done.stdout + done.stderr) == []


@pytest.mark.parametrize("form", FORMS)
def test_no_format_holds_any_of_them(world: World, form: str) -> None:
    file = world.root / "s.json"
    if not file.exists():
        assert (
            world.doctor(
                "snapshot", "export", "-o", str(file), "--no-patch", "--python", str(world.venv)
            ).returncode
            == 0
        )
    done = world.doctor("snapshot", "convert", str(file), "--format", form)
    assert done.stdout or done.stderr
    assert found_in(done.stdout + done.stderr) == []


@pytest.mark.parametrize("words", [("show", "{file}"), ("diff", "{file}", "here"), ("verify", "{file}"), ("restore", "{file}", "--venv", "v", "--dry-run")], ids=lambda words: str(words[0]))  # fmt: skip
def test_nothing_that_is_printed_holds_any_of_them(world: World, words: tuple[str, ...]) -> None:
    file = world.root / "s2.json"
    if not file.exists():
        assert (
            world.doctor(
                "snapshot", "export", "-o", str(file), "--no-patch", "--python", str(world.venv)
            ).returncode
            == 0
        )
    done = world.doctor(
        "snapshot",
        *(word.format(file=file) for word in words),
        *(("--python", str(world.venv)) if words[0] != "show" else ()),
    )
    assert done.stdout or done.stderr
    assert found_in(done.stdout + done.stderr) == []
