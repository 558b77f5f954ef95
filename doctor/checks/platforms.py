"""Checks on what a rental platform does differently: lost variables, its proxy, its folders. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from doctor.checks import check, evidence
from doctor.model import Container, Environment, Finding, Host, Platform, Reading, Workload, t

_WANTED = (
    "HF_",
    "WANDB_",
    "RUNPOD_",
    "AutoDL",
    "NCCL_",
    "CUDA_",
    "NVIDIA_",
    "HUGGING_FACE_",
    "VAST_",
    "TORCH_",
    "OMP_",
)


@check("pod-variables-missing-over-ssh")
def pod_variables_reach_this_session(
    container: Container, environment: Environment, host: Reading[Host]
) -> Iterator[Finding]:
    """Are variables that the container was started with missing in this session?"""
    if container.first_process_variables is None or not environment.complete:
        return
    here = set(environment.variables) | set(environment.names)
    missing = sorted(
        name for name in container.first_process_variables if name.startswith(_WANTED) and name not in here
    )
    if missing:
        yield Finding(
            id="pod-variables-missing-over-ssh",
            level="note",
            subject=", ".join(missing[:3]),
            title=t(
                "{count} {count:variable|variables} that this container was started with {count:is|are} not set in this session: {names}",
                count=len(missing),
                names=", ".join(missing[:6]),
            ),
            evidence=evidence(container__first_process_variables=", ".join(missing[:6])),
            advice=t(
                "Take one over without showing its value: export {name}=\"$(tr '\\0' '\\n' < /proc/1/environ | sed -n 's/^{name}=//p')\"",
                name=missing[0],
            ),
        )


@check("platform-proxy-on", "platform-proxy-there")
def the_platform_proxy_is_meant(environment: Environment, platform: Platform) -> Iterator[Finding]:
    """Is AutoDL's academic proxy on during what it slows, or unused where it would help?"""
    if platform.name != "autodl":
        return
    proxy = next(
        (
            name
            for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY")
            if environment.get(name) or name in environment.names
        ),
        None,
    )
    if proxy:
        yield Finding(
            id="platform-proxy-on",
            level="note",
            subject=proxy,
            title=t(
                "{name} is set (AutoDL's network_turbo): GitHub and Hugging Face get faster, pip mirrors and domestic sites slower",
                name=proxy,
            ),
            evidence=evidence(platform__name=platform.name),
            advice=t("After the download: unset http_proxy https_proxy"),
        )
    elif platform.network_turbo and environment.complete and not environment.get("HF_ENDPOINT"):
        yield Finding(
            id="platform-proxy-there",
            level="note",
            subject="/etc/network_turbo",
            title=t("downloads from GitHub and Hugging Face can go through AutoDL's academic proxy"),
            evidence=evidence(platform__network_turbo=True),
            advice=t(
                "source /etc/network_turbo before the download (unset http_proxy https_proxy after it), or export HF_ENDPOINT=https://hf-mirror.com"
            ),
        )


@check("proxy-catches-localhost")
def the_proxy_leaves_localhost_alone(environment: Environment) -> Iterator[Finding]:
    """Would the proxy also catch what processes on this machine say to each other?"""
    proxy = environment.get("http_proxy") or environment.get("HTTP_PROXY")
    exempt = f"{environment.get('no_proxy') or ''},{environment.get('NO_PROXY') or ''}"
    if proxy and environment.complete and not any(name in exempt for name in ("localhost", "127.0.0.1", "*")):
        yield Finding(
            id="proxy-catches-localhost",
            level="note",
            subject="no_proxy",
            title=t(
                "http_proxy is set and no_proxy does not name localhost: TensorBoard, Jupyter and local servers are asked through the proxy"
            ),
            evidence=evidence(environment__variables__no_proxy=environment.get("no_proxy")),
            advice=t("export no_proxy=localhost,127.0.0.1"),
        )


@check("tensorboard-folder-elsewhere")
def tensorboard_finds_the_logs(platform: Platform, workload: Workload) -> Iterator[Finding]:
    """Do the logs go where AutoDL's TensorBoard button reads?"""
    folder = workload.training_args.get("logging_dir")
    if platform.name == "autodl" and isinstance(folder, str) and not folder.startswith("/root/tf-logs"):
        yield Finding(
            id="tensorboard-folder-elsewhere",
            level="note",
            subject=folder,
            title=t(
                "AutoDL's TensorBoard button reads /root/tf-logs, this run writes its logs to {folder}",
                folder=folder,
            ),
            evidence=evidence(platform__name=platform.name),
            advice=t("ln -s {folder} /root/tf-logs/", folder=folder),
        )
