"""Mounts, sizes and the places of caches, on recorded trees."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from doctor.model import Storage
from doctor.probes import mounts, storage
from doctor.probes.mountinfo import mount_of, parse_mountinfo, unescape_octal
from doctor.probes.places import places
from doctor.probes.target import Target
from tests.probes.roots import context_of, write_tree

GB = 1 << 30
PASSWD = {"/etc/passwd": "root:x:0:0::/root:/bin/sh\n"}
MOUNTS = """\
100 90 0:50 / / rw,relatime - overlay overlay rw,lowerdir=/l
101 100 0:51 / /proc rw - proc proc rw
102 100 0:52 / /sys ro - sysfs sysfs ro
103 100 0:53 / /dev/shm rw - tmpfs shm rw,size=65536k
104 100 259:1 / /root/autodl-tmp rw,relatime - xfs /dev/nvme1n1 rw,pquota
105 100 0:60 / /root/autodl-fs rw - nfs4 10.0.0.9:/export/u1 rw,vers=4.1
106 100 8:2 /etc/hosts /etc/hosts rw - ext4 /dev/sda2 rw
107 100 8:2 / /usr/bin/nvidia-smi ro - ext4 /dev/sda2 rw
108 100 253:0 / /mnt/my\\040disk ro - ext4 /dev/vdb rw
"""


def answer(blocks: int = 100, free: int = 40, files: int = 1000) -> os.statvfs_result:
    return os.statvfs_result((GB, GB, blocks, free + 5, free, files, files // 2, files // 2 - 1, 0, 255))


def read(root: Path, environ: dict[str, str] | None = None, **options: object) -> Storage:
    context = context_of(root, {"HOME": "/root", **(environ or {})}, cwd="/root/project")
    reading = storage.probe(context, **{"statvfs": lambda path: answer(), **options})  # type: ignore[arg-type]
    assert reading.status == "ok" and reading.value is not None
    return reading.value


@pytest.fixture
def rented(tmp_path: Path) -> Path:
    """A rented container with a data disk, a network disk and its caches still in the home."""
    files = {"/proc/self/mountinfo": MOUNTS, **PASSWD, "/root/project/x": "", "/root/autodl-tmp/hf/x": ""}
    return write_tree(tmp_path, files)


def test_the_mounts_that_matter_and_no_others(rented: Path) -> None:
    found = read(rented)
    assert [item.path for item in found.mounts] == [
        "/", "/dev/shm", "/mnt/my disk", "/root/autodl-fs", "/root/autodl-tmp",
    ]  # fmt: skip
    data = found.mount("/root/autodl-tmp/hf")
    assert data is not None and (data.fstype, data.source, data.read_only) == ("xfs", "/dev/nvme1n1", False)
    assert (data.size_bytes, data.free_bytes, data.inodes_total, data.inodes_free) == (
        100 * GB,
        40 * GB,
        1000,
        499,
    )
    disk = found.mount("/mnt/my disk")
    assert disk is not None and disk.read_only is True


def test_a_hung_network_disk_costs_only_itself(rented: Path) -> None:
    never = threading.Event()

    def statvfs(path: str) -> os.statvfs_result:
        if path.endswith("autodl-fs"):
            never.wait(30)
        return answer()

    found = read(rented, statvfs=statvfs, deadline_s=0.3)
    never.set()
    hung, root = found.mount("/root/autodl-fs"), found.mount("/")
    assert hung is not None and hung.error == "no answer" and hung.size_bytes is None
    assert root is not None and root.error == "" and root.size_bytes == 100 * GB


def test_a_refused_statvfs_is_the_mounts_error(rented: Path) -> None:
    def statvfs(path: str) -> os.statvfs_result:
        raise PermissionError(13, "Permission denied", path)

    root = read(rented, statvfs=statvfs).mount("/")
    assert root is not None and root.error == "Permission denied" and root.free_bytes is None


def test_a_file_system_that_counts_no_inodes_has_none_to_run_out_of(rented: Path) -> None:
    root = read(rented, statvfs=lambda path: answer(files=0)).mount("/")
    assert root is not None and root.inodes_total is None and root.inodes_free is None


def test_a_linked_cache_lies_where_the_link_leads(rented: Path) -> None:
    (rented / "root/.cache").mkdir()
    (rented / "root/.cache/huggingface").symlink_to("/root/autodl-tmp/hf")
    found = read(rented)
    hub, pip = found.place("hf_hub_cache"), found.place("pip_cache")
    assert hub is not None and (hub.path, hub.mount) == ("/root/.cache/huggingface/hub", "/root/autodl-tmp")
    assert pip is not None and (pip.mount, pip.exists) == ("/", False)


def test_a_link_loop_is_no_endless_walk(rented: Path) -> None:
    (rented / "root/.cache").symlink_to("/root/.cache")
    place = read(rented).place("pip_cache")
    assert place is not None and place.mount == "/"


def test_without_mountinfo_storage_is_failed(tmp_path: Path) -> None:
    reading = storage.probe(context_of(write_tree(tmp_path, PASSWD)))
    assert reading.status == "failed" and "/proc/self/mountinfo" in str(reading.why)


def test_a_name_that_is_not_utf8_can_be_stored(tmp_path: Path) -> None:
    import msgspec

    files = {"/proc/self/mountinfo": "1 0 8:1 / /data/\udcb5\udcc2 rw - ext4 /dev/sda1 rw\n", **PASSWD}
    found = read(write_tree(tmp_path, files))
    assert found.mounts[0].path == "/data/\\xb5\\xc2"
    assert msgspec.json.decode(msgspec.json.encode(found), type=Storage) == found


@pytest.mark.parametrize(
    ("device", "source", "value", "expected"),
    [
        pytest.param("259:1", "/dev/nvme0n1", "0", False, id="flash"),
        pytest.param("8:1", "/dev/sda1", "1", True, id="a disk that turns"),
        pytest.param("254:0", "/dev/vda", "1", None, id="a virtual disk: only a default"),
        pytest.param("0:50", "overlay", None, None, id="no block device"),
    ],
)
def test_rotational(
    tmp_path: Path, device: str, source: str, value: str | None, expected: bool | None
) -> None:
    files = {f"/sys/dev/block/{device}/queue/rotational": f"{value}\n"} if value else {}
    line = parse_mountinfo(f"1 0 {device} / / rw - ext4 {source} rw")[0]
    assert mounts.is_rotational(context_of(write_tree(tmp_path, files)), line) is expected


# ---------------------------------------------------------------------------------------- mountinfo
def test_of_two_mounts_at_one_path_the_later_hides_the_earlier() -> None:
    lines = parse_mountinfo("1 0 0:1 / /a rw - ext4 /dev/a rw\n2 1 0:2 / /a rw shared:1 - nfs4 h:/x rw\n")
    assert [(line.path, line.fstype) for line in lines] == [("/a", "nfs4")]


@pytest.mark.parametrize(
    "line",
    ["", "garbage", "1 0 0:1 / /a rw ext4 /dev/a rw", "1 0 - ext4 /dev/a rw", "1 0 0:1 / /a rw - ext4"],
)
def test_lines_of_another_form_are_left_out(line: str) -> None:
    assert parse_mountinfo(line) == ()


paths = st.lists(st.text(st.characters(exclude_characters="/\0", codec="utf-8"), min_size=1), max_size=4)


def escaped(text: str) -> str:
    for character in "\\ \t\n#":
        text = text.replace(character, f"\\{ord(character):03o}")
    return text


@given(paths, st.text(st.characters(exclude_characters="\0", codec="utf-8"), min_size=1))
def test_whatever_the_kernel_escapes_comes_back(parts: list[str], source: str) -> None:
    path = "/" + "/".join(parts)
    lines = parse_mountinfo(f"36 35 98:0 / {escaped(path)} rw,noatime master:1 - ext3 {escaped(source)} rw\n")
    assert [(line.path, line.source) for line in lines] == [(path, source)]
    found = mount_of(path.rstrip("/") + "/below", lines)
    assert found is not None and found.path == path


@given(st.text())
def test_no_text_breaks_the_parser(text: str) -> None:
    assert isinstance(parse_mountinfo(text), tuple) and isinstance(unescape_octal(text), str)


# ---------------------------------------------------------------------------------------- places
def place(environ: dict[str, str], name: str, major: int | None = None) -> tuple[str, str] | None:
    found = {item.name: item for item in places(environ, "/home/a", "/w", "a", major)}
    return (found[name].path, found[name].set_by) if name in found else None


@pytest.mark.parametrize(
    ("environ", "name", "expected"),
    [
        ({}, "hf_home", ("/home/a/.cache/huggingface", "")),
        ({"XDG_CACHE_HOME": "/x"}, "hf_home", ("/x/huggingface", "XDG_CACHE_HOME")),
        ({"XDG_CACHE_HOME": "/x", "HF_HOME": "/d/hf"}, "hf_home", ("/d/hf", "HF_HOME")),
        ({"HF_HOME": "~/hf"}, "hf_home", ("/home/a/hf", "HF_HOME")),
        ({"HF_HOME": "$DATA/hf", "DATA": "/d"}, "hf_home", ("/d/hf", "HF_HOME")),
        ({"HF_HOME": "/d/hf"}, "hf_hub_cache", ("/d/hf/hub", "HF_HOME")),
        ({"HF_HOME": "/d/hf", "HF_HUB_CACHE": "/e"}, "hf_hub_cache", ("/e", "HF_HUB_CACHE")),
        ({"HUGGINGFACE_HUB_CACHE": "/o"}, "hf_hub_cache", ("/o", "HUGGINGFACE_HUB_CACHE")),
        ({"HF_HUB_CACHE": "/e"}, "hf_xet_cache", ("/home/a/.cache/huggingface/xet", "")),
        ({"HF_HOME": "/d/hf"}, "hf_datasets_cache", ("/d/hf/datasets", "HF_HOME")),
        ({"TORCH_HOME": "rel"}, "torch_home", ("/w/rel", "TORCH_HOME")),
        ({}, "triton_cache", ("/home/a/.triton/cache", "")),
        ({"TMPDIR": "/big"}, "torchinductor_cache", ("/big/torchinductor_a", "TMPDIR")),
        ({}, "wandb_dir", ("/w/wandb", "")),
        ({"WANDB_DIR": "/d"}, "wandb_dir", ("/d/wandb", "WANDB_DIR")),
        ({"TMPDIR": ""}, "tmp", ("/tmp", "")),
    ],
)
def test_places_are_the_libraries_own(environ: dict[str, str], name: str, expected: tuple[str, str]) -> None:
    assert place(environ, name) == expected


@pytest.mark.parametrize(("major", "read_by"), [(4, True), (5, False), (None, False)])
def test_transformers_cache_is_a_place_only_while_it_is_read(major: int | None, read_by: bool) -> None:
    assert (place({"TRANSFORMERS_CACHE": "/t"}, "transformers_cache", major) is not None) is read_by


def test_the_examined_transformers_decides(rented: Path) -> None:
    site = rented / "site"
    (site / "transformers-4.44.2.dist-info").mkdir(parents=True)
    context = context_of(
        rented, {"TRANSFORMERS_CACHE": "/t"}, target=Target(executable=None, site_packages=(site,))
    )
    reading = storage.probe(context, statvfs=lambda path: answer())
    assert reading.value is not None and reading.value.place("transformers_cache") is not None


def test_the_defaults_are_those_of_the_installed_hub() -> None:
    constants = pytest.importorskip("huggingface_hub.constants")
    found = {item.name: item.path for item in places(os.environ, str(Path.home()), "/w", "a", None)}
    assert found["hf_home"] == constants.HF_HOME
    assert found["hf_hub_cache"] == constants.HF_HUB_CACHE
    assert found["hf_xet_cache"] == constants.HF_XET_CACHE
