"""An exchange that broke off in our words: what gloo, NCCL and torch's store say, and which machine did not answer."""

from __future__ import annotations

import pytest

from runner.exchange import Broken, ExchangeBroken, in_our_words, read_broken
from runner.rank_env import RankPlace

GLOO = "[/pytorch/third_party/gloo/gloo/transport/tcp/"
WORDS: dict[str, tuple[str, Broken | None]] = {
    "gloo, nobody answered": (
        GLOO + "unbound_buffer.cc:81] Timed out waiting 20000ms for recv operation to complete", Broken(kind="timed-out")),
    "gloo, the other end closed": (
        GLOO + "pair.cc:535] Connection closed by peer [10.0.0.2]:24569", Broken(kind="closed", peer="10.0.0.2")),
    "gloo, over IPv6": (
        GLOO + "pair.cc:535] Connection closed by peer [fd00::2]:24569", Broken(kind="closed", peer="fd00::2")),
    "gloo, the kernel gave up": (
        GLOO + "pair.cc:457] writev [10.0.0.2]:24569: Connection timed out", Broken(kind="timed-out", peer="10.0.0.2")),
    "gloo, reset": (
        GLOO + "pair.cc:416] read [10.0.0.2]:1: Connection reset by peer", Broken(kind="closed", peer="10.0.0.2")),
    "NCCL's watchdog": (
        "[Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=4, OpType=ALLREDUCE, Timeout(ms)=10000) ran for 10073 "
        "milliseconds before timing out.", Broken(kind="timed-out")),
    "NCCL, a process ended": (
        "NCCL error in: x.cpp, remote process exited or there was a network error\nncclRemoteError: A call failed possibly due to a "
        "network error or a remote process exiting prematurely.", Broken(kind="closed")),
    "the store, a key never came": (
        "wait timeout after 10000ms, keys: /default_pg/0//cpu//0/rank_1", Broken(kind="timed-out")),
    "the store, nobody there": (
        "The client socket has timed out after 60000ms while trying to connect to (gpu01, 29500).",
        Broken(kind="timed-out", peer="gpu01")),
    "the store, gone": (
        "failed to recv, got 0 bytes. Connection was likely closed. Did the remote server shutdown or crash?", Broken(kind="closed")),
    "memory": ("CUDA out of memory. Tried to allocate 20.00 MiB", None),
    "a shape": ("mat1 and mat2 shapes cannot be multiplied (2x3 and 4x5)", None),
    "a web page that timed out": ("HTTPSConnectionPool(host='x', port=443): Read timed out.", None),
}  # fmt: skip


@pytest.mark.parametrize(("words", "wanted"), WORDS.values(), ids=WORDS.keys())
def test_the_librarys_words_are_read(words: str, wanted: Broken | None) -> None:
    assert read_broken(words) == wanted


HOSTS = ["gpu01 (10.0.0.1)", "gpu01 (10.0.0.1)", "gpu02 (10.0.0.2)", "gpu03 (10.0.0.3)"]
SENTENCES: dict[str, tuple[str, list[str], list[str]]] = {
    "the machine that is named": (WORDS["gloo, the other end closed"][0], HOSTS, ["rank 0", "gpu02 (10.0.0.2)", "--resume"]),
    "all others where none is": (
        WORDS["gloo, nobody answered"][0], HOSTS, ["waited 20 s for gpu02 (10.0.0.2), gpu03 (10.0.0.3)", "--resume"]),
    "one machine": (WORDS["gloo, nobody answered"][0], HOSTS[:2], ["another process of this machine"]),
    "before they met": (WORDS["the store, nobody there"][0], [], ["did not find the others within 20 s", "gpu01"]),
}  # fmt: skip


@pytest.mark.parametrize(("words", "hosts", "said"), SENTENCES.values(), ids=SENTENCES.keys())
def test_the_sentence_names_who_did_not_answer(words: str, hosts: list[str], said: list[str]) -> None:
    with pytest.raises(ExchangeBroken) as broken, in_our_words(RankPlace(rank=0, size=4), hosts, 20.0):
        raise RuntimeError(words)
    assert all(part in str(broken.value) for part in said), str(broken.value)
    assert "gpu03" not in str(broken.value) or "gpu03" in "".join(said)


def test_another_error_stays_what_it_is() -> None:
    with pytest.raises(RuntimeError, match="shapes"), in_our_words(RankPlace(rank=0, size=2), HOSTS, 20.0):
        raise RuntimeError(WORDS["a shape"][0])
    with pytest.raises(RuntimeError, match="gloo"), in_our_words(RankPlace(), [], 20.0):
        raise RuntimeError(WORDS["gloo, nobody answered"][0])
