"""Patterns of the way out: indexes and mirrors that do not answer, proxies, certificates."""

from __future__ import annotations

from doctor.explain.match import Pattern
from doctor.model import t

PATTERNS: tuple[Pattern, ...] = (
    # pip._vendor.urllib3.exceptions.ReadTimeoutError: HTTPSConnectionPool(host='files...', port=443): Read timed out.
    Pattern(
        id="index-timeout",
        regex=r"ReadTimeoutError: HTTPSConnectionPool|HTTPSConnectionPool\(host=[^)\n]{0,200}\): Read timed out|ReadTimeoutError\(\"HTTPSConnectionPool|ConnectTimeoutError|Could not fetch URL \S+: connection error",
        meaning=t("A server did not answer in time: a slow line to another country, or a proxy that is off."),
        advice=t("A mirror near you (pip: -i URL; models: HF_ENDPOINT), a longer timeout, or the platform's accelerated proxy."),
        confirms=("platform-proxy-there", "platform-proxy-on"),
        cleared_by=r"silently ignoring the lookup|100%\|[█#]|Successfully (?:installed|downloaded)",
    ),
    # ssl.SSLCertVerificationError: [SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: unable to get local issuer certificate
    Pattern(
        id="certificate",
        regex=r"CERTIFICATE_VERIFY_FAILED|certificate verify failed",
        meaning=t("The server's certificate could not be verified: a clock that is wrong, missing CA certificates, or a proxy in between."),
        advice=t("`date`; `apt-get install -y ca-certificates`; behind a company's proxy point SSL_CERT_FILE at its CA. Do not switch verification off."),
        confirms=("clock-wrong", "platform-proxy-on"),
    ),
    # ValueError: Unknown scheme for proxy URL URL('socks://127.0.0.1:7890/')   |   Missing dependencies for SOCKS support.
    Pattern(
        id="socks-proxy",
        regex=r"Unknown scheme for proxy URL|Missing dependencies for SOCKS support|Using SOCKS proxy, but the 'socksio' package is not installed",
        meaning=t("A proxy variable names a SOCKS proxy that this library cannot use."),
        advice=t("`unset all_proxy ALL_PROXY`, or `python -m pip install 'httpx[socks]' 'requests[socks]'` and write socks5:// for socks://."),
    ),
    # ProxyError: Conda cannot proceed due to an error in your proxy configuration.   |   ProxyError('Cannot connect to proxy.', NewConnectionError(...))   |   ValueError: check_hostname requires server_hostname
    Pattern(
        id="proxy-fails",
        regex=r"Cannot connect to proxy|Unable to connect to proxy|error in your proxy configuration|check_hostname requires server_hostname|Tunnel connection failed: \d+",
        meaning=t("The way out goes through a proxy that is off, refuses, or is written in a form that this program does not take."),
        advice=t("`unset http_proxy https_proxy all_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY` and use a mirror; a proxy that must stay is written http://HOST:PORT, for https_proxy too."),
        confirms=("platform-proxy-on", "platform-proxy-there"),
        hides=("hub-unreachable",),
    ),
)  # fmt: skip
