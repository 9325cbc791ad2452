"""What is in an archive, as CycloneDX tells it."""

import uuid
from datetime import datetime, timezone

from cyclonedx.model import (
    ExternalReference,
    ExternalReferenceType,
    HashAlgorithm,
    HashType,
    Property,
    XsUri,
)
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.model.license import LicenseExpression
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL

from linked import Linked, Package

NAMESPACE = uuid.uuid5(uuid.NAMESPACE_URL, "https://cyclonedx.org/dq")


def bill_of_materials(
    name: str,
    version: str,
    epoch: int,
    parts: list[Linked],
    tools: list[Package],
    built_with: dict[str, str],
) -> str:
    """`parts` are what the module and the page are linked from, `tools` what the compilers add to
    both.
    """
    whole = Component(name=name, version=version, type=ComponentType.APPLICATION, bom_ref=name)
    bom = Bom(serial_number=uuid.uuid5(NAMESPACE, f"{name} {epoch}"))
    bom.metadata.component = whole
    bom.metadata.timestamp = datetime.fromtimestamp(epoch, timezone.utc)
    bom.metadata.properties = [
        Property(name=f"dq:built-with:{tool}", value=told) for tool, told in built_with.items()
    ]
    components = {
        package.purl: _component(package)
        for package in [*tools, *(package for part in parts for package in part.packages)]
    }
    bom.components = components.values()
    bom.register_dependency(whole, [components[part.own] for part in parts])
    everywhere = [components[tool.purl] for tool in tools]
    for part in parts:
        for purl, dependencies in part.edges.items():
            # Rust's standard library and the unwinder are below everything.
            bom.register_dependency(
                components[purl], [components[other] for other in dependencies] + everywhere
            )
    return JsonV1Dot6(bom).output_as_string(indent=2) + "\n"


def _component(package: Package) -> Component:
    component = Component(
        name=package.name,
        version=package.version,
        type=ComponentType.LIBRARY,
        bom_ref=package.purl,
        purl=PackageURL.from_string(package.purl),
        licenses=[LicenseExpression(package.licence)],
    )
    if package.sha256:
        component.hashes = [HashType(alg=HashAlgorithm.SHA_256, content=package.sha256)]
    if package.repository:
        component.external_references = [
            ExternalReference(type=ExternalReferenceType.VCS, url=XsUri(package.repository))
        ]
    return component
