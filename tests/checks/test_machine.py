"""The session: its user, its encoding, its limits, its end."""

from __future__ import annotations

from typing import Any

import pytest

from doctor.model import Container, Host, Incident, Python, Workload
from tests.checks.judged import said, variables

NAMELESS = Host(uid=1234, has_passwd_entry=False)


@pytest.mark.parametrize(
    ("machine", "level"),
    [
        pytest.param({"host": NAMELESS}, "warn", id="no entry, no name"),
        pytest.param(
            {"host": NAMELESS, "environment": variables(USER="me")}, "note", id="a name in the environment"
        ),
        pytest.param(
            {
                "host": NAMELESS,
                "incident": Incident(log_lines=("KeyError: 'getpwuid(): uid not found: 1234'",)),
            },
            "fail",
            id="a log that shows it",
        ),
        pytest.param({"host": Host(uid=0, has_passwd_entry=True)}, None, id="an entry"),
        pytest.param({"host": Host(uid=1234)}, None, id="nobody looked"),
    ],
)
def test_a_user_without_a_name(machine: dict[str, Any], level: str | None) -> None:
    assert said(**machine).get("uid-without-passwd-entry") == level


@pytest.mark.parametrize(
    ("encoding", "python", "environment", "level"),
    [
        pytest.param("ANSI_X3.4-1968", "3.10", {"LANG": "C"}, "warn", id="ASCII"),
        pytest.param("gbk", "3.11", {}, "warn", id="GBK on Windows"),
        pytest.param("gbk", "3.11", {"PYTHONUTF8": "1"}, None, id="UTF-8 mode"),
        pytest.param("gbk", "3.15.0", {}, None, id="UTF-8 is the default from 3.15"),
        pytest.param("UTF-8", "3.10", {}, None, id="UTF-8"),
        pytest.param(None, "3.10", {"LANG": "C"}, None, id="nobody looked"),
    ],
)
def test_the_default_encoding(
    encoding: str | None, python: str, environment: dict[str, str], level: str | None
) -> None:
    given = said(
        host=Host(locale_encoding=encoding, arch="x86_64"),
        python=Python(version=python),
        environment=variables(**environment),
    )
    assert given.get("locale-default-encoding") == level


def test_pip_as_root_matters_outside_of_a_container_only() -> None:
    root, system = Host(uid=0), Python(kind="system", executable="/usr/bin/python3")
    assert said(host=root, python=system, container=Container(inside=False)) == {"pip-as-root": "note"}
    assert said(host=root, python=system, container=Container(inside=True)) == {}
    assert said(host=root, python=Python(kind="venv"), container=Container(inside=False)) == {}
    assert said(host=Host(uid=1000), python=system, container=Container(inside=False)) == {}


@pytest.mark.parametrize(
    ("host", "finding", "level"),
    [
        pytest.param(Host(open_files_soft_limit=256), "open-files-limit-low", "note", id="256 open files"),
        pytest.param(Host(open_files_soft_limit=-1), "open-files-limit-low", None, id="no limit"),
        pytest.param(Host(open_files_soft_limit=1024), "open-files-limit-low", None, id="the usual limit"),
        pytest.param(
            Host(interrupted_over_ssh=True, in_terminal_multiplexer=False),
            "session-ends-with-ssh",
            "note",
            id="bare SSH",
        ),
        pytest.param(
            Host(interrupted_over_ssh=True, in_terminal_multiplexer=True),
            "session-ends-with-ssh",
            None,
            id="tmux",
        ),
        pytest.param(
            Host(interrupted_over_ssh=True), "session-ends-with-ssh", None, id="nobody looked for tmux"
        ),
        pytest.param(Host(clock_skew_s=4000.0), "clock-wrong", "warn", id="an hour off"),
        pytest.param(Host(clock_skew_s=2.0), "clock-wrong", None, id="two seconds off"),
    ],
)
def test_limits_of_the_session(host: Host, finding: str, level: str | None) -> None:
    assert said(host=host, workload=Workload(num_workers=8)).get(finding) == level
