"""``train.compile``: kept where it pays and answers as the model does, given up with a sentence wherever it does not."""

from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

import runner.compiling
from runner.compile_trial import GivenUp, at_most, cache_trouble, missing_tool, why_of
from runner.compiling import earns_back
from runner.rundir import RunDir
from runner.signals import EXIT_SAVED, StopRequest
from tests.runner.tiny import events, final_hash, last_losses, make_run, train


def notes(run: RunDir) -> list[str]:
    return [str(event.data["text"]["msgid"]) for event in events(run, "note")]


class Compiled(torch.nn.Module):
    """Stands for a compiled model: the model itself, slower or with other answers."""

    def __init__(self, model: Any, sleeps: float = 0.0, adds: float = 0.0, anew: bool = False) -> None:
        super().__init__()
        self._orig_mod, self._sleeps, self._adds, self._anew = model, sleeps, adds, anew

    def forward(self, **inputs: Any) -> Any:
        time.sleep(self._sleeps)
        torch._dynamo.utils.counters["stats"]["unique_graphs"] += self._anew
        answer = self._orig_mod(**inputs)
        answer.logits = answer.logits + self._adds
        return answer


@pytest.fixture
def long_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run of seconds, taken for one that is long enough, on a machine with a compiler."""
    monkeypatch.setattr(runner.compiling, "LEAST_RUN_S", 0.0)
    monkeypatch.setattr(runner.compiling, "missing", lambda _: None)


def compiles_to(monkeypatch: pytest.MonkeyPatch, **how: Any) -> list[bool]:
    asked: list[bool] = []

    def compile_(model: Any, dynamic: bool) -> Any:
        asked.append(dynamic)
        return Compiled(model, **how)

    monkeypatch.setattr(torch, "compile", compile_)
    return asked


@pytest.mark.parametrize(
    ("ratio", "compile_s", "expected_s", "pays"),
    [
        (0.7, 100.0, 3600.0, True),
        (0.7, 100.0, 300.0, False),
        (0.97, 10.0, 36000.0, False),
        (1.2, 10.0, 36000.0, False),
    ],
    ids=["long run", "too short to earn it back", "no gain worth the risk", "slower"],
)
def test_compiling_is_kept_only_where_it_earns_its_time_back(
    ratio: float, compile_s: float, expected_s: float, pays: bool
) -> None:
    assert earns_back(ratio, compile_s, expected_s) is pays


def test_a_trial_ends_when_its_time_is_up_wherever_it_is() -> None:
    begun = time.monotonic()
    with pytest.raises(GivenUp, match="after 0 s"), at_most(0.2, lambda: False):
        time.sleep(30)
    assert time.monotonic() - begun < 20


def test_a_trial_ends_when_the_run_is_asked_to_stop() -> None:
    with pytest.raises(GivenUp, match="asked to stop"), at_most(0.2, lambda: True):
        time.sleep(30)


def test_our_own_reason_is_found_under_what_a_library_made_of_it() -> None:
    try:
        try:
            with at_most(0.1, lambda: False):
                time.sleep(30)
        except GivenUp as error:
            raise RuntimeError("backend failed") from error
    except RuntimeError as error:
        assert "compile: given up after" in why_of(error).msgid


@pytest.mark.parametrize(
    ("device", "present", "missing"),
    [
        ("cpu", ["g++"], ""),
        ("cpu", ["gcc"], "C++ compiler"),
        ("cpu", [], "C++ compiler"),
        ("cuda", ["triton", "gcc"], ""),
        ("cuda", ["gcc"], "Triton"),
        ("cuda", ["triton"], "C compiler"),
    ],
)
def test_what_compiling_lacks_is_named_before_it_is_tried(
    device: str, present: list[str], missing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("CC", "CXX"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("runner.compile_trial.shutil.which", lambda name: name if name in present else None)
    monkeypatch.setattr(
        "runner.compile_trial.importlib.util.find_spec", lambda name: name if name in present else None
    )
    found = missing_tool(device)
    assert (found is None) is (missing == "") and missing in str(found or "")


def test_a_folder_for_compiled_code_that_takes_none_is_named_before_compiling(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "not" / "yet"))
    assert cache_trouble() is None
    monkeypatch.setattr("runner.compile_trial.shutil.disk_usage", lambda _: SimpleNamespace(free=3 << 20))
    assert "has 3 MB free" in str(cache_trouble())
    monkeypatch.setattr("runner.compile_trial.os.access", lambda *_: False)
    assert "cannot be written" in str(cache_trouble())


# ------------------------------------------------------------------------------------------------ whole runs
@pytest.mark.train
def test_compile_auto_in_a_short_run_compiles_nothing_says_so_and_trains_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner.compiling, "missing", lambda _: None)
    plain = make_run(tmp_path, ["train.epochs=1"], "plain")
    auto = make_run(tmp_path, ["train.epochs=1", "train.compile=auto"], "auto")
    assert train(plain) == train(auto) == 0
    assert last_losses(plain) == last_losses(auto)
    assert any("would not earn it back" in note for note in notes(auto))
    assert b'"compiled":false' in (auto.path / "compile.json").read_bytes()


@pytest.mark.train
@pytest.mark.parametrize("asked", ["auto", "true"])
@pytest.mark.parametrize(
    ("how", "word"),
    [
        ({"adds": 1.0}, "answers differently"),
        ({"sleeps": 60.0}, "given up after {seconds} s"),
    ],
    ids=["other answers", "no end"],
)
def test_what_compiles_to_no_use_is_given_up_and_trains_as_if_nothing_had_been(
    how: dict[str, float],
    word: str,
    asked: str,
    tmp_path: Path,
    long_run: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plain = make_run(tmp_path, ["train.epochs=1"], "plain")
    assert train(plain) == 0
    compiles_to(monkeypatch, **how)
    monkeypatch.setattr(runner.compiling, "MOST_S", 1.0 if "sleeps" in how else 120.0)
    run = make_run(tmp_path, ["train.epochs=1", f"train.compile={asked}"], "tried")
    assert train(run) == 0
    assert any(word in note for note in notes(run))
    assert final_hash(run) == final_hash(plain)


@pytest.mark.train
@pytest.mark.parametrize(
    ("asked", "compiled", "words"),
    [("auto", b"false", "given up, other lengths are compiled anew"), ("true", b"true", "again and again")],
)
def test_a_model_that_is_compiled_anew_for_each_length_is_given_up_or_where_it_was_asked_for_warned_of(
    asked: str, compiled: bytes, words: str, tmp_path: Path, long_run: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiles_to(monkeypatch, anew=True)
    run = make_run(tmp_path, ["train.epochs=1", f"train.compile={asked}"])
    assert train(run) == 0
    assert any(words in note for note in notes(run))
    assert b'"compiled":' + compiled in (run.path / "compile.json").read_bytes()


@pytest.mark.train
def test_a_stop_in_the_trial_decides_nothing_for_who_goes_on(
    tmp_path: Path, long_run: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop = StopRequest()

    def stopped(model: Any, dynamic: bool) -> Any:
        stop.signal_name = "SIGTERM"
        return Compiled(model, sleeps=60.0)

    monkeypatch.setattr(torch, "compile", stopped)
    run = make_run(tmp_path, ["train.epochs=1", "train.compile=auto"])
    assert train(run, stop=stop) == EXIT_SAVED
    assert any("asked to stop" in note for note in notes(run))
    assert not (run.path / "compile.json").exists()
    asked = compiles_to(monkeypatch)
    monkeypatch.setattr(runner.compiling, "earns_back", lambda *_: True)
    assert train(run, resume=True) == 0
    assert asked == [True] and b'"compiled":true' in (run.path / "compile.json").read_bytes()


@pytest.mark.train
@pytest.mark.parametrize("asked", ["auto", "true"])
def test_a_compiler_that_fails_is_given_up_and_the_run_goes_on(
    asked: str, tmp_path: Path, long_run: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any, **__: Any) -> Any:
        raise RuntimeError("InductorError: no C++ compiler")

    monkeypatch.setattr(torch, "compile", broken)
    run = make_run(tmp_path, ["train.epochs=1", f"train.compile={asked}"])
    assert train(run) == 0
    assert any("given up ({why})" in note for note in notes(run))


@pytest.mark.train
def test_compile_true_is_kept_though_it_is_no_faster_and_saves_names_without_a_prefix(
    tmp_path: Path, long_run: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = compiles_to(monkeypatch)
    run = make_run(tmp_path, ["train.epochs=1", "train.compile=true"])
    assert train(run) == 0
    assert asked == [True]
    assert any("on, as asked for" in note for note in notes(run))
    assert b"_orig_mod" not in (run.final / "model.safetensors").read_bytes()


@pytest.mark.train
def test_a_run_that_was_compiled_goes_on_compiled(
    tmp_path: Path, long_run: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = compiles_to(monkeypatch)
    run = make_run(tmp_path, ["train.epochs=1", "train.compile=auto"])
    (run.path / "compile.json").write_text('{"compiled": true, "why": {"msgid": "kept"}}')
    assert train(run) == 0
    assert asked == [True]


@pytest.mark.train
@pytest.mark.parametrize(
    "content", ['{"compiled": true, "why": {"msgid": "kept"}}', "{"], ids=["no compiler here", "cut short"]
)
def test_a_run_that_cannot_go_on_as_it_was_compiled_says_so_and_goes_on(
    content: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from runner.text import t

    monkeypatch.setattr(runner.compiling, "missing", lambda _: t("compile: nothing here compiles"))
    run = make_run(tmp_path, ["train.epochs=1", "train.compile=auto"])
    (run.path / "compile.json").write_text(content)
    assert train(run) == 0
    words = ("rounds otherwise",) if "true" in content else ("cannot be read",)
    assert all(any(word in note for note in notes(run)) for word in words)
