"""Can the run and its libraries write: refused trial writes, read-only disks, folders without rights."""

from __future__ import annotations

from typing import Any

import pytest

from doctor.model import Mount, Place, Storage, Workload, WriteProbe
from tests.checks.judged import packages, said, the, variables

ROOT = Mount(path="/", fstype="overlay", size_bytes=100 << 30, free_bytes=50 << 30, read_only=False)
PUBLIC = Mount(path="/root/autodl-pub", fstype="nfs4", read_only=True)
OUT = Workload(output_dir="out")
ID = "target-not-writable"


def box(cwd: bool = True, cache: bool | None = True, **fields: Any) -> Storage:
    places = (
        Place(name="home", path="/root", writable=True),
        Place(name="cwd", path="/root/work", writable=cwd),
        Place(name="hf_home", path="/data/hf", writable=cache),
        Place(name="hf_hub_cache", path="/data/hf/hub", writable=cache),
    )
    return Storage(**{"mounts": (ROOT, PUBLIC), "places": places, **fields})


@pytest.mark.parametrize(
    ("storage", "sections", "level"),
    [
        pytest.param(box(), {"workload": Workload(output_dir="/root/autodl-pub/out")}, "fail", id="output on a read-only disk"),
        pytest.param(box(), {"workload": Workload(output_dir="/root/out")}, None, id="output on a disk that takes files"),
        pytest.param(box(cwd=False), {"workload": OUT}, "warn", id="output below a folder without rights"),
        pytest.param(box(cwd=False), {"workload": Workload(output_dir="runs/out")}, None, id="deeper: may be there with its own rights"),
        pytest.param(box(cwd=False), {}, None, id="nothing is to be written there"),
        pytest.param(box(), {"workload": OUT}, None, id="all well"),
        pytest.param(box(cache=False), {"packages": packages(huggingface_hub="1.0")}, "warn", id="the cache cannot be written"),
        pytest.param(box(cache=False), {"packages": packages(huggingface_hub="1.0"), "environment": variables(HF_HUB_OFFLINE="1")}, None, id="a read-only cache, used offline"),
        pytest.param(box(cache=False), {"packages": packages(True, torch="2.9.1")}, None, id="nobody downloads here"),
        pytest.param(box(cache=None), {"packages": packages(huggingface_hub="1.0")}, None, id="not looked at"),
        pytest.param(box(write_probes=(WriteProbe(path="/root/out", size_bytes=1, errno=0),)), {"workload": Workload(output_dir="/root/autodl-pub/out")}, None, id="a trial write went through"),
    ],
)  # fmt: skip
def test_where_a_run_writes(storage: Storage, sections: dict[str, Any], level: str | None) -> None:
    assert said(storage=storage, **sections).get(ID) == level


def test_the_cache_is_named_once_and_sent_to_the_home() -> None:
    found = the(ID, storage=box(cache=False), packages=packages(huggingface_hub="1.0"))
    assert str(found.advice) == "export HF_HOME=/root/hf"
    assert [row.fact for row in found.evidence] == ["storage.places[2].writable", "storage.places[2].path"]
