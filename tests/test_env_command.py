"""``doctor env list``: every environment once, each with its own verdict, whatever is broken about it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from doctor.commands import main
from doctor.environments import EnvironmentList, EnvironmentVerdict, list_environments
from doctor.model import t
from doctor.probes.environments import find_environments, kernel_python
from doctor.render.environments import environment_lines
from tests.probes.trees import CPU_VERSION_PY, Tree


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


def kernel(tree: Tree, name: str, python: str) -> None:
    folder = tree.root / "home/.local/share/jupyter/kernels" / name
    folder.mkdir(parents=True)
    (folder / "kernel.json").write_text(
        json.dumps({"argv": [python, "-m", "ipykernel"], "language": "python"})
    )


def found_in(tree: Tree, **environ: str) -> dict[str, tuple[str, ...]]:
    path = {
        "PATH": str(tree.base("usr").parent)
    } | environ  # so that it is not our own Python that is found last
    found, complete = find_environments(tree.context(None, None, **path))
    assert complete
    return {str(one.target.prefix).removeprefix(f"{tree.root}/"): one.found_by for one in found}


# ------------------------------------------------------------------------------------------------- finding
def test_environments_are_found_wherever_people_keep_them(tree: Tree) -> None:
    base = tree.root / "usr/bin/python3.11"
    places = [
        "work/.venv", "work/myenv", "home/nlp", "home/.virtualenvs/old", "opt/image", "root/autodl-tmp/env",
        "workspace/pod", "home/.local/share/uv/tools/ruff",
    ]  # fmt: skip
    (tree.root / "work").mkdir()
    for place in places:
        tree.venv(place, base)
    for place in ("opt/conda", "opt/conda/envs/train", "home/miniconda3"):
        (tree.base(place).parent.parent / "conda-meta").mkdir()
    assert set(found_in(tree)) == {
        "usr",
        *places,
        "opt/conda",
        "opt/conda/envs/train",
        "home/miniconda3",
    }


def test_condas_own_list_and_variables_name_environments_elsewhere(tree: Tree) -> None:
    for place in ("data/listed", "data/envs/named"):
        (tree.base(place).parent.parent / "conda-meta").mkdir()
    (tree.root / "home/.conda").mkdir(parents=True)
    (tree.root / "home/.conda/environments.txt").write_text(
        f"{tree.root}/data/listed\n{tree.root}/data/gone\n"
    )
    assert set(found_in(tree, CONDA_ENVS_PATH=f"{tree.root}/data/envs")) == {
        "usr",
        "data/listed",
        "data/envs/named",
    }


def test_an_environment_named_twice_is_one_line_with_both_names(tree: Tree) -> None:
    venv = tree.venv("home/nlp", tree.root / "usr/bin/python3.11")
    kernel(tree, "nlp", str(venv / "bin/python"))
    (tree.root / "link").symlink_to(venv)
    found = found_in(tree, VIRTUAL_ENV=str(tree.root / "link"))
    assert found["link"] == ("session", "home", "kernel nlp")
    assert set(found) == {"usr", "link"}


def test_the_sessions_own_comes_first_and_is_marked(tree: Tree) -> None:
    base = tree.base("usr")
    active = tree.venv("home/zzz", base)
    tree.venv("home/aaa", base)
    found, _complete = find_environments(tree.context(None, None, VIRTUAL_ENV=str(active)))
    assert [(one.target.prefix, one.is_current) for one in found] == [
        (active, True),
        (tree.root / "home/aaa", False),
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"argv": ["/opt/conda/bin/python", "-m", "ipykernel_launcher"]}', Path("/opt/conda/bin/python")),
        ('{"argv": ["python", "-m", "ipykernel_launcher"]}', None),
        ('{"argv": ["/usr/bin/R", "--slave"]}', None),
        ('{"argv": []}', None),
        ("", None),
    ],
    ids=["python", "bare name", "another language", "nothing", "empty file"],
)
def test_a_kernel_names_an_interpreter_only_by_its_path(text: str, expected: Path | None) -> None:
    assert kernel_python(text) == expected


# ------------------------------------------------------------------------------------------------- verdicts
def verdicts(tree: Tree, **environ: str) -> dict[str, EnvironmentVerdict]:
    found = list_environments(tree.context(None, None, PATH=str(tree.root / "usr/bin"), **environ))
    return {Path(item.prefix).name: item for item in found.items if Path(item.prefix).name != "usr"}


def test_each_environment_has_its_own_torch(tree: Tree) -> None:
    base = tree.base("usr")
    cuda, cpu = tree.venv("home/cuda", base), tree.venv("home/cpu", base)
    tree.venv("home/none", base)
    tree.site(cuda).torch()
    tree.site(cpu).torch(CPU_VERSION_PY, dist="2.6.0+cpu")
    found = verdicts(tree)
    assert {name: (item.torch, item.torch_cuda, item.torch_status) for name, item in found.items()} == {
        "cuda": ("2.6.0+cu124", "12.4", "ok"),
        "cpu": ("2.6.0+cpu", "", "ok"),
        "none": ("", None, "absent"),
    }


def test_a_broken_environment_says_so_and_the_others_still_answer(tree: Tree) -> None:
    base, gone = tree.base("usr"), tree.base("gone")
    tree.venv("home/good", base)
    tree.venv("home/dead", gone)
    kernel(tree, "lost", f"{tree.root}/deleted/bin/python")
    gone.unlink()
    found = verdicts(tree)
    assert set(found) == {"good", "dead", "deleted"}
    for name in ("dead", "deleted"):
        assert found[name].level == "fail"
        assert "is not there" in str(found[name].title)
    assert found["good"].level != "fail"


def test_a_torch_that_cannot_import_is_the_environments_verdict(tree: Tree) -> None:
    base = tree.base("usr")
    site = tree.site(tree.venv("home/half", base))
    site.torch()
    (site.path / "torch/lib/libc10.so").unlink()
    item = verdicts(tree)["half"]
    assert item.level == "fail"
    assert item.title is not None
    assert "libc10.so" in str(item.title)


def test_what_the_machine_has_anyway_is_no_environments_verdict(tree: Tree) -> None:
    base = tree.base("usr")
    tree.venv("home/one", base)
    found = list_environments(tree.context())
    assert found.machine_findings >= 1  # a bare tree has no GPU at least
    assert [item.finding for item in found.items if item.finding == "no-gpu-visible"] == []


# ------------------------------------------------------------------------------------------------- showing
def test_lines_are_aligned_marked_and_safe() -> None:
    items = (
        EnvironmentVerdict(prefix="/root/venv", executable="/root/venv/bin/python", version="3.11.7", kind="venv",
                           is_current=True, torch="2.6.0", torch_cuda=""),
        EnvironmentVerdict(prefix="/opt/\x1b[2Jconda", executable="/x", kind="conda", found_by=("kernel nlp",),
                           torch_status="failed", level="fail", title=t("it is broken"), others=2),
    )  # fmt: skip
    first, second = environment_lines(EnvironmentList(items=items), colour=False)
    assert first.startswith("* /root/venv")
    assert "torch 2.6.0 CPU" in first
    assert "\x1b" not in second
    assert "torch ?" in second
    assert "FAIL  it is broken (and 2 more)" in second
    assert first.index("torch") == second.index("torch")


def test_no_environment_at_all_is_a_sentence() -> None:
    assert environment_lines(EnvironmentList(), colour=False) == ["no Python environment was found"]


def test_the_command_prints_json_that_names_the_judged_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["env", "list", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert [item["executable"] for item in printed["items"] if item.get("is_current")] != []
    assert all(item["prefix"] for item in printed["items"])


def test_what_path_offers_second_is_not_held_against_this_sessions_pip(tree: Tree) -> None:
    first, second = tree.base("usr"), tree.base("opt/other")
    context = tree.context(None, None, PATH=f"{first.parent}:{second.parent}")
    found, _ = find_environments(context)
    assert {one.target.chosen_by for one in found if not one.is_current} == {""}
