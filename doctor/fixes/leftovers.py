"""Remains in site-packages: folders of installs that were cut off, second sets of metadata. Put aside, not deleted. Pure."""

from __future__ import annotations

from packaging.version import Version

from doctor.checks.versions import parse
from doctor.fixes import fix
from doctor.fixes.pip_line import Asked, install_step, why_not_writable
from doctor.model import Finding, Fix, Packages, RemovePath, Snapshot, Text, t

_OLDEST = Version("0")


@fix("leftover-of-an-install")
def put_leftovers_aside(finding: Finding, snapshot: Snapshot) -> Fix | Text:
    packages = snapshot.facts.packages.value or Packages()
    refused = why_not_writable(snapshot.facts.python.value)
    if refused:
        return refused
    return Fix(
        id=finding.id,
        subject=finding.subject,
        title=t(
            "put {count} {count:remain|remains} of interrupted installs aside", count=len(packages.leftovers)
        ),
        steps=tuple(RemovePath(path=path) for path in packages.leftovers),
        touches=("packages",),
        risk=t("they stay in .rundoctor-kept beside until `doctor journal --drop`"),
    )


@fix("duplicate-distribution-metadata")
def one_set_of_metadata(finding: Finding, snapshot: Snapshot) -> Fix | Text:
    """The newest stays, and is installed again so that files and metadata belong together."""
    packages = snapshot.facts.packages.value or Packages()
    found = [item for item in packages.items if item.name == finding.subject]
    if len({item.location for item in found}) != 1 or len(found) < 2:
        return finding.advice or t(
            "the copies lie in different folders: keep one, with the tool that put it there"
        )
    refused = why_not_writable(snapshot.facts.python.value)
    if refused:
        return refused
    newest = max(found, key=lambda item: parse(item.version) or _OLDEST)
    stale = [item for item in found if item is not newest]
    folder = newest.name.replace("-", "_")
    asked = Asked((f"{newest.name}=={newest.version}",), None, no_deps=True, force=True)
    return Fix(
        id=finding.id,
        subject=finding.subject,
        title=t("put the stale metadata of {name} {stale} aside and install {version} again", name=newest.name, stale=", ".join(item.version for item in stale), version=newest.version),
        steps=(*(RemovePath(path=f"{item.location}/{folder}-{item.version}.dist-info") for item in stale), install_step(snapshot, asked)),
        touches=("python", "packages", "torch"),
    )  # fmt: skip
