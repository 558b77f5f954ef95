"""Which file of an index a wheel was: by its rebuilt name, proven by its METADATA; never a digest of another file."""

from __future__ import annotations

import hashlib
import http.server
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from doctor.model import Content, IndexLine, Snapshot
from doctor.probes.provenance import read_contents
from doctor.resolve import ResolveError, resolve
from doctor.restore_commands import our_uv
from doctor.snapshots.formats import convert
from doctor.snapshots.resolved import Offer, Resolution, installed_file, offers_of, renamed_file
from tests.snapshots.boxes import box, content, dist
from tests.snapshots.wheels import contents_of, install, make_wheel

HASH = "a" * 64


# ---------------------------------------------------------------------------------------- matching
def offer(name: str) -> Offer:
    return Offer(name=name, url=f"https://h/{name}", sha256=HASH)


@pytest.mark.parametrize(
    ("tags", "offered", "found"),
    [
        ("py3-none-any", "lib-1.0-py3-none-any.whl", True),
        ("cp311-cp311-manylinux_2_17_x86_64 cp311-cp311-manylinux2014_x86_64", "lib-1.0-cp311-cp311-manylinux2014_x86_64.manylinux_2_17_x86_64.whl", True),
        ("cp311-cp311-linux_x86_64", "lib-1.0-cp311-cp311-manylinux_2_17_x86_64.whl", False),
        ("py3-none-any", "lib-1.0-1-py3-none-any.whl", False),
        ("", "lib-1.0-py3-none-any.whl", False),
    ],
    ids=["the same", "tags in another order", "built there", "another build", "no wheel"],
)  # fmt: skip
def test_the_installed_file_is_known_by_its_name(tags: str, offered: str, found: bool) -> None:
    assert (
        installed_file(dist("lib", "1.0", tags), content("lib", "1.0"), [offer(offered)]) is not None
    ) is found


def test_a_local_label_is_found_however_the_address_spells_it() -> None:
    item = dist("torch", "2.6.0+cu124", "cp311-cp311-linux_x86_64")
    assert installed_file(item, None, [offer("torch-2.6.0%2Bcu124-cp311-cp311-linux_x86_64.whl")]) is not None


def test_offers_without_a_digest_or_a_plain_address_are_none() -> None:
    wheels = [{"url": "https://h/a-1-py3-none-any.whl", "hashes": {"sha256": HASH}}, {"url": "https://h/b.whl", "hashes": {}}, {"url": "file:///opt/c.whl", "hashes": {"sha256": HASH}}]  # fmt: skip
    found = offers_of({"packages": [{"name": "a", "wheels": wheels}]})
    assert [one.name for one in found["a"]] == ["a-1-py3-none-any.whl"]


# ---------------------------------------------------------------------------------------- against an index
@pytest.fixture
def index(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """A small index on loopback: one and two, the first with its METADATA beside it."""
    folder = tmp_path / "index"
    for name in ("one", "two"):
        wheel = make_wheel(folder / name, name, "1.0")
        metadata = contents_of(name, "1.0", {})[f"{name}-1.0.dist-info/METADATA"]
        told = f' data-core-metadata="sha256={hashlib.sha256(metadata).hexdigest()}"' if name == "one" else ""
        if told:
            (folder / name / f"{wheel.name}.metadata").write_bytes(metadata)
        digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
        (folder / name / "index.html").write_text(
            f'<a href="{wheel.name}#sha256={digest}"{told}>{wheel.name}</a>'
        )

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *arguments: object) -> None:
            super().__init__(*arguments, directory=str(folder))  # type: ignore[arg-type]

        def log_message(self, *arguments: object) -> None: ...

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Quiet)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}", folder
    server.shutdown()
    server.server_close()


def installed(tmp_path: Path, **fields: object) -> Snapshot:
    install(tmp_path / "site", "one", "1.0")
    install(tmp_path / "site", "two", "1.0")
    contents: tuple[Content, ...] = tuple(read_contents((tmp_path / "site",), {}))
    return box(dist("one", "1.0"), dist("two", "1.0"), contents=contents)


def asked(snapshot: Snapshot, address: str) -> Resolution:
    if our_uv() is None:
        pytest.skip("uv is not here")
    environ = {
        "PATH": os.environ["PATH"],
        "UV_NO_CACHE": "1",
        "NO_PROXY": "127.0.0.1",
        "HOME": os.environ.get("HOME", "/"),
    }
    return resolve(snapshot, (IndexLine(option="index-url", url=address),), environ)


def test_address_and_digest_are_found_and_proven(tmp_path: Path, index: tuple[str, Path]) -> None:

    address, folder = index
    found = asked(installed(tmp_path), address)
    assert (found.proven, found.by_name, found.open) == (1, ("two",), {})
    provenance = found.snapshot.facts.provenance.value
    assert provenance is not None
    one = provenance.content("one")
    digest = hashlib.sha256((folder / "one/one-1.0-py3-none-any.whl").read_bytes()).hexdigest()
    assert one is not None and one.file_sha256 == f"sha256:{digest}" and one.file_url.startswith(address)


def test_another_metadata_is_another_file(tmp_path: Path, index: tuple[str, Path]) -> None:

    address, folder = index
    snapshot = installed(tmp_path)
    (folder / "one/one-1.0-py3-none-any.whl.metadata").write_bytes(b"Metadata-Version: 2.1\nName: one\nVersion: 1.0\nSummary: x\n")  # fmt: skip
    page = (folder / "one/index.html").read_text()
    (folder / "one/index.html").write_text(page.partition(" data-core")[0] + ">one-1.0-py3-none-any.whl</a>")
    found = asked(snapshot, address)
    assert list(found.open) == ["one"] and "another content" in str(found.open["one"])
    assert found.snapshot.facts.provenance.value is not None
    kept = found.snapshot.facts.provenance.value.content("one")
    assert kept is not None and kept.file_sha256 == ""


def test_what_no_index_has_is_open_and_the_rest_is_found(tmp_path: Path, index: tuple[str, Path]) -> None:

    install(tmp_path / "site", "three", "1.0")
    both = installed(tmp_path)
    snapshot = box(dist("one", "1.0"), dist("three", "1.0"), contents=both.facts.provenance.value.contents if both.facts.provenance.value else ())  # fmt: skip
    found = asked(snapshot, index[0])
    assert list(found.open) == ["three"] and found.proven == 1


def test_a_resolved_snapshot_is_a_valid_lock_and_has_digests_in_its_requirements(tmp_path: Path, index: tuple[str, Path]) -> None:  # fmt: skip

    found = asked(installed(tmp_path), index[0])
    assert convert(found.snapshot, "pylock").text.count("sha256") == 2
    assert convert(found.snapshot, "requirements").text.count("--hash=sha256:") == 2


def test_without_uv_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("doctor.resolve.our_uv", lambda: None)
    with pytest.raises(ResolveError, match="pip install uv"):
        resolve(installed(tmp_path), (), {})


# ---------------------------------------------------------------------------------------- files under another name
MANYLINUX = [offer(f"torch-2.4.1-cp310-cp310-manylinux1_{arch}.whl") for arch in ("x86_64", "aarch64")]


@pytest.mark.parametrize(
    ("tags", "offers", "found"),
    [
        ("cp310-cp310-linux_x86_64", MANYLINUX, "torch-2.4.1-cp310-cp310-manylinux1_x86_64.whl"),
        ("cp311-cp311-linux_x86_64", MANYLINUX, None),
        (
            "cp310-cp310-linux_x86_64",
            [*MANYLINUX, offer("torch-2.4.1-cp310-cp310-manylinux2014_x86_64.whl")],
            None,
        ),
        ("cp310-cp310-manylinux_2_28_x86_64", MANYLINUX, None),
        ("cp310-cp310-linux_x86_64", [offer("no wheel.whl")], None),
        ("", MANYLINUX, None),
    ],
    ids=[
        "renamed for the index",
        "another Python",
        "two it may be",
        "not renamed",
        "a name that is none",
        "no tags",
    ],
)
def test_a_wheel_that_was_renamed_for_the_index_is_looked_for_by_its_kind(
    tags: str, offers: list[Offer], found: str | None
) -> None:
    one = renamed_file(dist("torch", "2.4.1", tags), offers)
    assert (one.name if one else None) == found


def test_a_renamed_file_without_proof_stays_open(tmp_path: Path, index: tuple[str, Path]) -> None:
    address, folder = index
    snapshot = installed(tmp_path)
    packages = snapshot.facts.packages.value
    assert packages is not None
    wheel = make_wheel(folder / "two", "two", "1.0", tag="cp311-cp311-manylinux1_x86_64")
    for name in ("two-1.0-py3-none-any.whl",):
        (folder / "two" / name).unlink()
    (folder / "two/index.html").write_text(
        f'<a href="{wheel.name}#sha256={hashlib.sha256(wheel.read_bytes()).hexdigest()}">{wheel.name}</a>'
    )
    contents = snapshot.facts.provenance.value.contents if snapshot.facts.provenance.value else ()
    here = box(dist("two", "1.0", "cp311-cp311-linux_x86_64"), contents=contents)
    assert "nothing to prove it by" in str(asked(here, address).open["two"])
