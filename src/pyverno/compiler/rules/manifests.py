"""Lowering of `validate.manifests`; attestors without variables are read here, so that an error is the policy's."""

from __future__ import annotations

from pyverno.compiler.parser import Parser
from pyverno.engine.actions.unavailable import Unavailable
from pyverno.engine.actions.verify_manifests import VerifyManifests, read_manifest_attestors
from pyverno.errors import VerificationError
from pyverno.images.manifests.compare import IgnoredFields
from pyverno.images.manifests.signed import DEFAULT_DOMAIN
from pyverno.kube.json import JSON
from pyverno.policy.validate import Manifests, Validate

__all__ = ["lower_manifests"]


def lower_manifests(validate: Validate, parser: Parser) -> VerifyManifests | Unavailable:
    """Compile the block; what cannot be verified is an error, never left out."""
    written, path = validate.manifests or Manifests(), (*validate.path, "manifests")
    raw = validate.raw.get("manifests")
    if written.repository:
        return Unavailable("signatures of manifests in a registry (`manifests.repository`) are not supported")
    document = parser.template(raw.get("attestors") if isinstance(raw, dict) else [], (*path, "attestors"))
    attestors = None
    if document.is_static:
        try:
            attestors = read_manifest_attestors(document.document)
        except VerificationError as error:
            parser.report(error.message, path, code="attestor")
            return Unavailable(error.message)
    ignored = tuple(
        IgnoredFields(_texts(each.get("fields")), tuple(_objects(each.get("objects"))))
        for each in written.ignore_fields
    )
    return VerifyManifests(document, attestors, ignored, written.annotation_domain or DEFAULT_DOMAIN)


def _texts(value: JSON) -> tuple[str, ...]:
    return tuple(each for each in value if isinstance(each, str)) if isinstance(value, list) else ()


def _objects(value: JSON) -> list[dict[str, str]]:
    listed = value if isinstance(value, list) else []
    return [
        {key: text for key, text in each.items() if isinstance(text, str)} for each in listed if isinstance(each, dict)
    ]
