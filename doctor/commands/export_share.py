"""``doctor export --to``: the files listed, what they tell of this machine and where they would go said, then asked."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from doctor.commands import CommandError, Exit
from doctor.language import say
from runner.strings import shown
from runner.text import Text, t

if TYPE_CHECKING:
    from doctor.model_source import Source
    from runner.deploy.uploading import Standing

Files = Mapping[str, Path]

# user/repo, organisation/name-of-model
_REPOSITORY = re.compile(r"[\w.-]+/[\w.-]+")


def is_repository(to: str) -> bool:
    """``user/repo`` is the hub's, unless there is a folder that it could lie in."""
    return bool(_REPOSITORY.fullmatch(to)) and not Path(to).parent.is_dir()


def share(source: Source, namespace: argparse.Namespace) -> int:
    """Copy or send the finished files to where ``--to`` says; return the exit status. Raises CommandError."""
    from doctor import service

    files = service.files_to_share(source)
    hub = is_repository(namespace.to)
    _list(files, say(t("the hub repository {name}", name=namespace.to)) if hub else shown(str(Path(namespace.to).absolute())))  # fmt: skip
    for name, path in service.paths_in(files).items():
        _warn(t("{name} names a folder of this machine: {path}", name=shown(name), path=shown(path)))
    if namespace.dry_run:
        return Exit.OK
    if not hub:
        print(shown(str(service.copy_model(source, Path(namespace.to)))))
        return Exit.OK
    return _send(source, files, namespace)


def _list(files: Files, where: str) -> None:
    from doctor.render.layout import human_bytes

    total = sum(path.stat().st_size for path in files.values())
    print(say(t("{count} {count:file|files} ({size}) to {where}:", count=len(files), size=human_bytes(total), where=where)))  # fmt: skip
    for name, path in files.items():
        print(f"  {human_bytes(path.stat().st_size):>9}  {shown(name)}")


def _send(source: Source, files: Files, namespace: argparse.Namespace) -> int:
    from doctor import service

    standing = service.look_at_repository(source, namespace.to, files, namespace.python)
    public = standing.public if standing.exists else namespace.public
    print("\n".join(_standing(namespace.to, standing, public)), flush=True)
    if not namespace.yes and not _agreed(public):
        print(say("nothing was sent"), file=sys.stderr)
        return Exit.FOUND
    try:
        print(service.upload_model(source, namespace.to, files, namespace.public, namespace.python))
    except KeyboardInterrupt:
        _warn(t("broken off: the repository is as it was; the same line sends it again"))
        raise
    return Exit.OK


def _standing(name: str, found: Standing, public: bool) -> Iterator[str]:
    where, who = shown(f"{found.address}/{name}"), shown(found.user)
    readers = say("everybody") if public else say("its members alone")
    if not found.exists:
        yield say(t("{where} does not exist yet; it is made for {who}, to be seen by {readers}", where=where, who=who, readers=readers))  # fmt: skip
        return
    yield say(t("{where} exists and is seen by {readers}; the files are sent as {who}", where=where, who=who, readers=readers))  # fmt: skip
    if found.replaced:
        yield say(t("{count} {count:file|files} of it {count:is|are} replaced: {names}", count=len(found.replaced), names=shown(", ".join(found.replaced))))  # fmt: skip


def _warn(text: Text) -> None:
    print(say(text), file=sys.stderr, flush=True)


def _agreed(public: bool) -> bool:
    question = say("send them, to be seen by everybody? [y/N]") if public else say("send them? [y/N]")
    if not sys.stdin.isatty():
        raise CommandError(say("this asks first, and there is no terminal to ask: add --yes"), Exit.USAGE)
    print(question, end=" ", flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes", "是")
