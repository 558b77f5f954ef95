"""CycloneDX SBOM (JSON 1.5), through its own library: only where that is installed. Pure."""

from __future__ import annotations

import importlib
from typing import Any

from doctor.model import Snapshot, t
from doctor.snapshots.diff_packages import contents_of
from doctor.snapshots.formats.rendered import FormatError, Rendered
from doctor.snapshots.formats.sources import Source, sources


def render(snapshot: Snapshot) -> Rendered:
    try:
        model = importlib.import_module("cyclonedx.model")
        bom_module = importlib.import_module("cyclonedx.model.bom")
        component = importlib.import_module("cyclonedx.model.component")
        output = importlib.import_module("cyclonedx.output")
        schema = importlib.import_module("cyclonedx.schema")
        packageurl = importlib.import_module("packageurl")
    except ImportError:
        raise FormatError(t("an SBOM is written by CycloneDX's own library, which is not installed: pip install 'rundoctor[sbom]'")) from None  # fmt: skip
    contents = contents_of(snapshot)
    bom = bom_module.Bom()
    left_out = []
    for one in sources(snapshot):
        if one.kind == "none" and not one.version:
            left_out.append(t("{name}: left out", name=one.name))
            continue
        record = contents[one.name].record_sha256 if one.name in contents else ""
        bom.components.add(_component(one, record, model, component, packageurl))
    writer = output.make_outputter(bom, schema.OutputFormat.JSON, schema.SchemaVersion.V1_5)
    lost = (*left_out, t("the driver, the cards, variables, code and data are not in it"))
    return Rendered(text=writer.output_as_string(indent=1) + "\n", lost=lost, file_name="sbom.cdx.json")


def _component(one: Source, record: str, model: Any, component: Any, packageurl: Any) -> Any:
    qualifiers = {"vcs_url": one.requirement.partition(" @ ")[2]} if one.kind == "vcs" else None
    purl = packageurl.PackageURL("pypi", None, one.name, one.version, qualifiers)
    hashes = [model.HashType(alg=model.HashAlgorithm.SHA_256, content=one.sha256)] if one.sha256 else []
    properties = [model.Property(name="rundoctor:record", value=record)] if record else []
    return component.Component(
        name=one.name, version=one.version, type=component.ComponentType.LIBRARY, bom_ref=str(purl), purl=purl,
        hashes=hashes, properties=properties,
    )  # fmt: skip
