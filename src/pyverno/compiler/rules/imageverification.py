"""Lowering of `verifyImages`: one rule verifies images where objects are changed, one demands it where they are judged.

Attestors without variables are read here, once, so that what cannot be verified is an error of the policy.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import partial
from typing import Final

from pyverno.compiler.parser import Parser, lower_conditions
from pyverno.engine.actions.verify_images import ImageBlock, ImagesCheck, VerifyImages
from pyverno.engine.imageverification.demands import Demands, read_demands
from pyverno.engine.rules.conditions import reads_data
from pyverno.errors import ValueSyntaxError, VerificationError
from pyverno.images import Extractors, compile_extractors
from pyverno.images.verification.stored import SignatureForm
from pyverno.kube.imageref.globs import exempting, selecting
from pyverno.kube.json import JSON, JSONObject, encode
from pyverno.kube.yaml.fieldpath import Path
from pyverno.lang.pattern.literal import as_plain, as_plain_within
from pyverno.lang.template import DataMark
from pyverno.lazyregex import regex
from pyverno.policy.rule import Rule
from pyverno.policy.rule import VerifyImages as WrittenImages
from pyverno.policy.verifyimages import ImageVerification, VerificationType

__all__ = ["lower_verify_images"]

_FORMS = {VerificationType.SIGSTORE_BUNDLE: SignatureForm.BUNDLE, VerificationType.NOTARY: SignatureForm.NOTARY}
_STEP: Final = regex(r"([^.\[\]]+)|\[(\d+)\]")
_LEGACY_KEYLESS = ("issuer", "subject", "roots", "additionalExtensions")


def lower_verify_images(rule: Rule, images: WrittenImages, parser: Parser) -> tuple[VerifyImages, ImagesCheck | None]:
    """Return what verifies, and what demands it, None when no entry demands anything."""
    blocks = tuple(_block(each, parser) for each in images.entries)
    extractors: Extractors | None = None
    if rule.image_extractors is not None:
        try:
            extractors = compile_extractors(rule.image_extractors)
        except ValueSyntaxError as error:
            parser.report(error.message, (*rule.path, "imageExtractors"), code="image-extractor")
    checked = any(block.required or block.verifies_digest for block in blocks)
    content = _content(rule, images)
    check = ImagesCheck(rule.name, blocks, extractors, content) if checked else None
    return VerifyImages(rule.name, blocks, extractors, content), check


def _content(rule: Rule, images: WrittenImages) -> str:
    """Return a hash of everything that a rule says of images: a record of another content does not count."""
    said = [[each.raw for each in images.entries], rule.image_extractors, rule.raw.get("context")]
    return hashlib.sha256(encode(said).encode("utf-8", "surrogatepass")).hexdigest()


def _block(written: ImageVerification, parser: Parser) -> ImageBlock:
    signatures = _FORMS.get(written.type, SignatureForm.SIGNATURE_TAG)
    if written.cosign_oci11:
        if signatures is not SignatureForm.SIGNATURE_TAG:
            text = "cosignOCI11 is for type Cosign: other types are stored as referrers anyway"
            parser.report(text, (*written.path, "cosignOCI11"), code="image-verification")
        signatures = SignatureForm.SIGNATURE_REFERRER
    mark = DataMark(partial(reads_data, data=parser.data), as_plain, as_plain_within)
    document = parser.template(_demanded_entry(written.raw, written), written.path, mark=mark)
    demands: Demands | None = None
    if document.is_static:
        try:
            demands = read_demands(document.document)
        except VerificationError as error:
            steps, message = _split_place(error.message)
            parser.report(message, (*written.path, *steps), code="attestor")
    deny = None
    if written.check is not None and written.check.deny is not None:
        from pyverno.compiler.rules.denying import lower_deny

        path = (*written.path, "validate")
        deny = lower_deny("imageVerify", written.check.deny, parser.template(written.check.message, path), path, parser)
    conditions = tuple(
        lower_conditions(list(each.conditions), parser, (*each.path, "conditions"), blocks=True, excuse=True)
        for each in written.attestations
    )
    return ImageBlock(
        references=tuple(selecting(text) for text in written.image_references),
        document=document,
        demands=demands,
        signatures=signatures,
        attestations=_FORMS.get(written.type, SignatureForm.ATTESTATION_TAG),
        skipped=tuple(exempting(text) for text in written.skip_image_references),
        conditions=conditions,
        deny=deny,
        mutates_digest=written.mutate_digest,
        verifies_digest=written.verify_digest,
        required=written.required,
        uses_cache=written.use_cache,
        credentials=_object(written.raw.get("imageRegistryCredentials")) or None,
    )


def _split_place(message: str) -> tuple[Path, str]:
    """Return the field that an error of an attestor begins with, and the rest of the text.

    >>> _split_place(".attestors[0].entries[1].keys cannot be read")
    (('attestors', 0, 'entries', 1, 'keys'), 'cannot be read')
    """
    place, _, rest = message.partition(" ")
    if not place.startswith(".") or not rest:
        return (), message
    return tuple(int(index) if index else name for name, index in _STEP.findall(place)), rest


def _demanded_entry(raw: JSONObject, written: ImageVerification) -> JSONObject:
    """Return attestors, attestations and repository of an entry, with those of the legacy fields."""
    attestors = list(_items(raw.get("attestors")))
    if written.type is VerificationType.NOTARY:
        attestors = [_without_logs(each) for each in attestors]
    attestations: list[JSONObject] = []
    for each in _items(raw.get("attestations")):
        found = _object(each)
        if written.type is VerificationType.NOTARY and found.get("attestors"):
            found = {**found, "attestors": _without_logs(found["attestors"])}
        # conditions may have variables of the statement, which are not known yet
        attestations.append({name: value for name, value in found.items() if name != "conditions"})
    legacy = _legacy(raw)
    if legacy is not None and attestations:
        attestations = [{**each, "attestors": [*_items(each.get("attestors")), legacy]} for each in attestations]
    elif legacy is not None:
        attestors.append(legacy)
    return {"attestors": attestors, "attestations": attestations, "repository": written.repository}


def _without_logs(value: JSON) -> JSON:
    """Return attestor sets whose certificates need no log unless they name one: Notary has none."""
    if isinstance(value, list):
        return [_without_logs(each) for each in value]
    if not isinstance(value, dict):
        return value
    found = {name: _without_logs(each) for name, each in value.items() if name in ("entries", "attestor")}
    certificates = value.get("certificates")
    if isinstance(certificates, dict):
        log = {"rekor": {"ignoreTlog": True}, "ctlog": {"ignoreSCT": True, **_object(certificates.get("ctlog"))}}
        found["certificates"] = {**log, **certificates, "ctlog": log["ctlog"]}
    return {**value, **found}


def _legacy(raw: Mapping[str, JSON]) -> JSONObject | None:
    """Return the attestor set that the fields of older policies mean."""
    key, issuer = raw.get("key"), raw.get("issuer")
    if not (key or issuer or (raw.get("image") and raw.get("annotations"))):
        return None
    entry: JSONObject = {"annotations": raw.get("annotations")}
    if key:
        entry["keys"] = {"publicKeys": key}
    elif issuer:
        entry["keyless"] = {name: raw.get(name) for name in _LEGACY_KEYLESS}
    return {"entries": [entry]}


def _items(value: JSON) -> list[JSON]:
    return value if isinstance(value, list) else []


def _object(value: JSON) -> JSONObject:
    return value if isinstance(value, dict) else {}
