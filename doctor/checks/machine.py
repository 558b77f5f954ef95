"""Checks on the session itself: who it runs as, its encoding, its limits, how it will end. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from doctor.checks import check, evidence
from doctor.checks.versions import within
from doctor.model import Container, Environment, Finding, Host, Incident, Python, Reading, Workload, t

# KeyError: 'getpwuid(): uid not found: 1234'
_NO_USER = re.compile(r"getpwuid\(\): uid not found")


@check("uid-without-passwd-entry")
def the_user_has_a_name(
    host: Host, environment: Reading[Environment], incident: Reading[Incident], workload: Reading[Workload]
) -> Iterator[Finding]:
    """Has this user id an entry in /etc/passwd, or at least a name in the environment?"""
    if host.has_passwd_entry is not False:
        return
    variables = environment.value
    named = next(
        (
            name
            for name in ("LOGNAME", "USER", "LNAME", "USERNAME")
            if variables and (variables.get(name) or name in variables.names)
        ),
        None,
    )
    failed = any(_NO_USER.search(line) for line in (incident.value.log_lines if incident.value else ()))
    run = workload.value
    compiles = bool(run and ("torch-compile" in run.features or run.training_args.get("torch_compile")))
    failed = failed or (compiles and not (variables and variables.get("TORCHINDUCTOR_CACHE_DIR")))
    yield Finding(
        id="uid-without-passwd-entry",
        level="note" if named else "fail" if failed else "warn",
        subject=f"uid {host.uid}" if host.uid is not None else "",
        title=t(
            "this user id ({uid}) has no entry in /etc/passwd; {name} gives it a name for most programs",
            uid=host.uid if host.uid is not None else "?",
            name=named,
        )
        if named
        else t(
            "this user id ({uid}) has no entry in /etc/passwd and no USER variable: getpass.getuser(), which torch's compile cache asks, raises KeyError",
            uid=host.uid if host.uid is not None else "?",
        ),
        evidence=evidence(host__has_passwd_entry=False, host__uid=host.uid),
        advice=t(
            "export USER=me LOGNAME=me HOME=/tmp/me TORCHINDUCTOR_CACHE_DIR=/tmp/me/inductor (HOME and the folder must be writable)"
        ),
    )


_UTF8 = ("utf-8", "utf8", "cp65001")


def _of_the_locale(environment: Environment | None) -> str | None:
    """Return the encoding that a locale variable names (``zh_CN.GBK``); what a plain C means depends on the Python."""
    for name in ("LC_ALL", "LC_CTYPE", "LANG"):
        value = (environment.get(name) if environment else None) or ""
        if value:
            return value.partition(".")[2].partition("@")[0] or None
    return None


@check("locale-default-encoding")
def text_is_read_as_utf8(
    host: Host, python: Reading[Python], environment: Reading[Environment], workload: Reading[Workload]
) -> Iterator[Finding]:
    """Does open() without an encoding read UTF-8 here?"""
    encoding = host.locale_encoding or _of_the_locale(environment.value)
    version = python.value.version if python.value else None
    variables = environment.value
    if not encoding or encoding.lower() in _UTF8 or within(version, ">=3.15"):
        return
    if variables and variables.get("PYTHONUTF8") == "1":
        return
    run = workload.value
    named_everywhere = bool(run and run.source) and "locale-encoding" not in (run.features if run else ())
    yield Finding(
        id="locale-default-encoding",
        level="note" if named_everywhere else "warn",
        subject=encoding,
        title=t(
            "open() without encoding= reads and writes {encoding} here, not UTF-8: Chinese text fails or is garbled",
            encoding=encoding,
        ),
        evidence=evidence(
            host__locale_encoding=encoding,
            python__version=version,
            environment__variables__LANG=variables.get("LANG") if variables else None,
        ),
        advice=t(
            'export PYTHONUTF8=1 (Python 3.7 and newer) or export LANG=C.UTF-8 PYTHONIOENCODING=utf-8; in scripts: open(path, encoding="utf-8").'
        ),
        cause_of=(),
    )


@check("pip-as-root")
def pip_leaves_the_system_alone(
    host: Host, python: Python, container: Reading[Container]
) -> Iterator[Finding]:
    """Would pip write into the system's own Python as root?"""
    inside = container.value.inside if container.value else None
    if host.uid == 0 and python.kind == "system" and inside is False:
        yield Finding(
            id="pip-as-root",
            level="note",
            subject=python.executable or "python",
            title=t(
                "pip would install into the system's own Python ({python}) as root: the distribution's tools use it too",
                python=python.executable or "",
            ),
            evidence=evidence(host__uid=0, python__kind=python.kind, python__executable=python.executable),
            advice=t(
                "Make an environment: {python} -m venv ~/venv && source ~/venv/bin/activate",
                python=python.executable or "python3",
            ),
        )


@check("open-files-limit-low")
def files_can_be_opened(host: Host, workload: Reading[Workload]) -> Iterator[Finding]:
    """Is the limit of open files high enough for many loader workers?"""
    limit, workers = host.open_files_soft_limit, workload.value.num_workers if workload.value else None
    if limit is not None and 0 < limit < 1024 and (workers is None or workers > 0):
        yield Finding(
            id="open-files-limit-low",
            level="note",
            subject="ulimit -n",
            title=t(
                "a process may hold {limit} files open: loader workers that share tensors can meet 'Too many open files'",
                limit=limit,
            ),
            evidence=evidence(host__open_files_soft_limit=limit, workload__num_workers=workers),
            advice=t("ulimit -n 65535"),
        )


@check("session-ends-with-ssh")
def the_session_survives_the_connection(host: Host) -> Iterator[Finding]:
    """Would a foreground run end with the SSH connection?"""
    if host.interrupted_over_ssh and host.in_terminal_multiplexer is False:
        yield Finding(
            id="session-ends-with-ssh",
            level="note",
            subject="ssh",
            title=t(
                "this SSH session is not inside tmux or screen: what runs in the foreground ends with the connection"
            ),
            evidence=evidence(host__in_terminal_multiplexer=False),
            advice=t("tmux new -s train (or doctor run --detach, which does not need it)"),
        )


@check("clock-wrong")
def the_clock_is_right(host: Host) -> Iterator[Finding]:
    """Is the clock right enough for TLS certificates and tokens?"""
    if host.clock_skew_s is not None and abs(host.clock_skew_s) > 300:
        yield Finding(
            id="clock-wrong",
            level="warn",
            subject="date",
            title=t(
                "the clock is at least {days} days behind: downloads fail with certificate errors (not yet valid)",
                days=round(-host.clock_skew_s / 86400),
            )
            if host.clock_skew_s < -2 * 86400
            else t(
                "the clock is {minutes} {minutes:minute|minutes} off: downloads can fail with certificate errors",
                minutes=round(abs(host.clock_skew_s) / 60),
            ),
            evidence=evidence(host__clock_skew_s=host.clock_skew_s),
            advice=t("sudo hwclock -s (WSL's clock stands still while Windows sleeps)")
            if host.wsl
            else t(
                "On a machine of your own: timedatectl set-ntp true. In a container the host's clock counts: tell the provider."
            ),
        )
