"""Names of other machines: a proxy's and a master's in no snapshot, a private server's in none that is shared."""

from __future__ import annotations

import pytest

from doctor.machine import encode_snapshot
from doctor.model import (  # fmt: skip
    CondaPackage,
    Content,
    Distribution,
    Environment,
    Facts,
    IndexLine,
    Packages,
    Process,
    Processes,
    Provenance,
    RunSettings,
    Snapshot,
    ok,
)
from doctor.redact import redact
from doctor.redact_hosts import is_public, of_options, of_variable, without_private_hosts


@pytest.mark.parametrize(
    ("name", "value", "kept"),
    [
        ("https_proxy", "http://proxy.corp:3128", "http://proxy:3128"),
        ("HTTP_PROXY", "me:pw@proxy.corp:3128", "proxy:3128"),
        ("ALL_PROXY", "socks5h://10.0.0.8:1080/", "socks5h://proxy:1080/"),
        ("http_proxy", "http://[2001:db8::8]:3128", "http://proxy:3128"),
        ("http_proxy", "http://127.0.0.1:7890", "http://127.0.0.1:7890"),
        ("http_proxy", "", ""),
        ("no_proxy", "localhost,127.0.0.1,.corp.example, nas01,*", "localhost,127.0.0.1,host,*"),
        ("MASTER_ADDR", "gpu-node-17", "host"),
        ("MASTER_ADDR", "127.0.0.1", "127.0.0.1"),
        ("HF_HOME", "http://proxy.corp", "http://proxy.corp"),
    ],
)
def test_a_variable_does_not_name_another_machine(name: str, value: str, kept: str) -> None:
    assert of_variable(name, value) == kept
    assert of_variable(name, kept) == kept


@pytest.mark.parametrize(
    ("line", "kept"),
    [
        ("pip install --proxy http://proxy.corp:3128 x", "pip install --proxy http://proxy:3128 x"),
        ("git -c http.proxy=http://proxy.corp:1 clone", "git -c http.proxy=http://proxy:1 clone"),
        ('{"proxy": "http://proxy.corp:1"}', '{"proxy": "http://proxy:1"}'),
        ("--proxy http://localhost:1", "--proxy http://localhost:1"),
        ("python train.py --proxy-loss mse", "python train.py --proxy-loss mse"),
    ],
)
def test_a_command_line_does_not_name_a_proxy(line: str, kept: str) -> None:
    assert of_options(line) == kept


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("https://pypi.corp.example.net/simple", "https://private.example/simple"),
        ("git+ssh://git@git.corp/o/r.git@abc", "git+ssh://git@private.example/o/r.git@abc"),
        ("git@git.corp:team/r.git", "git@private.example:team/r.git"),
        ("https://a.github.com.evil.net/x", "https://private.example/x"),
        ("https://notgithub.com/x", "https://private.example/x"),
        ("https://10.1.2.3:8080/x", "https://private.example:8080/x"),
        ("https://github.com/o/r and https://raw.githubusercontent.com/o", "https://github.com/o/r and https://raw.githubusercontent.com/o"),
        ("https://download.pytorch.org/whl/cu124", "https://download.pytorch.org/whl/cu124"),
        ("file:///opt/x", "file:///opt/x"),
    ],
)  # fmt: skip
def test_an_address_names_only_servers_that_everyone_knows(text: str, kept: str) -> None:
    assert without_private_hosts(text) == kept
    assert without_private_hosts(kept) == kept


def test_pypis_own_hosts_are_known() -> None:
    assert (
        is_public("py" + "pi.org")
        and is_public("files.python" + "hosted.org")
        and not is_public("py" + "pi.org.evil.net")
    )


def test_a_private_server_is_nowhere_in_a_shared_file_and_stays_in_ones_own() -> None:
    host = "artifacts.secret-corp.net"
    url = f"https://{host}/simple/x-1-py3-none-any.whl"
    provenance = Provenance(
        contents=(Content(name="x", version="1", url=url, file_url=url, index=url),), conda=(CondaPackage(name="c", channel=url, url=url),),
        indexes=(IndexLine(option="index-url", url=url, source="PIP_INDEX_URL"),), run=RunSettings(environment={"HF_ENDPOINT": f"https://{host}"}, profile={"data.train": url}),
    )  # fmt: skip
    snapshot = Snapshot(
        label=url,
        facts=Facts(
            provenance=ok(provenance),
            packages=ok(Packages(items=(Distribution(name="x", version="1", direct_url=url, requires_dist=(f"y @ {url}",)),))),
            environment=ok(Environment(variables={"PIP_INDEX_URL": url, "PIP_EXTRA_INDEX_URL": f"{url} {url}", "HF_ENDPOINT": url})),
            processes=ok(Processes(items=(Process(pid=1, command=f"pip install -i {url} x"),))),
        ),
    )  # fmt: skip
    assert encode_snapshot(redact(snapshot)).decode().count(host) >= 10
    assert "secret-corp" not in encode_snapshot(redact(snapshot, share=True)).decode()
    assert redact(redact(snapshot, share=True), share=True) == redact(snapshot, share=True)
