"""``doctor watch --json``: every line is of the shape that ``doctor help --schema watch`` prints, and no key is left out of it."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from doctor.render.schema import json_schema
from doctor.render.watch_shape import DESCRIPTIONS
from tests.commands_run import doctor
from tests.tui.recorded import ONE_4090, RunBuilder, whole_run


@pytest.fixture(scope="module")
def schema() -> dict[str, Any]:
    printed = json.loads(doctor("help", "--schema", "watch").stdout)
    assert printed == json.loads(json.dumps(json_schema("watch")))
    return dict(printed)


def line_of(*arguments: str) -> dict[str, Any]:
    done = doctor("watch", "--json", *arguments)
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout.splitlines()[-1]))


def test_a_whole_run_fits_the_schema_and_the_schema_names_every_key(
    tmp_path: Path, schema: dict[str, Any]
) -> None:
    run = whole_run(tmp_path / "done").gpu(**ONE_4090)
    line = line_of(str(run.run.path))
    jsonschema.validate(line, schema)
    properties = schema["$defs"]["WatchLine"]["properties"]
    assert set(line) <= set(properties)
    assert set(DESCRIPTIONS) <= set(properties)
    assert (line["run"], line["status"], line["step"]) == ("done", "completed", 100)


def test_a_run_whose_loss_is_no_number_fits_too(tmp_path: Path, schema: dict[str, Any]) -> None:
    run = RunBuilder(tmp_path / "nan").start().steps(3, loss=lambda step: float("nan"))
    from doctor.watching import RunWatcher
    from runner.events import finite_or_name

    watcher = RunWatcher(run.run, clock=run.clock)
    watcher.poll()
    line = json.loads(json.dumps(finite_or_name(watcher.as_dict())))
    jsonschema.validate(line, schema)
    assert line["last"]["loss"] == "nan"


def test_a_process_of_somebody_else_s_fits_too(schema: dict[str, Any]) -> None:
    from doctor.process_watch import ProcessWatcher

    watcher = ProcessWatcher(os.getpid())
    try:
        watcher.poll()
        line = json.loads(json.dumps(watcher.as_dict(), default=str))
    finally:
        watcher.close()
    jsonschema.validate(line, schema)
    assert line["pid"] == os.getpid()


def test_what_is_no_line_is_refused(schema: dict[str, Any]) -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"status": "dancing"}, schema)
