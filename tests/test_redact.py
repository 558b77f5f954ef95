"""What leaves the machine: no planted secret survives, and the redacted machine is judged as the machine itself."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from doctor.judge import judge
from doctor.machine import decode_snapshot, encode_snapshot
from doctor.model import (
    CondaPackage,
    Content,
    DataFingerprint,
    Distribution,
    Environment,
    Facts,
    GitState,
    Gpu,
    GpuProcess,
    GpuProcesses,
    Gpus,
    Host,
    Incident,
    IndexLine,
    KernelLog,
    Mount,
    Packages,
    Place,
    Process,
    Processes,
    Project,
    Provenance,
    Python,
    Reading,
    Requirement,
    RunSettings,
    Snapshot,
    Storage,
    Workload,
    ok,
    t,
)
from doctor.redact import is_secret_name, redact, without_secrets
from doctor.redact_identity import Veil
from doctor.redact_scan import secrets_in_patch, secrets_in_text
from doctor.snapshots.formats import FORMATS, FormatError, convert
from tests.planted import KINDS, line_of, secret_of

# Every one of these stands somewhere in the machine below and must be nowhere in the redacted file.
PLANTED = {
    "a Hugging Face token": "hf_QxYzAbCdEfGhIjKlMnOpQrStUv",
    "a GitHub token": "ghp_0aB1cD2eF3gH4iJ5kL6mN7oP8qR9",
    "an AWS id": "AKIAIOSFODNN7EXAMPLE",
    "a signature in a query": "f3c1d9a8b7e6signature",
    "a password": "correct-horse-battery",
    "a W&B key": "0123456789abcdef0123456789abcdef01234567",
    "a path token": "a1b2C3d4E5f6g7h8i9J0k1",
    "a conda token": "co-1a2b3c4d-token",
    "a JWT": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abcDEF123",
    "an option's value": "s3cr3t-option",
    "a user name": "wangxiaoming",
    "another user's name": "lisi_lab",
    "a host name": "gpu-node-17",
    "a storage server": "nas01.corp.example",
    "a public address": "203.0.113.77",
    "a hardware address": "3c:ec:ef:12:34:56",
    "a mail address": "xm.wang@corp.example",
    "a card's number": "GPU-3f1d2c5e-8a7b-4c6d-9e0f-123456789abc",
    "a variable that is not allowed": "value-of-an-unknown-variable",
}
P = PLANTED


def machine() -> Snapshot:
    """A lab server full of what must not leave it."""
    user, home = P["a user name"], f"/home/{P['a user name']}"
    return Snapshot(
        label=f"lab {P['a host name']}",
        facts=Facts(
            host=ok(
                Host(kernel="5.15.0-116", unread={"cpu_model": t("{path} is not there", path=f"{home}/x")})
            ),
            environment=ok(
                Environment(
                    variables={
                        "HOME": home,
                        "HF_HOME": f"{home}/hf",
                        "CUDA_VISIBLE_DEVICES": P["a card's number"],
                        "https_proxy": f"http://{user}:{P['a password']}@proxy:3128",
                        "MASTER_ADDR": P["a public address"],
                        "PIP_INDEX_URL": f"https://pypi.example/{P['a path token']}/simple",
                        "LD_PRELOAD": f"/opt/{P['a JWT']}",
                        "COMPANY_SETTING": P["a variable that is not allowed"],
                        "HF_TOKEN": P["a Hugging Face token"],
                    }
                )
            ),
            packages=ok(
                Packages(
                    items=(
                        Distribution(
                            name="torch",
                            version="2.6.0",
                            location=f"{home}/venv/lib/python3.11/site-packages",
                            direct_url=f"https://s3.example/torch.whl?X-Amz-Signature={P['a signature in a query']}#sha256={'a' * 64}",
                            requires_dist=("nvidia-cublas-cu12==12.4.5.8",),
                        ),
                        Distribution(
                            name="mine",
                            version="1",
                            direct_url=f"git+https://{P['a GitHub token']}@github.com/o/r.git@main",
                        ),
                        Distribution(
                            name="chan",
                            version="1",
                            direct_url=f"https://conda.example/t/{P['a conda token']}/main",
                        ),
                    )
                )
            ),
            project=ok(
                Project(
                    cwd=f"{home}/run",
                    requirements=(
                        Requirement(
                            line=f"lib @ https://{user}:{P['a password']}@h/x.whl", file="requirements.txt"
                        ),
                        Requirement(line="nvidia-cublas-cu12==12.4.5.8", file="requirements.txt"),
                    ),
                )
            ),
            processes=ok(
                Processes(
                    items=(
                        Process(
                            pid=1,
                            command=f"python train.py --hub_token {P['an option' + chr(39) + 's value']} --lr 3e-4",
                        ),
                        Process(
                            pid=2,
                            command=f"WANDB_API_KEY={P['a W&B key']} python -m x --data /home/{P[OTHER]}/d",
                        ),
                        Process(pid=3, command=f"ssh {user}@{P['a host name']}.corp"),
                    )
                )
            ),
            gpus=ok(Gpus(items=(Gpu(index=0, name="NVIDIA A100", uuid=P["a card's number"]),))),
            gpu_processes=ok(GpuProcesses(items=(GpuProcess(pid=9, command=f"aws --key {P['an AWS id']}"),))),
            kernel_log=ok(
                KernelLog(
                    lines=(
                        "NVRM: Xid (PCI:0000:65:00): 79, pid=1234, GPU has fallen off the bus.",
                        f"{P['a host name']} kernel: eth0 {P['a hardware address']} from {P['a public address']}",
                    )
                )
            ),
            storage=ok(
                Storage(
                    mounts=(
                        Mount(path="/", fstype="ext4", source="/dev/nvme0n1p2"),
                        Mount(path="/home", fstype="nfs4", source=f"{P['a storage server']}:/export/home"),
                    ),
                    places=(
                        Place(name="home", path=home, mount="/home"),
                        Place(name="torchinductor_cache", path=f"/tmp/torchinductor_{user}", mount="/"),
                    ),
                )
            ),
            incident=ok(
                Incident(
                    log_lines=(
                        f"huggingface_hub: Authorization: Bearer {P['a Hugging Face token']}",
                        f"mail to {P['a mail address']}",
                        "KeyError: 'loss'",
                        "undefined symbol: _ZN3c105ErrorC2ENS_14SourceLocationENSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE",
                        "Using pad_token = eos_token",
                    )
                )
            ),
            workload=ok(Workload(training_args={"hub_token": P["an option's value"], "max_steps": 10})),
            python=Reading(
                status="failed",
                why=t("{path} could not be read: {error}", path=f"{home}/bin/python", error="EACCES"),
            ),
        ),
    )


OTHER = "another user's name"


@pytest.fixture(scope="module")
def redacted() -> Snapshot:
    return redact(machine(), users=(P[OTHER],), hosts=(P["a host name"],))


@pytest.fixture(scope="module")
def encoded(redacted: Snapshot) -> str:
    return encode_snapshot(redacted).decode("utf-8")


@pytest.mark.parametrize("what", PLANTED, ids=str)
def test_a_planted_secret_is_there_before_and_gone_after(what: str, encoded: str) -> None:
    assert PLANTED[what] in encode_snapshot(machine()).decode("utf-8")
    assert PLANTED[what].lower() not in encoded.lower()


def test_a_redacted_snapshot_says_so_and_is_still_a_snapshot(redacted: Snapshot, encoded: str) -> None:
    assert redacted.redacted is True
    assert decode_snapshot(encoded.encode("utf-8"), "x") == redacted


@pytest.mark.parametrize(
    "kept",
    [
        "GPU has fallen off the bus", "PCI:0000:65:00", "12.4.5.8", "KeyError: 'loss'", "pad_token = eos_token",
        "_ZN3c105ErrorC2ENS_14SourceLocationENSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE",
        "github.com/o/r.git@main", f"#sha256={'a' * 64}", "--lr 3e-4", "/home/user/venv/lib/python3.11/site-packages",
        "server:/export/home", "http://proxy:3128", "{path} is not there",
    ],
)  # fmt: skip
def test_what_a_check_needs_is_kept(kept: str, encoded: str) -> None:
    assert kept in encoded


def test_names_of_variables_stay_their_values_go(redacted: Snapshot) -> None:
    environment = redacted.facts.environment.value
    assert environment is not None
    assert {"COMPANY_SETTING", "HF_TOKEN"} <= set(environment.names)
    assert "HF_TOKEN" not in environment.variables and environment.get("HF_HOME") == "/home/user/hf"


def test_a_card_stays_the_one_that_a_variable_names(redacted: Snapshot) -> None:
    gpus, environment = redacted.facts.gpus.value, redacted.facts.environment.value
    assert gpus is not None and environment is not None
    assert environment.get("CUDA_VISIBLE_DEVICES") == gpus.items[0].uuid


@pytest.mark.parametrize(
    ("named", "index"),
    [("GPU-3f1d2c5e", 0), ("GPU-aaaa2c5e", None)],
    ids=["a unique beginning", "a card that is not there"],
)
def test_a_shortened_card_name(named: str, index: int | None) -> None:
    cards = ("GPU-3f1d2c5e-8a7b-4c6d-9e0f-123456789abc", "GPU-4f1d2c5e-8a7b-4c6d-9e0f-123456789abc")
    veil = Veil(cards=cards)
    matches = [number for number, card in enumerate(cards) if veil.text(card) == veil.text(named)]
    assert matches == ([] if index is None else [index])


def test_the_redacted_machine_is_judged_as_the_machine_itself(redacted: Snapshot) -> None:
    before, after = judge(machine()), judge(redacted)
    assert [(item.id, item.level) for item in before.findings()] == [
        (item.id, item.level) for item in after.findings()
    ]


def test_root_and_shared_accounts_are_no_names() -> None:
    facts = Facts(
        storage=ok(
            Storage(places=(Place(name="home", path="/root"), Place(name="x", path="/root/autodl-tmp")))
        )
    )
    assert redact(Snapshot(facts=facts)).facts == facts


def test_a_user_called_like_a_package_does_not_rename_the_package() -> None:
    facts = Facts(
        storage=ok(Storage(places=(Place(name="home", path="/home/torch"),))),
        packages=ok(Packages(items=(Distribution(name="torch", version="2.6.0"),))),
        incident=ok(Incident(log_lines=("import torch",))),
    )
    found = redact(Snapshot(facts=facts)).facts
    assert found.packages == facts.packages and found.incident == facts.incident
    assert found.storage.value is not None and found.storage.value.places[0].path == "/home/user"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("nas01:/export/a", "server:/export/a"),
        ("10.0.0.9@tcp:10.0.0.8@tcp:/lustre", "server:/lustre"),
        ("//filer.corp/share", "//server/share"),
        ("alice@box:/data", "server:/data"),
        ("/dev/nvme0n1p2", "/dev/nvme0n1p2"),
        ("https://dav.example/x", "https://dav.example/x"),
        ("overlay", "overlay"),
    ],
)
def test_the_server_of_a_network_mount_is_not_named(source: str, expected: str) -> None:
    facts = Facts(storage=ok(Storage(mounts=(Mount(path="/data", source=source),))))
    found = redact(Snapshot(facts=facts)).facts.storage.value
    assert found is not None and found.mounts[0].source == expected


@pytest.mark.parametrize("account", ["ok", "venv", "failed", "ext4"])
def test_an_account_called_like_one_of_our_words_changes_none_of_them(account: str) -> None:
    facts = Facts(
        storage=ok(
            Storage(
                mounts=(Mount(path="/", fstype="ext4"),),
                places=(Place(name="home", path=f"/home/{account}"),),
            )
        ),
        python=ok(Python(kind="venv", prefix=f"/home/{account}/venv")),
    )
    found = redact(Snapshot(facts=facts)).facts
    assert found.storage.status == "ok" and found.storage.value is not None and found.python.value is not None
    assert (
        found.storage.value.mounts == (Mount(path="/", fstype="ext4"),) and found.python.value.kind == "venv"
    )


# ---------------------------------------------------------------------------------------- pieces
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("https://user:pw@host/simple", "https://host/simple"),
        ("https://token@host/simple", "https://host/simple"),
        ("https://user:p/w@host/simple", "https://host/simple"),
        ("https://${USER}:${PASS}@host/simple", "https://${USER}:${PASS}@host/simple"),
        ("git+ssh://git@github.com/o/r.git", "git+ssh://git@github.com/o/r.git"),
        ("https://h/x?token=1#egg=x&subdirectory=y", "https://h/x#egg=x&subdirectory=y"),
        ("https://h/x#access_token=abc", "https://h/x"),
        ("https://pypi.example/a1b2C3d4E5f6g7h8i9J0k/simple", "https://pypi.example/***/simple"),
        ("https://download.pytorch.org/whl/cu124", "https://download.pytorch.org/whl/cu124"),
        ("--wandb.key=abc --lr=1", "--wandb.key=*** --lr=1"),
        ('{"api_key": "abc"}', '{"api_key": "***"}'),
        ("password: hunter2", "password: ***"),
        ("PGPASSWORD=abc psql", "PGPASSWORD=*** psql"),
        ('password="correct horse" x', 'password="***" x'),
        ("error: WANDB_API_KEY=abc x", "error: WANDB_API_KEY=*** x"),
        ("--name x --password 'a b' --lr 1", "--name x --password '***' --lr 1"),
        ("token='abc", "token='***'"),
        ("sorted(rows, key=lambda row: row[0])", "sorted(rows, key=lambda row: row[0])"),
        ("expandable_segments:True", "expandable_segments:True"),
        ("a" * 40, "***"),
        ("https://github.com/o/r@" + "a" * 40, "https://github.com/o/r@" + "a" * 40),
    ],
)
def test_secrets_in_a_string(text: str, expected: str) -> None:
    assert without_secrets(text) == expected


@pytest.mark.parametrize(
    "name",
    [
        "HF_TOKEN",
        "wandbApiKey",
        "AWS_ACCESS_KEY_ID",
        "MYSQL_PWD",
        "PGPASSWORD",
        "SENTRY_DSN",
        "--hub-token",
        "JUPYTER_TOKEN",
        "NGC_API_KEY",
        "SLACK_WEBHOOK",
    ],
)
def test_names_that_hold_a_secret(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize(
    "name",
    [
        "TOKENIZERS_PARALLELISM",
        "KEYBOARD",
        "NCCL_IB_PKEY",
        "pad_token",
        "max_token_id",
        "num_tokens",
        "KeyError",
        "monkey",
        "OMP_NUM_THREADS",
    ],
)
def test_names_that_do_not(name: str) -> None:
    assert not is_secret_name(name)


# ---------------------------------------------------------------------------------------- thirty-three kinds, everywhere
def planted(kind: str) -> Snapshot:
    """A machine with one credential in every place where a snapshot keeps words of its machine."""
    line, secret = line_of(kind), secret_of(kind)
    patch = "diff --git a/t.py b/t.py\n--- a/t.py\n+++ b/t.py\n@@ -1 +1,2 @@\n x\n" + "".join(
        f"+{one}\n" for one in line.splitlines()
    )
    tree = GitState(commit="a" * 40, branch=line, remote=line, dirty=True, patch=patch, untracked=(line,))
    address = f"https://me:{secret}@h.example/o/r.git?token={secret}"
    run = RunSettings(
        profile={"model.hub_token": secret, "data.train": line}, settings={"api_key": secret}, environment={"HF_TOKEN": secret, "NCCL_DEBUG": line}
    )  # fmt: skip
    provenance = Provenance(
        contents=(Content(name="lib", version="1", url=address, editable=True, git=tree), Content(name="v", version="1", vcs="git", url=address, commit="b" * 40)),
        conda=(CondaPackage(name="c", version="1", build="0", channel=address, url=address),), indexes=(IndexLine(option="index-url", url=address, source=line),),
        git=tree, data=(DataFingerprint(path=f"/data/{line}", sha256="sha256:" + "c" * 64),), run=run,
    )  # fmt: skip
    return Snapshot(
        label=line,
        facts=Facts(
            provenance=ok(provenance),
            python=ok(Python(version="3.11.7")),
            packages=ok(Packages(items=(Distribution(name="lib", version="1", direct_url=address), Distribution(name="v", version="1", direct_url=address)))),
            environment=ok(Environment(variables={"SOME_SETTING": line, "NCCL_SOCKET_IFNAME": line, "HF_TOKEN": secret})),
            project=ok(Project(cwd="/w", requirements=(Requirement(line=line, file="r.txt"), Requirement(line=f"x @ {address}")))),
            processes=ok(Processes(items=(Process(pid=1, command=line),))),
            kernel_log=ok(KernelLog(lines=(line,))),
            incident=ok(Incident(log_lines=(line,))),
            workload=ok(Workload(training_args={"hub_token": secret})),
        ),
    )  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_a_credential_of_this_kind_is_in_no_place_of_the_file(kind: str) -> None:
    before = encode_snapshot(planted(kind)).decode("utf-8")
    assert before.count(secret_of(kind)) >= 15
    assert secret_of(kind) not in encode_snapshot(redact(planted(kind))).decode("utf-8")


@pytest.mark.parametrize("kind", KINDS)
def test_a_credential_of_this_kind_is_in_no_export(kind: str) -> None:
    clean, texts = redact(planted(kind)), []
    for form in FORMATS:
        try:
            rendered = convert(clean, form)
            texts += [rendered.text, *map(str, rendered.lost)]
        except FormatError as error:
            texts += [str(error.text), *map(str, error.reasons)]
    assert len(texts) > len(FORMATS)
    assert not [text for text in texts if secret_of(kind) in text]


@pytest.mark.parametrize("kind", KINDS)
def test_a_patch_with_a_credential_of_this_kind_stays_at_home_and_says_where_it_is(kind: str) -> None:
    git = redact(planted(kind)).facts.provenance.value
    assert git is not None and git.git is not None and git.git.patch is None
    assert "t.py:2 looks like a credential" in str(git.git.patch_why)


def test_a_patch_without_one_stays_word_for_word() -> None:
    patch = "diff --git a/t.py b/t.py\n@@ -1 +1 @@\n-key = row['key']\n+token = tokenizer.pad_token  # /home/wangxiaoming\r\n"
    tree = GitState(commit="a" * 40, dirty=True, patch=patch)
    found = redact(Snapshot(facts=Facts(provenance=ok(Provenance(git=tree)))), users=("wangxiaoming",))
    assert found.facts.provenance.value is not None and found.facts.provenance.value.git == tree


def test_digests_and_commits_stay_and_a_bare_key_elsewhere_does_not() -> None:
    digest, commit = "sha256:" + "d" * 64, "0123456789abcdef0123456789abcdef01234567"
    contents = (Content(name="lib", version="1", record_sha256=digest, commit=commit),)
    provenance = Provenance(contents=contents, git=GitState(commit=commit, branch=commit))
    found = redact(Snapshot(facts=Facts(provenance=ok(provenance)))).facts.provenance.value
    assert found is not None and found.contents == contents and found.git is not None
    assert (found.git.commit, found.git.branch) == (commit, "***")


def test_shared_with_strangers_it_does_not_say_whose_code_it_is() -> None:
    tree = GitState(root="/w/secret-project", commit="a" * 40, remote="git@h:team/secret-project", branch="secret-project", dirty=True, patch="+secret-project", untracked=("secret-project.py",))  # fmt: skip
    data = (DataFingerprint(path="/data/secret-project/rows.csv", sha256="sha256:" + "c" * 64),)
    found = redact(Snapshot(facts=Facts(provenance=ok(Provenance(git=tree, data=data)))), share=True)
    assert (
        "secret-project" not in encode_snapshot(found).decode()
        and "rows.csv" in encode_snapshot(found).decode()
    )


@pytest.mark.parametrize(
    "line",
    [
        "key = lambda row: row[0]", "api_key = os.environ['API_KEY']", "token: str = tokenizer.pad_token", 'HUB_TOKEN_KEY = "DCP_SHARDING_INFO"',
        "password = getpass()", 'revision="607a30d783dfa663caf39e06633721c8d4cfcd7e"', "index 95f342b8056af9a261b4b2d96ed4ba30d91b27a5",
        "# SPDX-License-Identifier: Apache-2.0", 'api_key="your-api-key-123"', "git clone https://github.com/o/r.git", "https://h/x?page=2",
        "tokens_per_step = 4096", "num_tokens=123456789012", 'url = "https://{user}:{password}@h"', "max_length=512, pad_token_id=50256",
    ],
)  # fmt: skip
def test_ordinary_code_is_no_credential(line: str) -> None:
    assert secrets_in_text(line, "t.py") == []


@pytest.mark.parametrize(
    "name", [".env", "keys/server.pem", "id_rsa", ".netrc", "a/service-account-prod.json", "kaggle.json"]
)
def test_a_private_file_in_a_patch_is_a_hit_by_its_name(name: str) -> None:
    patch = f"diff --git a/{name} b/{name}\nnew file mode 100644\nGIT binary patch\nliteral 3\nKcmZQz\n"
    assert [hit.file for hit in secrets_in_patch(patch)] == [name]


def test_lines_are_counted_as_in_the_file() -> None:
    patch = "diff --git a/t.py b/t.py\n--- a/t.py\n+++ b/t.py\n@@ -10,2 +20,3 @@ def f():\n a\n-b\n+c\n+t = 'hf_QxYzAbCdEfGhIjKlMnOpQrStUv'\n"
    assert [(hit.file, hit.line, hit.kind) for hit in secrets_in_patch(patch)] == [("t.py", 22, "shape")]


words = st.text(st.characters(min_codepoint=33, max_codepoint=126, exclude_characters="\"'"), max_size=30)


@given(st.lists(words, max_size=6).map(" ".join))
def test_cleaning_twice_changes_nothing_more(text: str) -> None:
    once = without_secrets(text)
    assert without_secrets(once) == once


secret_text = st.text("abcdefghijkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789", min_size=20, max_size=40)


@given(
    secret_text,
    st.sampled_from(
        [
            "hf_{}", "ghp_{}", "https://u:{}@h/x", "https://{}@h/x", "https://h/x?sig={}", "curl --token {} h",
            "WANDB_API_KEY={} python x", "api_key: {}", "Authorization: Bearer {}9", "--password={}", "sk-{}",
        ]
    ),
    words,
)  # fmt: skip
def test_a_secret_of_any_spelling_does_not_survive(secret: str, shape: str, around: str) -> None:
    assume(secret not in around)
    assert secret not in without_secrets(f"{around} {shape.format(secret)} {around}")


@given(st.recursive(st.text(), lambda inner: st.lists(inner, max_size=3), max_leaves=5), st.text(max_size=8))
def test_no_string_breaks_the_redaction(lines: object, user: str) -> None:
    flat = (str(lines), user)
    facts = Facts(
        incident=ok(Incident(log_lines=flat)),
        storage=ok(Storage(places=(Place(name="home", path=f"/home/{user}"),))),
    )
    assert redact(Snapshot(facts=facts)).redacted is True
