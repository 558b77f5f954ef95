"""A snapshot on one screen: which machine and environment, how many packages, and what could not be read. Pure."""

from __future__ import annotations

from doctor.language import say
from doctor.model import SECTIONS, GitState, Reading, Snapshot, Storage, t
from doctor.redact_secrets import is_credential_variable
from doctor.render.headline import environment_line, machine_line
from doctor.render.layout import display_width, human_bytes, indent, pad
from doctor.render.section_names import listed, section_name
from runner.strings import printable, shown


def snapshot_lines(snapshot: Snapshot, name: str, width: int = 100) -> list[str]:
    """Return the lines that ``doctor snapshot show`` prints of the file ``name``."""
    rows = [
        (say("Taken"), _taken(snapshot)),
        (say("System"), _system(snapshot)),
        (say("Container"), _container(snapshot)),
        (say("Packages"), _packages(snapshot)),
        (say("Contents"), _contents(snapshot)),
        (say("Code"), _code(snapshot)),
        (say("Data"), _data(snapshot)),
        (say("Run"), _run(snapshot)),
        (say("Not kept"), _unkept(snapshot)),
        (say("Disks"), _disks(snapshot)),
        (
            say("Redacted"),
            say("yes") if snapshot.redacted else say("no: look through it before you share it"),
        ),
    ]
    label_width = max(display_width(label) for label, _ in rows) + 2
    lines = [printable(name)]
    for headline in (machine_line(snapshot), environment_line(snapshot)):
        lines += indent(headline, width, "", "  ")
    for label, text in rows:
        lines += indent(text, width, pad(label, label_width), " " * label_width) if text else []
    return lines + _gaps(snapshot, width)


def _taken(snapshot: Snapshot) -> str:
    return " · ".join(printable(part) for part in (snapshot.taken_at, snapshot.tool) if part)


def _system(snapshot: Snapshot) -> str:
    host = snapshot.facts.host.value
    if host is None:
        return ""
    parts = [host.os_name, host.kernel and f"Linux {host.kernel}", host.glibc and f"glibc {host.glibc}"]
    return " · ".join(printable(part) for part in (*parts, host.arch, host.cpu_model) if part)


def _container(snapshot: Snapshot) -> str:
    container = snapshot.facts.container.value
    if container is None or container.inside is None:
        return ""
    return printable(container.kind or say("yes")) if container.inside else say("no")


def _packages(snapshot: Snapshot) -> str:
    packages = snapshot.facts.packages.value
    if packages is None:
        return ""
    count = say(t("{count} installed", count=len(packages.items)))
    return count if packages.complete else count + say(" (an excerpt)")


def _contents(snapshot: Snapshot) -> str:
    provenance = snapshot.facts.provenance.value
    if provenance is None or not provenance.contents:
        return ""
    digests = sum(bool(one.record_sha256) for one in provenance.contents)
    files = sum(bool(one.file_sha256) for one in provenance.contents)
    text = say(t("{count} {count:package|packages} named by digest", count=digests))
    return text + (say(t(", {count} with the digest of their file", count=files)) if files else "")


def _code(snapshot: Snapshot) -> str:
    provenance = snapshot.facts.provenance.value
    git = provenance.git if provenance else None
    if git is None:
        return ""
    if git.commit is None:
        return say(git.why) if git.why else say("no commit yet")
    parts = [shown(git.remote or ""), git.commit[:12], shown(git.branch)]
    parts.append(_changes(git) if git.dirty else say("unchanged"))
    if git.untracked_count:
        parts.append(
            say(
                t(
                    "{count} {count:file|files} that git does not know, by name only",
                    count=git.untracked_count,
                )
            )
        )
    return " · ".join(part for part in parts if part)


def _changes(git: GitState) -> str:
    if git.patch is not None:
        return say(
            t("changed since: the patch is in it, word for word ({size})", size=human_bytes(git.patch_bytes))
        )
    return say(t("changed since, without the patch: {why}", why=say(git.patch_why) if git.patch_why else "?"))


def _data(snapshot: Snapshot) -> str:
    provenance = snapshot.facts.provenance.value
    rows = provenance.data if provenance else ()
    return ", ".join(f"{shown(row.path)} ({human_bytes(row.size_bytes)}, {row.how or '?'})" for row in rows)


def _run(snapshot: Snapshot) -> str:
    provenance = snapshot.facts.provenance.value
    run = provenance.run if provenance else None
    if run is None:
        return ""
    settings = ", ".join(f"{name}={value}" for name, value in run.settings.items())
    return shown(f"{run.name} · {settings}")


def _unkept(snapshot: Snapshot) -> str:
    """Name the credentials that were set there: whoever restores it sets them again."""
    environment = snapshot.facts.environment.value
    names = [name for name in environment.names if is_credential_variable(name)] if environment else []
    return say(t("values of {names}", names=shown(", ".join(names[:12])))) if names else ""


def _disks(snapshot: Snapshot) -> str:
    storage = snapshot.facts.storage.value
    return ", ".join(_disk_texts(storage)) if storage else ""


def _disk_texts(storage: Storage) -> list[str]:
    texts = []
    for mount in storage.mounts:
        free = human_bytes(mount.free_bytes)
        texts.append(
            say(
                t(
                    "{path} {free} of {size} free",
                    path=printable(mount.path),
                    free=free,
                    size=human_bytes(mount.size_bytes),
                )
            )
        )
    return texts


# ---------------------------------------------------------------------------------------- what is not in it
def _gaps(snapshot: Snapshot, width: int) -> list[str]:
    lines: list[str] = []
    for section in SECTIONS:
        reading: Reading[object] = getattr(snapshot.facts, section)
        for place, why in _reasons(section, reading):
            lines += indent(f"{place}: {why}", width, "  ", "    ")
    unread = (
        [say("Could not be read:"), *lines]
        if lines
        else [say("Everything that was looked for could be read.")]
    )
    skipped = [name for name in SECTIONS if getattr(snapshot.facts, name).status == "skipped"]
    if skipped:
        unread += indent(
            say(t("Nobody looked: {sections}", sections=listed([*map(section_name, skipped)]))),
            width,
            "",
            "  ",
        )
    if snapshot.unknown_keys:
        keys = printable(", ".join(snapshot.unknown_keys))
        unread += indent(say(t("Not known to this version, ignored: {keys}", keys=keys)), width, "", "  ")
    return unread


def _reasons(section: str, reading: Reading[object]) -> list[tuple[str, str]]:
    if reading.status == "failed":
        return [(section, say(reading.why) if reading.why else "?")]
    unread = getattr(reading.value, "unread", {})
    return [(f"{section}.{field}", say(why)) for field, why in sorted(unread.items())]
