"""Cures that are a variable: set, put right, or unset in the managed file that every new shell sources. Pure."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping

from doctor.checks.cpu import allowed_cpus
from doctor.checks.versions import below
from doctor.fixes import fix
from doctor.fixes.shell import set_variables
from doctor.model import AskUrl, Finding, Fix, Snapshot, Text, t


def variables_fix(
    finding: Finding, snapshot: Snapshot, values: Mapping[str, str | None], risk: Text | None = None,
    only_when_asked: bool = False,
) -> Fix | Text:  # fmt: skip
    """Return the fix that gives each variable its value (None: unset)."""
    steps = set_variables(snapshot, values)
    if not steps:
        return t("the home folder is not known, so there is no file that a new shell reads")
    names = ", ".join(values)
    return Fix(
        id=finding.id,
        subject=finding.subject,
        title=t("set in every new shell: {names}", names=names)
        if any(value is not None for value in values.values())
        else t("unset in every new shell: {names}", names=names),
        steps=steps,
        touches=("environment",),
        risk=risk,
        only_when_asked=only_when_asked,
    )


def variable(snapshot: Snapshot, name: str) -> str | None:
    environment = snapshot.facts.environment.value
    return environment.get(name) if environment else None


@fix("thread-count-above-cpus", "cpu-quota-below-host-count")
def threads(finding: Finding, snapshot: Snapshot) -> Fix | Text:
    host, container = snapshot.facts.host.value, snapshot.facts.container.value
    allowed = allowed_cpus(host, container) if host else None
    if not allowed:
        return t("how many CPUs this process may use is not known")
    gpus = snapshot.facts.gpus.value
    count = str(max(1, allowed // max(1, len(gpus.items) if gpus else 1)))
    return variables_fix(
        finding, snapshot, {"OMP_NUM_THREADS": count, "MKL_NUM_THREADS": count},
        risk=t("{allowed} {allowed:CPU|CPUs} divided by the number of cards; a run that starts fewer processes can use more", allowed=allowed),
    )  # fmt: skip


@fix("allocator-setting-without-effect")
def allocator(finding: Finding, snapshot: Snapshot) -> Fix | Text:
    value = str(finding.advice.params["value"]) if finding.advice and "value" in finding.advice.params else ""
    if not value:
        return _only_advice(finding)
    # The old name works in every torch; the new one, where it is set, would still be read by torch 2.10 and later.
    values: dict[str, str | None] = {"PYTORCH_CUDA_ALLOC_CONF": value}
    if variable(snapshot, "PYTORCH_ALLOC_CONF") is not None:
        values["PYTORCH_ALLOC_CONF"] = None
    return variables_fix(finding, snapshot, values)


@fix("allocator-fragmentation")
def fragmentation(finding: Finding, snapshot: Snapshot) -> Fix | Text:
    """The check's advice knows when expandable segments would hurt (beside vLLM) or do not exist."""
    advice = finding.advice.msgid if finding.advice else ""
    if not advice.startswith("export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"):
        return _only_advice(finding)
    return variables_fix(finding, snapshot, {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"})


@fix("cache-variable-not-read")
def hub_cache(finding: Finding, snapshot: Snapshot) -> Fix | Text:
    folder = variable(snapshot, "TRANSFORMERS_CACHE")
    return variables_fix(finding, snapshot, {"HF_HUB_CACHE": folder}) if folder else _only_advice(finding)


@fix("xet-cache-on-small-disk")
def xet_cache(finding: Finding, snapshot: Snapshot) -> Fix | Text:
    moved = variable(snapshot, "HF_HUB_CACHE") or variable(snapshot, "HUGGINGFACE_HUB_CACHE")
    if not moved:
        return _only_advice(finding)
    return variables_fix(finding, snapshot, {"HF_XET_CACHE": posixpath.normpath(f"{moved}/../xet")})


@fix("cublas-workspace-unset")
def cublas_workspace(finding: Finding, snapshot: Snapshot) -> Fix | Text:
    return variables_fix(finding, snapshot, {"CUBLAS_WORKSPACE_CONFIG": ":4096:8"})


@fix("seeds-incomplete")
def hash_seed(finding: Finding, snapshot: Snapshot) -> Fix | Text:
    if finding.subject != "PYTHONHASHSEED":
        return t("the seeds are set in the script: transformers.set_seed(42); `doctor lint` shows where")
    return variables_fix(finding, snapshot, {"PYTHONHASHSEED": "0"})


@fix("user-site-shadows-env")
def no_user_site(finding: Finding, snapshot: Snapshot) -> Fix | Text:
    return variables_fix(
        finding, snapshot, {"PYTHONNOUSERSITE": "1"},
        risk=t("what you installed with `pip install --user` is not imported any more"),
    )  # fmt: skip


@fix("ld-library-path-shadows-bundled-cuda", "libstdcxx-too-old")
def library_path(finding: Finding, snapshot: Snapshot) -> Fix | Text:
    value = variable(snapshot, "LD_LIBRARY_PATH")
    if not value:
        return _only_advice(finding)
    folders = _named_folders(finding)
    rest = [part for part in value.split(":") if part and posixpath.normpath(part) not in folders]
    if rest == [part for part in value.split(":") if part]:
        return _only_advice(finding)
    return variables_fix(
        finding, snapshot, {"LD_LIBRARY_PATH": ":".join(rest) or None},
        risk=t("programs that need {folders} by this variable no longer find it; torch needs no system CUDA", folders=", ".join(sorted(folders))),
    )  # fmt: skip


def _named_folders(finding: Finding) -> set[str]:
    """Return the folders of the libraries that the finding shows, and the one its advice names."""
    shown = [row.value.split(" ")[0] for row in finding.evidence if row.fact.startswith("libraries.")]
    found = {posixpath.normpath(path.rpartition("/")[0]) for path in shown if path.startswith("/")}
    named = finding.advice.params.get("folder") if finding.advice else None
    return found | ({posixpath.normpath(str(named))} if named else set())


@fix("pythonpath-with-other-packages")
def python_path(finding: Finding, snapshot: Snapshot) -> Fix | Text:
    value = variable(snapshot, "PYTHONPATH") or ""
    python = snapshot.facts.python.value
    prefix = (python.prefix if python else None) or "\0"
    rest = [
        part
        for part in value.split(":")
        if part and (not part.rstrip("/").endswith(("site-packages", "dist-packages")) or part.startswith(f"{prefix}/"))
    ]  # fmt: skip
    return variables_fix(finding, snapshot, {"PYTHONPATH": ":".join(rest) or None})


@fix("debug-variable-left-on", "hf-transfer-missing", "nccl-interface-missing", "transport-switched-off")
def unset_one(finding: Finding, snapshot: Snapshot) -> Fix | Text:
    return variables_fix(finding, snapshot, {finding.subject: None})


@fix("hub-offline")
def online(finding: Finding, snapshot: Snapshot) -> Fix | Text:
    return variables_fix(
        finding, snapshot, {finding.subject: None}, only_when_asked=True,
        risk=t("where there is no network, offline is what lets the cache be used at once"),
    )  # fmt: skip


@fix("hub-endpoint-invalid")
def endpoint(finding: Finding, snapshot: Snapshot) -> Fix | Text:
    value = variable(snapshot, "HF_ENDPOINT")
    return variables_fix(finding, snapshot, {"HF_ENDPOINT": f"https://{value.rstrip('/')}"}) if value else _only_advice(finding)  # fmt: skip


@fix("mirror-with-xet")
def no_xet(finding: Finding, snapshot: Snapshot) -> Fix | Text:
    return variables_fix(finding, snapshot, {"HF_HUB_DISABLE_XET": "1"})


@fix("platform-proxy-there")
def mirror(finding: Finding, snapshot: Snapshot) -> Fix | Text:
    """The hub's mirror, asked first. The platform's own proxy is a matter of one download, not of every shell."""
    url = "https://hf-mirror.com"
    found = variables_fix(
        finding, snapshot, {"HF_ENDPOINT": url, "HF_HUB_DISABLE_XET": "1"}, only_when_asked=True,
        risk=t("downloads then go to a third party: log out of the hub first (a token would be sent there)"),
    )  # fmt: skip
    if isinstance(found, Text):
        return found
    return Fix(id=found.id, subject=found.subject, title=found.title, steps=(AskUrl(url=url), *found.steps), touches=found.touches, risk=found.risk, only_when_asked=True)  # fmt: skip


@fix("proxy-catches-localhost")
def no_proxy(finding: Finding, snapshot: Snapshot) -> Fix | Text:
    have = [variable(snapshot, name) for name in ("no_proxy", "NO_PROXY")]
    value = ",".join([*dict.fromkeys(filter(None, have)), "localhost", "127.0.0.1"])
    return variables_fix(finding, snapshot, {"no_proxy": value, "NO_PROXY": value})


@fix("tracker-variable-not-read")
def wandb_off(finding: Finding, snapshot: Snapshot) -> Fix | Text:
    return variables_fix(finding, snapshot, {"WANDB_MODE": "disabled"})


@fix("locale-default-encoding")
def utf8(finding: Finding, snapshot: Snapshot) -> Fix | Text:
    python = snapshot.facts.python.value
    if below(python.version if python else None, "3.7"):
        return variables_fix(finding, snapshot, {"LANG": "C.UTF-8", "PYTHONIOENCODING": "utf-8"})
    return variables_fix(finding, snapshot, {"PYTHONUTF8": "1"})


@fix("uid-without-passwd-entry")
def user_name(finding: Finding, snapshot: Snapshot) -> Fix | Text:
    host = snapshot.facts.host.value
    name = f"user{host.uid}" if host and host.uid is not None else "user"
    folder = f"/tmp/torchinductor_{name}"
    return variables_fix(finding, snapshot, {"USER": name, "LOGNAME": name, "TORCHINDUCTOR_CACHE_DIR": folder})  # fmt: skip


def _only_advice(finding: Finding) -> Text:
    return finding.advice or t("there is no step that mends this by itself")
