"""An exchange between ranks that broke off, in our words: what gloo, NCCL and torch's store say then, and who did not answer.

Pure. The library's own words stay behind ours, in brackets and in the log.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Sequence
from typing import Literal

import msgspec

from runner.rank_env import RankPlace
from runner.text import Text, t

Kind = Literal["timed-out", "closed"]
"""Nobody answered in time; or the other end was closed, or reset."""

# [/pytorch/third_party/gloo/gloo/transport/tcp/unbound_buffer.cc:81] Timed out waiting 20000ms for recv operation to complete
# [/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:535] Connection closed by peer [10.0.0.2]:24569
# [/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:457] writev [10.0.0.2]:24569: Connection timed out
# [/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:169] Application timeout caused pair closure
# [../third_party/gloo/gloo/transport/tcp/connect..] Gloo connectFullMesh failed with [...] no error
# Watchdog caught collective operation timeout: WorkNCCL(SeqNum=4, OpType=ALLREDUCE, ..., Timeout(ms)=10000) ran for 10073 milliseconds
# NCCL error ... ncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely.
# wait timeout after 20000ms, keys: /default_pg/0//cpu//0/rank_1
# The client socket has timed out after 60000ms while trying to connect to (10.0.0.1, 29500).
# failed to recv, got 0 bytes. Connection was likely closed. Did the remote server shutdown or crash?
_SPEAKERS = (
    "gloo",
    "nccl",
    "tcpstore",
    "socketimpl",
    "client socket has",
    "wait timeout after",
    "failed to recv",
)
_TIMED_OUT = re.compile(r"timed? ?out|operation timeout|no route to host|host is unreachable", re.IGNORECASE)
_CLOSED = re.compile(
    r"closed by peer|connection reset|broken pipe|connection was likely closed|connection refused|remote process exiting|"
    r"remoteerror|connectfullmesh failed|communicator was aborted|got 0 bytes",
    re.IGNORECASE,
)
# [10.0.0.2]:24569    (gpu01, 29500)
_PEER = re.compile(r"\[([0-9a-fA-F.:]+)\]:\d+|\(([\w.-]+), \d+\)")


class Broken(msgspec.Struct, frozen=True, kw_only=True):
    """What a library's words say."""

    kind: Kind
    peer: str = ""
    """The address at the other end, where it is named."""


def read_broken(words: str) -> Broken | None:
    """Return what an error's words say of an exchange; None: they speak of something else."""
    low = words.lower()
    if not any(speaker in low for speaker in _SPEAKERS):
        return None
    kind: Kind | None = (
        "timed-out" if _TIMED_OUT.search(words) else "closed" if _CLOSED.search(words) else None
    )
    if kind is None:
        return None
    peer = _PEER.search(words)
    return Broken(kind=kind, peer=(peer[1] or peer[2]) if peer else "")


class ExchangeBroken(RuntimeError):  # noqa: N818 - it is what it says
    """The exchange with the other ranks broke off, through no fault of this one."""

    def __init__(self, kind: Kind, text: Text) -> None:
        super().__init__(str(text))
        self.kind, self.text = kind, text


@contextlib.contextmanager
def in_our_words(place: RankPlace, hosts: Sequence[str], timeout_s: float) -> Iterator[None]:
    """Raise :class:`ExchangeBroken` where a library says that an exchange broke off.

    ``hosts``: of every rank, ``name (address)``; empty as long as the ranks do not know each other.
    """
    try:
        yield
    except RuntimeError as error:  # torch's DistError and what gloo throws are both
        broken = read_broken(str(error))
        if place.size == 1 or broken is None:
            raise
        raise ExchangeBroken(broken.kind, sentence(broken, place, hosts, timeout_s, str(error))) from error


def sentence(broken: Broken, place: RankPlace, hosts: Sequence[str], timeout_s: float, words: str) -> Text:
    """Return what happened to this rank, who did not answer, and the way out."""
    why, others = " ".join(words.split())[:300], other_machines(broken, place, hosts)
    if not hosts:
        return t("rank {rank} did not find the others within {seconds} s: start as many machines and processes as were named, and let "
                 "the first machine's port through ({why})", rank=place.rank, seconds=round(timeout_s), why=why)  # fmt: skip
    if broken.kind == "timed-out" and others:
        return t("rank {rank} waited {seconds} s for {machines} and got no answer: look there whether it runs and its link is up, then go "
                 "on with: doctor run --resume RUN on every machine ({why})",
                 rank=place.rank, seconds=round(timeout_s), machines=others, why=why)  # fmt: skip
    if broken.kind == "timed-out":
        return t("rank {rank} waited {seconds} s for another process of this machine and got no answer ({why})",
                 rank=place.rank, seconds=round(timeout_s), why=why)  # fmt: skip
    if others:
        return t("the link of rank {rank} to {machines} was closed at the other end: a process there ended, and its own log says why. Go on "
                 "with: doctor run --resume RUN on every machine ({why})", rank=place.rank, machines=others, why=why)  # fmt: skip
    return t(
        "rank {rank} lost another process of this machine, which ended ({why})", rank=place.rank, why=why
    )


def other_machines(broken: Broken, place: RankPlace, hosts: Sequence[str]) -> str:
    """Return the machine that is meant, or all but this one; empty: there is one machine."""
    own = hosts[place.rank] if hosts else ""
    others = list(dict.fromkeys(one for one in hosts if one != own))
    named = [one for one in others if broken.peer and f"({broken.peer})" in one]
    return ", ".join((named or others)[:4])
