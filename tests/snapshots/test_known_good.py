"""The environments that ship: whole, agreeing with themselves, clean on a machine they are for, refused where they are not."""

from __future__ import annotations

from collections.abc import Set
from pathlib import Path

import msgspec
import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from doctor import service
from doctor.commands import Exit, main
from doctor.data_files import lock_beside, snapshots_dir
from doctor.judge import judge
from doctor.machine import encode_snapshot, load_snapshot
from doctor.model import Facts, KnownGood, Snapshot, t
from doctor.snapshots.fit import MACHINE, fit, merged
from doctor.snapshots.formats.sources import sources
from doctor.snapshots.known_good import with_lock, without_addresses
from tests.known_good import recipes
from tests.snapshots.boxes import box, content, dist

NAMES = [recipe.name for recipe in recipes()]
MACHINES = Path(__file__).parent.parent / "machines"


def shipped(name: str) -> Snapshot:
    return service.find_snapshot(name)[1]


def machine(name: str) -> Snapshot:
    """A recorded machine without the environment that was on it."""
    facts = load_snapshot(MACHINES / f"{name}.json").facts
    return Snapshot(facts=Facts(**{section: getattr(facts, section) for section in MACHINE}))


def test_every_recipe_has_its_file_and_every_file_its_recipe() -> None:
    assert sorted(path.stem for path in snapshots_dir().glob("*.json")) == sorted(NAMES)
    assert sorted(path.stem for path in snapshots_dir().glob("*.lock")) == sorted(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_every_package_has_one_file_named_by_address_and_digest(name: str) -> None:
    found = sources(shipped(name))
    assert len(found) >= 40 and all(one.exact and one.sha256 and one.file_url for one in found)


@pytest.mark.parametrize("name", NAMES)
def test_what_was_never_opened_says_so_and_makes_it_untested(name: str) -> None:
    snapshot = shipped(name)
    provenance, known = snapshot.facts.provenance.value, snapshot.known_good
    assert provenance is not None and known is not None and known.how is not None
    unopened = [one.name for one in provenance.contents if not one.record_sha256]
    assert all(one.why for one in provenance.contents if not one.record_sha256)
    assert not (known.tested and unopened) and (not unopened or len(known.evidence) >= 2)


@pytest.mark.parametrize("name", NAMES)
def test_its_packages_satisfy_each_other(name: str) -> None:
    snapshot = shipped(name)
    packages, python = snapshot.facts.packages.value, snapshot.facts.python.value
    assert packages is not None and python is not None
    minor = ".".join((python.version or "").split(".")[:2])
    environment: dict[str, str | Set[str]] = {
        "python_version": minor, "python_full_version": python.version or "", "implementation_name": "cpython", "platform_python_implementation": "CPython",
        "sys_platform": "linux", "platform_system": "Linux", "platform_machine": "x86_64", "os_name": "posix", "platform_release": "", "platform_version": "", "extra": "",
    }  # fmt: skip
    problems = []
    for item in packages.items:
        for line in item.requires_dist or ():
            wanted = Requirement(line)
            if wanted.marker and not wanted.marker.evaluate(environment):
                continue
            there = packages.get(canonicalize_name(wanted.name))
            if there is None or not wanted.specifier.contains(there.version, prereleases=True):
                problems.append(f"{item.name}: {line}, there is {there.version if there else 'none'}")
    assert problems == []


# Of each environment a recorded machine that it is for: the doctor finds nothing on it with that environment.
MATCHES = {
    "cu113-py38-torch-1.12": ("drv-470-cluster", "autodl-4090-well-kept"),
    "cu117-py38-torch-1.13": ("drv-470-cluster", "ngc-image-on-a100"),
    "cu118-py310-torch-2.0": ("two-4090-driver-535", "autodl-4090-well-kept"),
    "cu121-py310-torch-2.4": ("two-4090-driver-535", "ngc-image-on-a100"),
    "cu126-py311-torch-2.7": ("two-4090-driver-535", "autodl-4090-well-kept"),
    "cu128-py312-torch-2.8": ("rtx5070ti-cu128-build", "ngc-image-on-a100"),
    "cu130-py312-torch-2.13": ("pod-set-up-for-training", "autodl-4090-well-kept"),
    "cpu-py311-torch-2.13": ("cpu-box-cpu-wheel",),
}


@pytest.mark.parametrize(
    ("name", "on"), [(name, on) for name, machines in MATCHES.items() for on in machines]
)
def test_the_doctor_finds_nothing_on_a_machine_it_is_for(name: str, on: str) -> None:
    found = judge(merged(shipped(name), machine(on))).findings()
    assert [(one.id, one.subject) for one in found if one.level in ("fail", "warn")] == []
    assert fit(shipped(name), machine(on)).answer != "does-not-fit"


def test_none_ships_without_such_a_machine() -> None:
    assert sorted(MATCHES) == sorted(NAMES)


@pytest.mark.parametrize(
    ("name", "on", "why"),
    [
        ("cu130-py312-torch-2.13", "two-4090-driver-535", "driver-too-old-for-torch-cuda"),
        ("cu121-py310-torch-2.4", "rtx5070ti-cu128-build", "gpu-arch-not-in-torch-build"),
        ("cu126-py311-torch-2.7", "drv-470-cluster", "driver-too-old-for-torch-cuda"),
        ("cu113-py38-torch-1.12", "rtx5070ti-cu128-build", "gpu-arch-not-in-torch-build"),
    ],
)
def test_a_machine_it_is_not_for_is_told(name: str, on: str, why: str) -> None:
    assert why in [one.finding for one in fit(shipped(name), machine(on)).obstacles if one.level == "fail"]


# ---------------------------------------------------------------------------------------- list and restore
def test_the_list_says_what_each_fits_and_whether_it_is_tested(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["snapshot", "list", "--lang", "en"]) == Exit.OK
    out = " ".join(capsys.readouterr().out.split())
    for words in (
        "cu113-py38-torch-1.12 untested", "driver 450.80.02 or newer (CUDA 11.3)", "compute capability 3.7 5.0 6.0 7.0 7.5 8.0 8.6 · Python 3.8 · glibc 2.17 or newer",
        "cpu-py311-torch-2.13 tested", "no GPU · Python 3.11", "No GPU ran it", "is only at download.pytorch.org",
    ):  # fmt: skip
        assert words in out, words


def test_an_untested_one_is_shown_and_not_restored_without_its_word(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    known = KnownGood(how=t("{file}", file="nobody tried"))
    snapshot = box(dist("one", "1.0"), python="3.11.7")
    (tmp_path / "s.json").write_bytes(encode_snapshot(msgspec.structs.replace(snapshot, known_good=known)))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("doctor.service.restore_python", lambda plan, given: Path("/nonexistent/python"))
    assert main(["snapshot", "restore", "s.json", "--venv", "v", "--dry-run", "--lang", "en"]) == Exit.OK
    assert "--untested" in capsys.readouterr().out
    assert main(["snapshot", "restore", "s.json", "--venv", "v", "--yes", "--lang", "en"]) == Exit.FOUND
    assert "nobody tried" in capsys.readouterr().err and not (tmp_path / "v").exists()


# ---------------------------------------------------------------------------------------- addresses
HELD = box(
    dist("one", "1.0"), dist("two", "1.0"),
    contents=(content("one", "1.0", "a", file_url="https://h.example/one.whl", file_sha256="sha256:" + "b" * 64), content("two", "1.0", "c")),
)  # fmt: skip


def test_addresses_come_back_from_the_lock_where_the_digests_agree() -> None:
    bare = without_addresses(HELD)
    assert "h.example" not in encode_snapshot(bare).decode()
    wheel = {"url": "https://h.example/one.whl", "hashes": {"sha256": "b" * 64}}
    assert with_lock(bare, {"packages": [{"name": "one", "wheels": [wheel]}]}) == HELD
    swapped = {"url": "https://evil.example/one.whl", "hashes": {"sha256": "d" * 64}}
    assert (
        with_lock(
            bare, {"packages": [{"name": "one", "wheels": [swapped]}, {"name": "two", "wheels": [swapped]}]}
        )
        == bare
    )


@pytest.mark.parametrize(
    "raw", [b"", b"x = [", b"\xff\xfe", None], ids=["empty", "no TOML", "no UTF-8", "none"]
)
def test_a_lock_that_cannot_be_read_is_no_lock(tmp_path: Path, raw: bytes | None) -> None:
    if raw is not None:
        (tmp_path / "s.lock").write_bytes(raw)
    assert not lock_beside(tmp_path / "s.json")
