"""snapshots/*.json from snapshots/recipes.toml: ``python -m tests.known_good NAME [--prove] [--find-links DIR]``. Network.

An environment is installed for real, written down by `doctor snapshot export`'s own reading, its files looked up by
`doctor snapshot resolve`'s; ``--prove`` restores it from the file, compares every file and trains with it.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import msgspec

from doctor import service
from doctor.data_files import snapshots_dir
from doctor.machine import encode_snapshot, with_facts
from doctor.model import Content, Distribution, Facts, KnownGood, Provenance, Reading, Snapshot, Torch, ok
from doctor.resolve import resolve
from doctor.restore_commands import our_uv
from doctor.snapshots.formats.pylock import as_toml, lock_tree
from doctor.snapshots.formats.sources import sources
from doctor.snapshots.known_good import (
    installed_only,
    not_read,
    restored,
    torch_out_of_reach,
    without_addresses,
)
from doctor.snapshots.resolved import Offer, with_offers
from doctor.tables.torch_builds import arch_of

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

KEPT = ("python", "packages", "torch")
HOME = "/opt/venv"
STEPS = 3
TRAIN = f"""
import tempfile, torch, transformers, accelerate, datasets, evaluate, sklearn, sentencepiece, google.protobuf
from torch.utils.tensorboard import SummaryWriter
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments
torch.manual_seed(0)
config = BertConfig(vocab_size=100, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64)
rows = datasets.Dataset.from_dict({{"input_ids": [[i % 97, 5, 7, 9] for i in range(32)], "labels": [i % 2 for i in range(32)]}})
with tempfile.TemporaryDirectory() as folder:
    arguments = TrainingArguments(folder, max_steps={STEPS}, per_device_train_batch_size=4, report_to=["tensorboard"], logging_steps=1)
    found = Trainer(BertForSequenceClassification(config), arguments, train_dataset=rows).train()
assert found.global_step == {STEPS} and found.training_loss == found.training_loss, found
print("trained", found.global_step, found.training_loss, torch.__version__, transformers.__version__)
"""


class OutOfReach(msgspec.Struct, frozen=True):
    """A torch that is written in, not installed."""

    version: str
    cuda: str
    tags: tuple[str, ...]
    requires: tuple[str, ...]
    sha256: str
    evidence: tuple[str, ...]

    @property
    def file(self) -> str:
        return f"torch-{self.version}-{self.tags[0]}.whl"

    @property
    def index(self) -> str:
        return f"https://download.pytorch.org/whl/{self.version.partition('+')[2]}"


class Recipe(msgspec.Struct, frozen=True):
    name: str
    label: str
    python: str
    before: str
    wants: tuple[str, ...]
    torch: OutOfReach | None = None


def recipes() -> list[Recipe]:
    """Return the recipes in order. Raises OSError, msgspec.ValidationError."""
    tree = tomllib.loads((snapshots_dir() / "recipes.toml").read_text("utf-8"))
    return msgspec.convert(tree["recipe"], list[Recipe])


# ---------------------------------------------------------------------------------------- installing
def _call(*words: str, **more: Any) -> str:
    print("$", *words[:8], file=sys.stderr, flush=True)
    environ = {**os.environ, "UV_NO_CONFIG": "1", "PYTHONNOUSERSITE": "1"}
    done = subprocess.run(words, env=environ, check=False, capture_output=True, text=True, **more)
    if done.returncode != 0:
        raise SystemExit(f"{words[0]}: {done.returncode}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}")
    return str(done.stdout)


def install(recipe: Recipe, folder: Path, links: str | None) -> None:
    """Make the environment: all of it by one resolution, a torch that is out of reach left out of the installing."""
    uv = our_uv() or "uv"
    within = ["--find-links", links] if links else []
    asked = [*within, "--only-binary", ":all:", "--python-version", recipe.python, "--exclude-newer", recipe.before, "--no-header", "--no-annotate", "-q"]  # fmt: skip
    pins = _call(uv, "pip", "compile", "-", *asked, input="\n".join(recipe.wants)).splitlines()
    if recipe.torch is not None:
        gone = ("torch==", "nvidia-")
        pins = [pin for pin in pins if not pin.startswith(gone)]
    _call(uv, "venv", "-q", "--python", recipe.python, str(folder))
    _call(uv, "pip", "install", "-q", "--no-deps", "--python", str(folder / "bin/python"), *within, "-r", "-", input="\n".join(pins))  # fmt: skip


# ---------------------------------------------------------------------------------------- writing down
def written_down(recipe: Recipe, folder: Path) -> Snapshot:
    """Return the environment's part of what an export reads; whose machine it was stays out."""
    empty = folder / "empty"
    empty.mkdir()
    here = Path.cwd()
    os.chdir(empty)
    try:
        whole = service.snapshot_named("here", str(folder))
    finally:
        os.chdir(here)
    contents = whole.facts.provenance.value.contents if whole.facts.provenance.value else ()
    host = whole.facts.host.value
    facts: dict[str, Reading[Any]] = {name: getattr(whole.facts, name) for name in KEPT}
    facts["provenance"] = ok(Provenance(contents=contents), source="RECORD")
    if host is not None:
        told = type(host)(os_name=host.os_name, arch=host.arch, glibc=host.glibc)
        facts["host"] = msgspec.structs.replace(whole.facts.host, value=told)
    snapshot = Snapshot(taken_at=whole.taken_at, tool=whole.tool, label=recipe.label, redacted=True, facts=Facts(**facts))  # fmt: skip
    return _moved(snapshot, str(folder))


def _moved(snapshot: Snapshot, folder: str) -> Snapshot:
    return msgspec.json.decode(
        msgspec.json.encode(snapshot).replace(folder.encode(), HOME.encode()), type=Snapshot
    )


def with_torch(snapshot: Snapshot, torch: OutOfReach) -> Snapshot:
    """Return ``snapshot`` with a torch that was never opened: its name, address and digest, and what its table says."""
    packages, provenance = snapshot.facts.packages.value, snapshot.facts.provenance.value
    assert packages is not None and provenance is not None
    site = packages.items[0].location
    arch = arch_of(torch.version, torch.cuda)
    item = Distribution(name="torch", version=torch.version, location=site, requires_dist=torch.requires, wheel_tags=torch.tags)  # fmt: skip
    content = Content(
        name="torch", version=torch.version, location=site, file_url=f"{torch.index}/{torch.file.replace('+', '%2B')}",
        file_sha256=f"sha256:{torch.sha256}", index=torch.index, why=not_read(torch.file),
    )  # fmt: skip
    build = Torch(
        version=torch.version, cuda=torch.cuda, arch_list=arch.names if arch else None, arch_source="table" if arch else "",
        location=f"{site}/torch", copies=(f"{site}/torch-{torch.version}.dist-info",),
    )  # fmt: skip
    items = tuple(sorted([*packages.items, item], key=lambda one: one.name))
    contents = tuple(sorted([*provenance.contents, content], key=lambda one: one.name))
    return with_facts(
        snapshot,
        packages=msgspec.structs.replace(snapshot.facts.packages, value=msgspec.structs.replace(packages, items=items)),
        provenance=ok(msgspec.structs.replace(provenance, contents=contents), source="RECORD"),
        torch=ok(build, source=torch.file),
    )  # fmt: skip


ADDRESS_NOT_ASKED = "torch: the digest is that of the wheel that was installed; its address follows the layout of download.pytorch.org, which could not be asked"


def from_links(snapshot: Snapshot, links: Path) -> Snapshot:
    """Return ``snapshot`` with address and digest of a torch that was installed out of a folder."""
    packages, provenance = snapshot.facts.packages.value, snapshot.facts.provenance.value
    item = packages.get("torch") if packages else None
    assert item is not None and provenance is not None
    (wheel,) = links.glob(f"torch-{item.version}-*.whl")
    index = f"https://download.pytorch.org/whl/{item.version.partition('+')[2]}"
    offer = Offer(
        name=wheel.name,
        url=f"{index}/{wheel.name.replace('+', '%2B')}",
        sha256=hashlib.sha256(wheel.read_bytes()).hexdigest(),
        index=index,
    )
    return with_offers(snapshot, {"torch": offer})


def write(snapshot: Snapshot, path: Path) -> None:
    """Write the snapshot and, beside it, the addresses of its files as a lock (PEP 751)."""
    path.write_bytes(encode_snapshot(without_addresses(snapshot)))
    path.with_suffix(".lock").write_text(as_toml(lock_tree(snapshot, sources(snapshot))), "utf-8")


def make(recipe: Recipe, links: str | None) -> Snapshot:
    """Install, write down, look up every file; a package whose file stays unknown ends it."""
    with tempfile.TemporaryDirectory() as work:
        folder = Path(work) / "venv"
        install(recipe, folder, links)
        snapshot = written_down(recipe, folder)
    found = resolve(snapshot, (), dict(os.environ))
    if links:
        found = msgspec.structs.replace(
            found,
            snapshot=from_links(found.snapshot, Path(links)),
            open={name: why for name, why in found.open.items() if name != "torch"},
        )
    still_open = {name: str(why) for name, why in found.open.items()}
    if still_open:
        raise SystemExit(f"{recipe.name}: no address and digest: {still_open}")
    print(
        f"{recipe.name}: {found.proven} proven by METADATA, by name alone: {found.by_name}", file=sys.stderr
    )
    snapshot = found.snapshot
    known = KnownGood(
        before=recipe.before, how=installed_only(), evidence=(ADDRESS_NOT_ASKED,) if links else ()
    )
    if recipe.torch is not None:
        snapshot = with_torch(snapshot, recipe.torch)
        known = KnownGood(before=recipe.before, how=torch_out_of_reach(recipe.torch.file), evidence=recipe.torch.evidence)  # fmt: skip
    return msgspec.structs.replace(snapshot, known_good=known)


# ---------------------------------------------------------------------------------------- proving
def prove(name: str, links: str | None) -> Snapshot:
    """Restore the file, compare every file of it, import and train; return the snapshot that says so."""
    _, snapshot = service.find_snapshot(name)
    more = ["--find-links", links] if links else []
    doctor = [sys.executable, "-m", "doctor", "snapshot"]
    with tempfile.TemporaryDirectory() as work:
        venv = Path(work) / "venv"
        installer = (
            "pip" if links else "uv"
        )  # uv ends where an index does not answer, pip goes on to the folder
        _call(
            *doctor,
            "restore",
            name,
            "--venv",
            str(venv),
            "--yes",
            "--untested",
            "--installer",
            installer,
            *more,
        )
        said = _call(*doctor, "verify", name, "--python", str(venv), "--level", "files")
        print(said, file=sys.stderr)
        _call(str(venv / "bin/python"), "-m", "pip", "check", cwd=work)
        print(_call(str(venv / "bin/python"), "-c", TRAIN, cwd=work), file=sys.stderr)
    packages, host = snapshot.facts.packages.value, snapshot.facts.host.value
    how = restored((host.os_name if host else None) or "?", len(packages.items) if packages else 0, STEPS)
    known = msgspec.structs.replace(snapshot.known_good or KnownGood(), tested=True, how=how)
    return msgspec.structs.replace(snapshot, known_good=known)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--prove", action="store_true")
    parser.add_argument("--only-prove", action="store_true")
    parser.add_argument("--find-links")
    given = parser.parse_args()
    for recipe in recipes():
        if recipe.name not in given.names:
            continue
        path = snapshots_dir() / f"{recipe.name}.json"
        if not given.only_prove:
            write(make(recipe, given.find_links), path)
        if (given.prove or given.only_prove) and recipe.torch is None:
            write(prove(recipe.name, given.find_links), path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
