"""A model on its way out of this machine: what goes, what it tells, who is asked, and what the hub says."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from doctor.model_share import files_to_share
from doctor.model_source import Source
from doctor.model_upload import paths_in, secrets_in
from tests.commands_run import doctor
from tests.deploy.hub_server import TOKEN, Hub, running_hub

pytest.importorskip("huggingface_hub", reason="huggingface_hub is not installed")

MODEL = ("README.md", "config.json", "model.safetensors", "tokenizer.json")


@pytest.fixture
def model(tmp_path: Path) -> Path:
    folder = tmp_path / "model"
    folder.mkdir()
    for name in MODEL:
        (folder / name).write_text("{}")
    return folder


@pytest.fixture
def hub() -> Iterator[Hub]:
    with running_hub() as running:
        yield running


def send(model: Path, hub: Hub, *arguments: str, **variables: str) -> tuple[int, str, str]:
    environment = {"HF_ENDPOINT": hub.address, "HF_TOKEN": TOKEN, **variables}
    done = doctor(
        "export", str(model), "--to", "me/model", "--python", sys.executable, *arguments, cwd=model.parent, environment=environment
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr


def test_what_belongs_to_the_training_or_the_machine_stays_here(model: Path) -> None:
    for name in ("optimizer.pt", "rng_state_0.pth", "training_args.bin", ".env", "checkpoint-5/model.safetensors", ".git/config", "global_step5/x.pt"):  # fmt: skip
        (model / name).parent.mkdir(exist_ok=True)
        (model / name).write_text("x")
    assert tuple(files_to_share(Source(model))) == MODEL


def test_tokens_and_folders_of_this_machine_are_found(model: Path) -> None:
    (model / "README.md").write_text(
        f"login with {TOKEN}\nsee https://huggingface.co/home/x and the/root/of it\n"
    )
    (model / "config.json").write_text(json.dumps({"base": "/root/autodl-tmp/base"}))
    files = files_to_share(Source(model))
    assert secrets_in(files) == ["README.md"]
    assert paths_in(files) == {"config.json": "/root/autodl-tmp/base"}


def test_a_new_repository_is_said_to_be_private_and_where(model: Path, hub: Hub) -> None:
    code, out, err = send(model, hub)
    assert (code, "add --yes" in err) == (2, True)
    assert (
        f"{hub.address}/me/model does not exist yet; it is made for me, to be seen by its members alone"
        in out
    )
    assert hub.repositories == {}


def test_a_public_one_that_exists_is_said_to_be_one_with_what_it_loses(model: Path, hub: Hub) -> None:
    hub.repositories["me/model"] = False
    hub.files |= {"README.md": b"old", "notes.txt": b"kept"}
    code, out, err = send(model, hub, "--yes")
    assert code == 0, err
    assert "exists and is seen by everybody" in out and "1 file of it is replaced: README.md" in out
    assert hub.files["README.md"] == b"{}" and hub.files["notes.txt"] == b"kept"


def test_what_is_broken_off_leaves_the_repository_and_goes_the_second_time(model: Path, hub: Hub) -> None:
    hub.commits_to_break_off = 1
    code, _, err = send(model, hub, "--yes")
    assert code == 1 and len(err.splitlines()) == 1 and "did not take it" in err, err
    assert hub.files == {}
    assert send(model, hub, "--yes")[0] == 0
    assert set(hub.files) == set(MODEL)


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        pytest.param({"HF_TOKEN": ""}, "no login for the hub: set HF_TOKEN, or run hf auth login", id="no token"),
        pytest.param({"HF_HUB_OFFLINE": "1"}, "HF_HUB_OFFLINE=1 forbids asking the hub", id="offline"),
        pytest.param({"HF_ENDPOINT": "http://127.0.0.1:9"}, "Mirrors take no uploads: HF_ENDPOINT=https://huggingface.co", id="a mirror"),
        pytest.param({"HF_TOKEN": "hf_wrong"}, "did not take it", id="a wrong token"),
    ],
)  # fmt: skip
def test_what_stands_in_the_way_is_said_before_anybody_is_asked(
    model: Path, hub: Hub, variables: dict[str, str], words: str
) -> None:
    code, _, err = send(model, hub, **variables)
    assert code == 1 and words in err, err
    assert len(err.splitlines()) == 1 and "hf_wrong" not in err


def test_a_file_with_a_token_is_not_sent(model: Path, hub: Hub) -> None:
    (model / "README.md").write_text(TOKEN)
    code, out, err = send(model, hub, "--yes")
    assert code == 1 and "README.md holds a hub token: nothing is sent" in err
    assert hub.repositories == {} and TOKEN not in out + err
