"""A trouble that a later line takes back is not explained; without that line it is."""

from __future__ import annotations

import pytest

from doctor.explain.match import matches

FETCHED = "model-00002-of-00004.safetensors: 100%|██████████| 3.86G/3.86G [05:12<00:00, 12.4MB/s]\n"
INSTALLED = "Successfully installed peft-0.15.2\n"
STORIES = [
    ("index-refuses", "ERROR: HTTP error 403 while getting https://mirrors.aliyun.com/pypi/p/peft.whl\n", INSTALLED),
    (
        "index-unreached",
        "WARNING: Retrying (Retry(total=0)) after connection broken by 'SSLError(1)': /simple/peft/\n"
        "ERROR: Could not find a version that satisfies the requirement peft (from versions: none)\n",
        INSTALLED,
    ),
    ("index-timeout", "HTTPSConnectionPool(host='cas-bridge.xethub.hf.co', port=443): Read timed out.\n", FETCHED),
    ("hub-unreachable", "huggingface_hub.errors.LocalEntryNotFoundError: we cannot find the file\n", FETCHED),
    ("xet-unreached", '  File "/x/huggingface_hub/utils/_xet.py", line 190, in _fetch\n', FETCHED),
    ("connection-cut", "urllib.error.URLError: <urlopen error [Errno 104] Connection reset by peer>\n", FETCHED),
    (
        "git-unreached",
        "fatal: unable to access 'https://github.com/x/y.git/': GnuTLS recv error (-110)\n",
        "Receiving objects: 100% (120/120), 1.2 MiB | 800 KiB/s, done.\n",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "trouble", "end"), STORIES, ids=[row[0] for row in STORIES])
def test_what_went_on_is_not_complained_of(kind: str, trouble: str, end: str) -> None:
    assert kind in [item.id for item in matches(trouble)]
    assert kind not in [item.id for item in matches(trouble + end)]
    assert kind in [item.id for item in matches(end + trouble)]
