"""``environment.yml``: conda's part by version and build, the rest under ``pip:``. No prefix, no ``file://``. Pure."""

from __future__ import annotations

import json
import re

from doctor.model import CondaPackage, Snapshot, Text, t
from doctor.snapshots.formats.rendered import FormatError, Rendered
from doctor.snapshots.formats.requirements import lost_by, option_lines, requirement_lines
from doctor.snapshots.formats.sources import is_url, sources
from doctor.snapshots.formats.words import head_lines, python_minor

# numpy, libstdcxx-ng, _openmp_mutex; 12.4.1; py311h08b1b3b_0
_WORD = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+!-]*")


def render(snapshot: Snapshot) -> Rendered:
    minor = python_minor(snapshot)
    if not minor:
        raise FormatError(t("the snapshot does not say which Python it is for: conda needs to know"))
    provenance = snapshot.facts.provenance.value
    condas = [one for one in provenance.conda if _is_plain(one)] if provenance else []
    by_pip = [one for one in sources(snapshot) if one.name not in {item.name for item in condas}]
    pip_lines = [*option_lines(by_pip), *requirement_lines(by_pip)]
    lines = [*head_lines(snapshot), "channels:", *(f"  - {json.dumps(name)}" for name in _channels(condas))]
    lines += ["dependencies:", *(f"  - {json.dumps(spec)}" for spec in _specs(condas, minor))]
    lines += ["  - pip:", *(f"    {_item(line)}" for line in pip_lines)] if pip_lines else []
    return Rendered(
        text="\n".join(lines) + "\n", lost=(*_lost(condas), *lost_by(by_pip)), file_name="environment.yml"
    )


def _is_plain(one: CondaPackage) -> bool:
    return all(_WORD.fullmatch(part) for part in (one.name, one.version, one.build))


def _channels(condas: list[CondaPackage]) -> list[str]:
    """Return the channels as conda names them; credentials are not among what a snapshot keeps."""
    found = []
    for one in condas:
        # https://repo.anaconda.com/pkgs/main/linux-64, conda-forge
        channel = re.sub(r"/(linux-\w+|noarch|osx-\w+|win-\w+)/?$", "", one.channel)
        if "***" not in channel and (is_url(channel + "/") or _WORD.fullmatch(channel)):
            found.append(channel)
    return list(dict.fromkeys(found)) or ["conda-forge"]


def _specs(condas: list[CondaPackage], minor: str) -> list[str]:
    specs = [f"{one.name}={one.version}={one.build}" for one in condas]
    return specs if any(one.name == "python" for one in condas) else [f"python={minor}", "pip", *specs]


def _item(line: str) -> str:
    return line if line.startswith("#") else f"- {json.dumps(line)}"


def _lost(condas: list[CondaPackage]) -> list[Text]:
    if not condas:
        return [t("conda installed nothing there: everything stands under pip")]
    return [
        t(
            "the digests of {count} conda {count:package|packages}: an environment.yml cannot hold them",
            count=len(condas),
        )
    ]
