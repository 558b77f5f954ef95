"""Names and arguments that a release took away, by the tables of groups."""

from __future__ import annotations

from collections.abc import Iterator

from doctor.lint import Call, Installed, Problem, Script, problem, rule
from doctor.model import t
from doctor.tables import load
from doctor.tables.removed_names import removed_name


@rule
def names_of_groups(script: Script, installed: Installed) -> Iterator[Problem]:
    """Does the script import or reach a name of transformers that the installed release no longer has?"""
    version = installed.version("transformers")
    if version is None:
        return
    said: set[str] = set()
    for used, line in sorted(_used(script).items(), key=lambda pair: pair[1]):
        row = removed_name(used)
        if row is None or row.name in said or not installed.at_least("transformers", row.gone):
            continue
        said.add(row.name)
        title = t(
            "{name} is gone since {package} {gone}; {version} is installed.",
            name=row.name,
            package="transformers",
            gone=row.gone,
            version=str(version),
        )
        yield problem("removed-import", "fail", line, title, t("Use {use}.", use=row.use), row.name)


def _used(script: Script) -> dict[str, int]:
    """Return the dotted names under transformers that the script cannot do without, with their first lines."""
    found: dict[str, int] = {}
    for lines in (script.import_lines, script.attribute_lines):
        for name, line in lines.items():
            if name.startswith("transformers.") and not _is_guarded(script, name):
                found.setdefault(name, line)
    return found


def _is_guarded(script: Script, name: str) -> bool:
    return any(name == origin or name.startswith(origin + ".") for origin in script.guarded_origins)


@rule
def arguments_gone(script: Script, installed: Installed) -> Iterator[Problem]:
    """Does a call pass an argument that the installed release no longer takes?"""
    for row in load("api_changes")["argument_gone"]:
        package = str(row["calls"][0]).partition(".")[0]
        if not installed.at_least(package, row["gone"]) or (package == "trl" and script.mentions("unsloth")):
            continue  # unsloth puts its own trainers in place of trl's, which still take the old names
        for call in script.calls:
            if script.kind(call.name) in row["calls"] and not script.is_local(call):
                yield from (
                    _gone(call, name, package, row) for name in row["arguments"] if name in call.keywords
                )


def _gone(call: Call, name: str, package: str, row: dict[str, str]) -> Problem:
    title = t(
        "{function} no longer takes {name} since {package} {gone}: TypeError.",
        function=call.method,
        name=name,
        package=package,
        gone=row["gone"],
    )
    return problem("removed-argument", "fail", call.keywords[name], title, t("Write {name}.", name=row["use"]) if row["use"] else t("Remove it."), name)  # fmt: skip
