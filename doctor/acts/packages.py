"""Install into, and take out of, the examined interpreter; what was there is kept, and put back when it does not import."""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path

import msgspec

from doctor.acts import Act, Keeper, Kept, Refused
from doctor.acts.commands import last_words, run_command
from doctor.acts.installer import (
    Place,
    ask_place,
    import_trouble,
    install_argv,
    installer_environ,
    uninstall_argv,
)
from doctor.acts.move import room
from doctor.acts.site_copy import Saved, can_link, damaged, forget, restore, save
from doctor.checks.versions import local_cuda
from doctor.model import InstallPackages, t
from doctor.probes.dist_info import read_distribution

_LOCK = ".lock"
"""uv leaves this empty file in an environment."""
_VERSIONS, _SAVED, _CONSTRAINTS = "versions.json", "saved.json", "constraints.txt"


def versions(place: Place) -> dict[str, str]:
    """Return every installed distribution of the interpreter's own folders with its version."""
    found: dict[str, str] = {}
    for site in place.sites:
        for path in sorted(site.glob("*.dist-info")):
            if not path.name.startswith("~"):
                item = read_distribution(str(site), path.name)
                found.setdefault(item.name, item.version)
    return found


def changed(before: dict[str, str], after: dict[str, str]) -> str:
    """``torch 2.6.0 -> 2.5.1, + nvidia-nccl-cu12 2.21.5, - torchaudio 2.6.0``."""
    words = [f"{name} {version} -> {after[name]}" for name, version in before.items() if name in after and after[name] != version]  # fmt: skip
    words += [f"+ {name} {version}" for name, version in after.items() if name not in before]
    words += [f"- {name} {version}" for name, version in before.items() if name not in after]
    return ", ".join(words)


class InstallPackagesAct(Act[InstallPackages]):
    def look(self, step: InstallPackages, keeper: Keeper) -> Kept:
        place = ask_place(step.python)
        self._commands(step, place, None)  # an installer must be there
        for site in place.sites:
            if site.is_dir() and shutil.disk_usage(site).free < step.needs_bytes:
                room(site, step.needs_bytes)
        keeper.keep(_VERSIONS, msgspec.json.encode(versions(place)))
        before: Kept = {"prefix": str(place.prefix), "way": "versions"}
        before["aside"] = keeper.new_name()
        before["had_lock"] = int((place.prefix / _LOCK).exists())
        if can_link(place.prefix):
            before["way"] = "links"
        return before

    def do(self, step: InstallPackages, before: Kept, keeper: Keeper) -> Kept:
        place = ask_place(step.python)
        old = self._old(keeper)
        if before["way"] == "links":
            saved = save((*place.sites, place.scripts), place.prefix, str(before["aside"]))
            keeper.keep(_SAVED, msgspec.json.encode(saved))
        constraints = self._constraints(step, keeper)
        environ = installer_environ(step, keeper.environ)
        for argv in self._commands(step, place, constraints):
            done = run_command(argv, keeper, environ)
            if done.returncode != 0:
                raise Refused(t("{command} failed ({status}): {words}", command=shlex.join(argv), status=done.returncode, words=last_words(done.stdout)))  # fmt: skip
        for module in step.imports:
            trouble = import_trouble(place, module, keeper.environ)
            if trouble:
                raise Refused(t("after the installation `import {module}` fails: {error}. What was there before is put back.", module=module, error=trouble))  # fmt: skip
        new = versions(place)
        return {"changed": changed(old, new), "versions": msgspec.json.encode(new).decode()}

    def _old(self, keeper: Keeper) -> dict[str, str]:
        return msgspec.json.decode((keeper.folder / _VERSIONS).read_bytes(), type=dict[str, str])

    def _constraints(self, step: InstallPackages, keeper: Keeper) -> str | None:
        if not step.frozen:
            return None
        keeper.keep(_CONSTRAINTS, "".join(f"{line}\n" for line in step.frozen).encode())
        return str(keeper.folder / _CONSTRAINTS)

    def _commands(self, step: InstallPackages, place: Place, constraints: str | None) -> list[list[str]]:
        commands = [uninstall_argv(place, step.remove)] if step.remove else []
        return [*commands, install_argv(step, place, constraints)] if step.requirements else commands

    def undo(self, step: InstallPackages, before: Kept, after: Kept | None, keeper: Keeper) -> None:
        place = ask_place(step.python)
        now, old = versions(place), self._old(keeper)
        expected = msgspec.json.decode(str(after["versions"]), type=dict[str, str]) if after else now
        if now not in (expected, old) and not keeper.resumed:
            raise Refused(t("the packages were changed since ({changes}): put back by hand what you want of: {wanted}", changes=changed(expected, now), wanted=changed(expected, old)))  # fmt: skip
        if before["way"] == "links":
            self._relink(before, keeper, now == old)
        elif now != old:
            self._reinstall(place, now, old, keeper)

    def _relink(self, before: Kept, keeper: Keeper, is_back: bool) -> None:
        """``is_back``: the versions are those of before; an undo that was cut off at its very end leaves no kept files."""
        prefix, name, file = Path(str(before["prefix"])), str(before["aside"]), keeper.folder / _SAVED
        if file.exists():  # else it was cut off before anything was installed
            saved = msgspec.json.decode(file.read_bytes(), type=list[Saved])
            spoilt = [path for one in saved for path in damaged(one)]
            is_over = is_back and not any(Path(one.kept).exists() for one in saved)
            if spoilt and not is_over:
                raise Refused(t("{count} of the kept files are gone or were written over, {first} among them: nothing was put back", count=len(spoilt), first=spoilt[0]))  # fmt: skip
            for one in saved if not spoilt else ():
                restore(one)
        lock = prefix / _LOCK
        if not before["had_lock"] and lock.is_file() and lock.stat().st_size == 0:
            lock.unlink()
        forget(prefix, name)

    def _reinstall(self, place: Place, now: dict[str, str], old: dict[str, str], keeper: Keeper) -> None:
        """Bring back the versions by the installer: where files could not be kept, that is what there is."""
        added = tuple(name for name in now if name not in old)
        wanted = {name: version for name, version in old.items() if now.get(name) != version}
        by_index: dict[str | None, list[str]] = {}
        for name, version in wanted.items():
            by_index.setdefault(_index_of(version), []).append(f"{name}=={version}")
        steps = [InstallPackages(python=place.python, remove=added)] if added else []
        steps += [InstallPackages(python=place.python, requirements=tuple(lines), index_url=index, no_deps=True) for index, lines in by_index.items()]  # fmt: skip
        for step in steps:
            for argv in self._commands(step, place, None):
                done = run_command(argv, keeper, installer_environ(step, keeper.environ))
                if done.returncode != 0:
                    raise Refused(t("{command} failed ({status}): {words}", command=shlex.join(argv), status=done.returncode, words=last_words(done.stdout)))  # fmt: skip

    def sketch(self, step: InstallPackages) -> list[str]:
        place = Place(step.python, Path("/"), (), Path("/"), pip="?")
        commands = self._commands(step, place, "CONSTRAINTS" if step.frozen else None)
        return [*map(shlex.join, commands), *self._notes(step)]

    def forget(self, step: InstallPackages, before: Kept, keeper: Keeper) -> None:
        forget(Path(str(before["prefix"])), str(before["aside"]))

    def preview(self, step: InstallPackages) -> list[str]:
        try:
            place = ask_place(step.python)
            lines = [shlex.join(argv) for argv in self._commands(step, place, "CONSTRAINTS" if step.frozen else None)]  # fmt: skip
        except Refused as error:
            return [str(error.text)]
        return [*lines, *self._notes(step)]

    def _notes(self, step: InstallPackages) -> list[str]:
        frozen = [f"# CONSTRAINTS: {', '.join(step.frozen)}"] if step.frozen else []
        return [*frozen, *(f"{shlex.quote(step.python)} -c 'import {module}'" for module in step.imports)]


def _index_of(version: str) -> str | None:
    """``2.6.0+cu124`` comes from the PyTorch index, not from PyPI."""
    cuda = local_cuda(version)
    if cuda is None:
        return None
    return f"https://download.pytorch.org/whl/{'cu' + cuda.replace('.', '') if cuda else 'cpu'}"
