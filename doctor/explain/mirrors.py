"""Patterns of package sources: an index, a mirror, a channel or GitHub that refuses, is gone or is not reached."""

from __future__ import annotations

from doctor.explain.match import Pattern
from doctor.model import t

_WITHOUT_PROXY = t(
    "`env | grep -i proxy`: a proxy that is off is taken out with `unset http_proxy https_proxy all_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY`; `python -m pip config list` shows the index, `-i URL` takes another one."
)

PATTERNS: tuple[Pattern, ...] = (
    # ERROR: HTTP error 403 while getting https://pypi.tuna.tsinghua.edu.cn/packages/5f/4d/transformers-4.45.2-py3-none-any.whl
    Pattern(
        id="index-refuses",
        regex=r"HTTP error (?P<status>[45]\d\d) while getting (?P<url>\S+)",
        cleared_by=r"Successfully installed",
        meaning=t("The index answers {status} for a file: mirrors shut out addresses that have loaded much, and the newest files reach them late.", status="?"),
        advice=t("Take another mirror for this call: `python -m pip install -i https://mirrors.aliyun.com/pypi/simple/ NAME`; for good `python -m pip config set global.index-url URL`."),
        hides=("no-matching-distribution",),
    ),
    # WARNING: Retrying (Retry(total=0, ...)) after connection broken by 'SSLError(SSLEOFError(8, ...))': /simple/peft/ ERROR: Could not find a version that satisfies the requirement peft (from versions: none)
    Pattern(
        id="index-unreached",
        regex=r"after connection broken by '(?P<error>\w+)[^\n]*(?:\n[^\n]*){0,4}?ERROR: (?:Could not find a version|No matching distribution)",
        cleared_by=r"Successfully installed",
        meaning=t("pip did not reach its index ({error}) and so knows no version of anything: the package itself is not the trouble. A proxy that is off, no network, or no name resolution.", error="?"),
        advice=_WITHOUT_PROXY,
        confirms=("platform-proxy-on",),
        hides=("no-matching-distribution", "index-timeout", "proxy-fails", "tls-cut"),
    ),
    # Could not fetch URL https://.../simple/pip/: There was a problem confirming the ssl certificate: HTTPSConnectionPool(...) (Caused by SSLError(SSLEOFError(8, 'EOF occurred in violation of protocol (_ssl.c:997)'))) - skipping
    Pattern(
        id="tls-cut",
        regex=r"There was a problem confirming the ssl certificate: [^\n]*EOF occurred|^(?:requests|urllib3|httpx|httpcore|aiohttp)[\w.]*: [^\n]*EOF occurred in violation of protocol|[Ee]rror:? [^\n]*\[SSL: WRONG_VERSION_NUMBER\]",
        meaning=t("The encrypted connection was cut before it stood: nearly always a proxy that is off or speaks something else, sometimes a firewall."),
        advice=_WITHOUT_PROXY,
        confirms=("platform-proxy-on",),
    ),
    # UnavailableInvalidChannel: HTTP 404 NOT FOUND for channel anaconda/pkgs/free <https://mirrors.tuna.tsinghua.edu.cn/anaconda/pkgs/free>
    Pattern(
        id="conda-channel-gone",
        regex=r"UnavailableInvalidChannel: [^\n]*?channel (?P<channel>[^\s<]+)|The channel is not accessible or is invalid",
        meaning=t("A channel that conda is told to use does not exist there (any more): {channel}.", channel="?"),
        advice=t("Take its line out of ~/.condarc (`conda config --show-sources` names the file; `conda config --remove channels URL`), then `conda clean -i`."),
    ),
    # fatal: unable to access 'https://github.com/hiyouga/LLaMA-Factory.git/': GnuTLS recv error (-110): The TLS connection was non-properly terminated.   |   error: RPC failed; curl 56 GnuTLS recv error (-54)
    Pattern(
        id="git-unreached",
        regex=r"fatal: unable to access '(?P<url>[^'\n]+)': (?!The requested URL returned error: 40)|error: RPC failed; (?:curl|HTTP) |fetch-pack: unexpected disconnect",
        cleared_by=r"(?:Receiving objects|接收对象中|Resolving deltas): 100%",
        meaning=t("git did not get through to {url}: GitHub is reached from mainland China only now and then, and long transfers break.", url="its server"),
        advice=t("AutoDL: `source /etc/network_turbo` before it, `unset http_proxy https_proxy` after it. Elsewhere `git clone --depth 1`, once more, or copy the repository over from your own computer."),
        confirms=("platform-proxy-there",),
    ),
    # Guessing wheel URL:  https://github.com/Dao-AILab/flash-attention/releases/download/v2.4.2/flash_attn-2.4.2+cu122torch2.1cxx11abiFALSE-cp310-cp310-linux_x86_64.whl error: <urlopen error [Errno 110] Connection timed out>
    Pattern(
        id="wheel-on-github",
        regex=r"Guessing wheel URL: +(?P<url>\S+)[^\n]*(?:\n[^\n]*){0,30}?(?:urlopen error|Remote end closed connection|Connection (?:timed out|refused|reset))",
        meaning=t("The ready wheel lies on GitHub, and GitHub cannot be reached from here."),
        advice=t("AutoDL: `source /etc/network_turbo` and again; else download {url} on your own computer, copy it over and `python -m pip install FILE.whl`. Or do without: attn_implementation='sdpa'.", url="?"),
        confirms=("platform-proxy-there",),
        hides=("wheel-build", "connection-cut"),
    ),
)  # fmt: skip
