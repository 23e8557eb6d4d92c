"""Image verification blocks and attestors, as written.

Legacy forms (`image`, `key`, `issuer` ...) become attestor entries here. This module must not verify anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.yaml.fieldpath import Path
from pyverno.policy.context import REGISTRY_CREDENTIALS, RegistryCredentials
from pyverno.policy.deny import DENY, Deny
from pyverno.policy.failureaction import FAILURE_ACTION, FailureAction
from pyverno.policy.schema import Cursor, Field, Record, boolean, choice, free, integer, list_of, map_of, text
from pyverno.value import dataclass, field, replace

__all__ = [
    "ATTESTORS",
    "VERIFY_IMAGES",
    "VERIFY_IMAGES_WITHOUT_LEGACY",
    "Attestation",
    "Attestor",
    "AttestorSet",
    "CTLog",
    "Certificates",
    "ImageCheck",
    "ImageVerification",
    "Keyless",
    "Keys",
    "Rekor",
    "SecretReference",
    "VerificationType",
]


class VerificationType(StrEnum):
    """The signature format."""

    COSIGN = "Cosign"
    SIGSTORE_BUNDLE = "SigstoreBundle"
    NOTARY = "Notary"


@dataclass(frozen=True, slots=True)
class Rekor:
    """The transparency log of signatures."""

    url: str = ""
    public_key: str = ""
    ignore_tlog: bool = False


@dataclass(frozen=True, slots=True)
class CTLog:
    """The certificate transparency log and time stamp authority."""

    ignore_sct: bool = False
    public_key: str = ""
    tsa_cert_chain: str = ""


@dataclass(frozen=True, slots=True)
class SecretReference:
    """A secret that holds a public key."""

    name: str
    namespace: str


@dataclass(frozen=True, slots=True)
class Keys:
    """Static public keys."""

    public_keys: str = ""
    signature_algorithm: str = "sha256"
    kms: str = ""
    secret: SecretReference | None = None
    rekor: Rekor | None = None
    ctlog: CTLog | None = None


@dataclass(frozen=True, slots=True)
class Certificates:
    """A certificate and its chain, as PEM."""

    cert: str = ""
    cert_chain: str = ""
    rekor: Rekor | None = None
    ctlog: CTLog | None = None


@dataclass(frozen=True, slots=True)
class Keyless:
    """Identities of short-lived certificates."""

    issuer: str = ""
    issuer_reg_exp: str = ""
    subject: str = ""
    subject_reg_exp: str = ""
    roots: str = ""
    additional_extensions: Mapping[str, str] = field(default_factory=dict)
    rekor: Rekor | None = None
    ctlog: CTLog | None = None


@dataclass(frozen=True, slots=True)
class Attestor:
    """One authority; exactly one of keys, certificates, keyless and attestor is meant to be set."""

    keys: Keys | None = None
    certificates: Certificates | None = None
    keyless: Keyless | None = None
    attestor: AttestorSet | None = None
    annotations: Mapping[str, str] = field(default_factory=dict)
    repository: str = ""
    signature_algorithm: str = "sha256"
    path: Path = ()


@dataclass(frozen=True, slots=True)
class AttestorSet:
    """Authorities of which `count` have to agree (None or 0 = all)."""

    entries: tuple[Attestor, ...] = ()
    count: int | None = None
    path: Path = ()


@dataclass(frozen=True, slots=True)
class Attestation:
    """A signed statement of one type and the conditions that it has to meet."""

    name: str = ""
    type: str = ""
    predicate_type: str = ""
    attestors: tuple[AttestorSet, ...] = ()
    conditions: tuple[JSON, ...] = ()
    path: Path = ()


@dataclass(frozen=True, slots=True)
class ImageCheck:
    """A condition over the attestations of an image."""

    message: str = ""
    deny: Deny | None = None


@dataclass(frozen=True, slots=True)
class ImageVerification:
    """One entry of `verifyImages`. Image references are wildcards over the normalised reference."""

    type: VerificationType = VerificationType.COSIGN
    failure_action: FailureAction | None = None
    image_references: tuple[str, ...] = ()
    skip_image_references: tuple[str, ...] = ()
    attestors: tuple[AttestorSet, ...] = ()
    attestations: tuple[Attestation, ...] = ()
    repository: str = ""
    cosign_oci11: bool = False
    mutate_digest: bool = True
    verify_digest: bool = True
    required: bool = True
    check: ImageCheck | None = None
    credentials: RegistryCredentials | None = None
    use_cache: bool = True
    path: Path = ()
    raw: JSONObject = field(default_factory=dict)


def _attestor_set(value: JSON, cursor: Cursor) -> Any:
    return _ATTESTOR_SET(value, cursor)


_REKOR = Record(Rekor, Field("url", text), Field("public_key", text, json="pubkey"), Field("ignore_tlog", boolean))
_CTLOG = Record(
    CTLog,
    Field("ignore_sct", boolean, json="ignoreSCT"),
    Field("public_key", text, json="pubkey"),
    Field("tsa_cert_chain", text),
)
_LOGS = (Field("rekor", _REKOR), Field("ctlog", _CTLOG))

_KEYS = Record(
    Keys,
    Field("public_keys", text),
    Field("signature_algorithm", text),
    Field("kms", text),
    Field(
        "secret",
        Record(SecretReference, Field("name", text, required=True), Field("namespace", text, required=True)),
    ),
    *_LOGS,
)
_CERTIFICATES = Record(Certificates, Field("cert", text), Field("cert_chain", text), *_LOGS)
_KEYLESS = Record(
    Keyless,
    Field("issuer", text),
    Field("issuer_reg_exp", text),
    Field("subject", text),
    Field("subject_reg_exp", text),
    Field("roots", text),
    Field("additional_extensions", map_of(text)),
    *_LOGS,
)
_ATTESTOR = Record(
    Attestor,
    Field("keys", _KEYS),
    Field("certificates", _CERTIFICATES),
    Field("keyless", _KEYLESS),
    Field("attestor", _attestor_set),
    Field("annotations", map_of(text)),
    Field("repository", text),
    Field("signature_algorithm", text),
)
_ATTESTOR_SET = Record(AttestorSet, Field("count", integer), Field("entries", list_of(_ATTESTOR)))

ATTESTORS = list_of(_ATTESTOR_SET)

_ATTESTATION = Record(
    Attestation,
    Field("name", text),
    Field("type", text),
    Field("predicate_type", text),
    Field("attestors", ATTESTORS),
    Field("conditions", list_of(free)),
)

_LEGACY = ("image", "key", "roots", "subject", "issuer", "additionalExtensions", "annotations")


def _verification(
    *,
    path: Path,
    raw: JSONObject,
    image: str = "",
    key: str = "",
    roots: str = "",
    subject: str = "",
    issuer: str = "",
    additional_extensions: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    **values: Any,
) -> ImageVerification:
    verification = ImageVerification(path=path, raw=raw, **values)
    if image:
        verification = replace(verification, image_references=(*verification.image_references, image))
    if not (key or issuer or (image and annotations)):
        return verification
    attestor = Attestor(annotations=annotations or {}, path=path)
    if key:
        attestor = replace(attestor, keys=Keys(public_keys=key))
    elif issuer:
        keyless = Keyless(
            issuer=issuer, subject=subject, roots=roots, additional_extensions=additional_extensions or {}
        )
        attestor = replace(attestor, keyless=keyless)
    return _with_legacy(verification, AttestorSet((attestor,), path=path))


def _with_legacy(verification: ImageVerification, legacy: AttestorSet) -> ImageVerification:
    # Kyverno loses the legacy attestor when there are attestations, so that they are read unverified; here it counts.
    if verification.attestations:
        attestations = tuple(replace(each, attestors=(*each.attestors, legacy)) for each in verification.attestations)
        return replace(verification, attestations=attestations)
    return replace(verification, attestors=(*verification.attestors, legacy))


VERIFY_IMAGES = Record(
    _verification,
    Field("type", choice(VerificationType)),
    Field("failure_action", FAILURE_ACTION),
    Field("image_references", list_of(text)),
    Field("skip_image_references", list_of(text)),
    Field("attestors", ATTESTORS),
    Field("attestations", list_of(_ATTESTATION)),
    Field("repository", text),
    Field("cosign_oci11", boolean, json="cosignOCI11"),
    Field("mutate_digest", boolean),
    Field("verify_digest", boolean),
    Field("required", boolean),
    Field("check", Record(ImageCheck, Field("message", text), Field("deny", DENY)), json="validate"),
    Field("credentials", REGISTRY_CREDENTIALS, json="imageRegistryCredentials"),
    Field("use_cache", boolean),
    Field("image", text),
    Field("key", text),
    Field("roots", text),
    Field("subject", text),
    Field("issuer", text),
    Field("additional_extensions", map_of(text)),
    Field("annotations", map_of(text)),
    extras=("path", "raw"),
)
VERIFY_IMAGES_WITHOUT_LEGACY = VERIFY_IMAGES.without(*_LEGACY)
