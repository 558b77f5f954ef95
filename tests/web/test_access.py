"""The gate by itself: one use, one machine, one origin; and the ssh command that leads there."""

from __future__ import annotations

import pytest

from doctor.web_access import Access, is_local_name, is_own_origin, new_secret
from doctor.web_tunnel import tunnel


def test_a_link_works_once_and_its_session_from_then_on() -> None:
    access = Access()
    token = access.token
    assert token is not None
    session = access.redeem(token)
    assert session is not None and session != token
    assert access.knows(session)
    assert access.redeem(token) is None, "a link works once"
    assert access.token is None


@pytest.mark.parametrize("word", ["", "x", "é", "\udcff", "a" * 10_000])
def test_another_word_opens_nothing_and_spends_nothing(word: str) -> None:
    access = Access()
    assert access.redeem(word) is None
    assert not access.knows(word)
    assert access.redeem(access.token or "") is not None


def test_a_part_of_the_token_is_not_the_token() -> None:
    access = Access(mint=iter(["abcdef", "session"]).__next__)
    assert access.redeem("abcde") is None
    assert access.redeem("abcdefg") is None
    assert access.redeem("abcdef") == "session"


def test_secrets_are_long_and_never_the_same() -> None:
    secrets = {new_secret() for _ in range(100)}
    assert len(secrets) == 100
    assert all(len(secret) >= 43 for secret in secrets)


@pytest.mark.parametrize(
    ("host", "is_ours"),
    [("127.0.0.1:8321", True), ("localhost:9", True), ("localhost", True), ("evil.example:8321", False), ("127.0.0.1.evil.example", False),
     ("", False), ("127.0.0.1:80;script-src *", False), ("10.0.0.1:8321", False)],
)  # fmt: skip
def test_only_who_asks_for_this_machine_is_answered(host: str, is_ours: bool) -> None:
    assert is_local_name(host) is is_ours


@pytest.mark.parametrize(
    ("origin", "is_ours"),
    [("http://127.0.0.1:8321", True), ("http://127.0.0.1:8888", False), ("https://127.0.0.1:8321", False), ("null", False), ("", False)],
)  # fmt: skip
def test_a_script_of_another_page_is_another_origin(origin: str, is_ours: bool) -> None:
    assert is_own_origin(origin, "127.0.0.1:8321") is is_ours


TUNNELS = {
    "a public server": ({"SSH_CONNECTION": "8.8.4.4 51514 8.8.8.8 2222"}, "ann@8.8.8.8 -p 2222", ""),
    "a public server by its new address": ({"SSH_CONNECTION": "2a00::1 51514 2a00:1450:4001:82f::200e 22"}, "ann@2a00:1450:4001:82f::200e -p 22", ""),
    "a lab's server": ({"SSH_CONNECTION": "10.0.0.5 51514 10.0.0.9 22"}, "ann@10.0.0.9 -p 22", "private"),
    "a container behind a gateway": ({"SSH_CONNECTION": "172.17.0.1 40000 172.17.0.5 22"}, "ann@HOST -p PORT", "gaps"),
    "RunPod names its own door": (
        {"SSH_CONNECTION": "1.2.3.4 5 172.17.0.5 22", "RUNPOD_PUBLIC_IP": "8.8.8.8", "RUNPOD_TCP_PORT_22": "40022"}, "ann@8.8.8.8 -p 40022", "",
    ),
    "vast.ai names its own door": ({"PUBLIC_IPADDR": "8.8.4.4", "VAST_TCP_PORT_22": "41022"}, "ann@8.8.4.4 -p 41022", ""),
    "no ssh at all": ({}, "ann@HOST -p PORT", "gaps"),
    "words that are no connection": ({"SSH_CONNECTION": "a b c; rm -rf /"}, "ann@HOST -p PORT", "gaps"),
    "an address that is none": ({"RUNPOD_PUBLIC_IP": "$(reboot)", "RUNPOD_TCP_PORT_22": "22"}, "ann@HOST -p PORT", "gaps"),
}  # fmt: skip


@pytest.mark.parametrize(("environ", "end", "doubt"), TUNNELS.values(), ids=TUNNELS)
def test_the_tunnel_is_as_exact_as_the_session_knows(environ: dict[str, str], end: str, doubt: str) -> None:
    way = tunnel(8321, "ann", environ)
    assert way.command == f"ssh -N -L 8321:127.0.0.1:8321 {end}"
    assert (way.has_gaps, way.is_private) == (doubt == "gaps", doubt == "private")
