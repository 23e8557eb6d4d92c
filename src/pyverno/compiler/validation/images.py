"""Checks of image verification: references, attestors, and extractors.

This module must not verify images.
(Kyverno: api/kyverno/v1/image_verification_types.go)
"""

from __future__ import annotations

from pyverno.compiler.validation.findings import Findings
from pyverno.policy.clusterpolicy import ClusterPolicy
from pyverno.policy.failureaction import FailureAction
from pyverno.policy.rule import Rule, VerifyImages
from pyverno.policy.verifyimages import Attestor, AttestorSet, ImageVerification, VerificationType

__all__ = ["check_attestors", "check_images"]

_ALGORITHMS = ("", "sha224", "sha256", "sha384", "sha512")


def check_images(rule: Rule, images: VerifyImages, policy: ClusterPolicy, findings: Findings) -> None:
    """Check all image verifications of one rule."""
    audits = policy.spec.failure_action is FailureAction.AUDIT
    for image in images.entries:
        if image.failure_action is not None:
            audits = image.failure_action is FailureAction.AUDIT
        _check_image(image, findings, audits=audits)
    if rule.image_extractors and any(image.mutate_digest for image in images.entries):
        entries = (each for extractors in rule.image_extractors.values() for each in extractors)
        if any(each.get("jmesPath") for each in entries):
            text = "jmespath may not be used in an image extractor when mutating digests with verify images"
            findings.error("image-extractor", (*rule.path, "imageExtractors"), text)


def _check_image(image: ImageVerification, findings: Findings, *, audits: bool) -> None:
    if audits and image.mutate_digest:
        text = "mutateDigest must be set to false for ‘Audit’ failure action"
        findings.error("mutate-digest", (*image.path, "mutateDigest"), text)
    if not image.image_references:
        findings.error("image-reference", image.path, "An image reference is required")
    for attestation in image.attestations:
        check_attestors(attestation.attestors, findings)
    check_attestors(image.attestors, findings)
    if image.type is VerificationType.NOTARY:
        for entry in (entry for attestors in image.attestors for entry in attestors.entries):
            if entry.keyless is not None:
                findings.error("attestor", entry.path, "Keyless field is not allowed for type notary")
            if entry.keys is not None:
                findings.error("attestor", entry.path, "Keys field is not allowed for type notary")


def check_attestors(sets: tuple[AttestorSet, ...], findings: Findings) -> None:
    """Check attestor sets: counts, entries, and exactly one authority in each entry."""
    for each in sets:
        if each.count is not None and each.count > len(each.entries):
            findings.error("attestor", each.path, "Count cannot exceed length of entries")
        if not each.entries:
            findings.error("attestor", each.path, "An entry is required")
        for entry in each.entries:
            _check_entry(entry, findings)


def _check_entry(entry: Attestor, findings: Findings) -> None:
    written = (entry.keys, entry.certificates, entry.keyless, entry.attestor)
    if sum(each is not None for each in written) != 1:
        findings.error("attestor", entry.path, "keys, certificates, keyless, or a nested attestor is required")
    if entry.keys is not None:
        path = (*entry.path, "keys")
        if not entry.keys.public_keys and not entry.keys.kms and entry.keys.secret is None:
            findings.error("attestor", path, "A public key, kms key or secret is required")
        if entry.keys.public_keys and entry.keys.signature_algorithm not in _ALGORITHMS:
            findings.error("attestor", path, "Invalid signature algorithm provided")
    if entry.certificates is not None and not entry.certificates.cert and not entry.certificates.cert_chain:
        findings.error("attestor", (*entry.path, "certificates"), "cert or certChain required")
    if entry.keyless is not None:
        path = (*entry.path, "keyless")
        if entry.keyless.rekor is None and not entry.keyless.roots:
            findings.error("attestor", path, "Either Rekor URL or roots are required")
        if entry.keyless.rekor is not None and not entry.keyless.rekor.url:
            findings.error("attestor", path, "An URL is required")
    if entry.attestor is not None:
        check_attestors((entry.attestor,), findings)
