"""ImageValidatingPolicy, as written (`policies.kyverno.io`): images, attestors, and checks.

This module must not fetch or verify anything.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum

from pyverno.kube.yaml.fieldpath import Path
from pyverno.policy.cel.blocks import (
    CONDITIONS,
    VALIDATION_ACTIONS,
    VALIDATIONS,
    Autogen,
    Expression,
    ValidationAction,
    annotation_expressions,
    autogen_record,
    evaluation_record,
    named_expressions,
    optional_expression,
    validation_expressions,
)
from pyverno.policy.cel.policies import COMMON_FIELDS, JUDGING_FIELDS, CelPolicy, CelSpec
from pyverno.policy.document import policy_record
from pyverno.policy.schema import Field, Record, boolean, choice, list_of, map_of, text
from pyverno.policy.validate import AuditAnnotation, CelExpression, NamedExpression
from pyverno.value import dataclass, field

__all__ = [
    "IMAGE_VALIDATING_POLICY",
    "IMAGE_VALIDATING_SPEC",
    "Attestation",
    "Attestor",
    "Certificate",
    "Cosign",
    "Credentials",
    "Ctlog",
    "Given",
    "Identity",
    "ImageReference",
    "ImageValidatingPolicy",
    "ImageValidatingSpec",
    "Key",
    "Keyless",
    "Notary",
    "SignatureSource",
    "Tuf",
    "ValidationConfiguration",
]


class CredentialProvider(StrEnum):
    """A cloud whose own login gives access to its registry."""

    DEFAULT = "default"
    AMAZON = "amazon"
    AZURE = "azure"
    GOOGLE = "google"
    GITHUB = "github"


@dataclass(frozen=True, slots=True)
class ImageReference:
    """Selects images by a glob or by an expression on `ref`; exactly one of them has to be written."""

    glob: str = ""
    expression: Expression | None = None
    path: Path = ()


@dataclass(frozen=True, slots=True)
class Given:
    """A text that is written, or that an expression returns."""

    value: str = ""
    expression: Expression | None = None
    path: Path = ()


@dataclass(frozen=True, slots=True)
class Key:
    """A public key: its text, the URI of a key management system, or an expression that returns it."""

    data: str = ""
    kms: str = ""
    hash_algorithm: str = ""
    expression: Expression | None = None
    path: Path = ()


@dataclass(frozen=True, slots=True)
class Identity:
    """An identity of keyless signing; all given fields must match."""

    issuer: str = ""
    subject: str = ""
    issuer_reg_exp: str = ""
    subject_reg_exp: str = ""
    subject_expression: Expression | None = None
    path: Path = ()


@dataclass(frozen=True, slots=True)
class Keyless:
    """Signing without keys; one of the identities has to fit."""

    identities: tuple[Identity, ...]
    roots: str = ""
    additional_extensions: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Certificate:
    """A certificate and its chain."""

    cert: Given | None = None
    cert_chain: Given | None = None


@dataclass(frozen=True, slots=True)
class SignatureSource:
    """The location of signatures that are not beside the image."""

    repository: str = ""
    tag_prefix: str = ""
    pull_secrets: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Ctlog:
    """The transparency log and timestamp authority that signatures are checked against."""

    url: str = ""
    rekor_pub_key: str = ""
    ct_log_pub_key: str = ""
    tsa_cert_chain: str = ""
    insecure_ignore_tlog: bool = False
    insecure_ignore_sct: bool = False


@dataclass(frozen=True, slots=True)
class Tuf:
    """A repository of trusted roots."""

    mirror: str = ""
    root_path: str = ""
    root_data: str = ""


@dataclass(frozen=True, slots=True)
class Cosign:
    """The verification of signatures made with cosign."""

    key: Key | None = None
    keyless: Keyless | None = None
    certificate: Certificate | None = None
    source: SignatureSource | None = None
    ctlog: Ctlog | None = None
    tuf: Tuf | None = None
    trusted_root: Given | None = None
    annotations: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Notary:
    """The verification of signatures made with notation."""

    certs: Given | None = None
    tsa_certs: Given | None = None


@dataclass(frozen=True, slots=True)
class Attestor:
    """A named signer, `attestors.NAME` in expressions: cosign or notary."""

    name: str
    cosign: Cosign | None = None
    notary: Notary | None = None
    path: Path = ()


@dataclass(frozen=True, slots=True)
class Attestation:
    """A named statement about an image, `attestations.NAME` in expressions; the types are those of its two forms."""

    name: str
    intoto: str = ""
    referrer: str = ""
    path: Path = ()


@dataclass(frozen=True, slots=True)
class Credentials:
    """Credentials for registries."""

    allow_insecure_registry: bool = False
    providers: tuple[CredentialProvider, ...] = ()
    secrets: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ValidationConfiguration:
    """The requirements of every image besides the validations."""

    mutate_digest: bool = True
    verify_digest: bool = True
    required: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageValidatingSpec(CelSpec):
    """The spec of an ImageValidatingPolicy; no validation actions mean Deny (see `actions`)."""

    attestors: tuple[Attestor, ...]
    validations: tuple[CelExpression, ...]
    match_image_references: tuple[ImageReference, ...] = ()
    images: tuple[NamedExpression, ...] = ()
    attestations: tuple[Attestation, ...] = ()
    credentials: Credentials | None = None
    validation_configurations: ValidationConfiguration = field(default_factory=ValidationConfiguration)
    validation_actions: tuple[ValidationAction, ...] = ()
    audit_annotations: tuple[AuditAnnotation, ...] = ()
    autogen: Autogen = field(default_factory=Autogen)

    @property
    def actions(self) -> tuple[ValidationAction, ...]:
        """The effects of a failed validation; the default is Deny."""
        return self.validation_actions or (ValidationAction.DENY,)

    def expressions(self) -> Iterator[Expression]:
        """Yield every expression with its path, those of attestors included."""
        yield from CelSpec.expressions(self)
        yield from (each.expression for each in self.match_image_references if each.expression is not None)
        yield from named_expressions(self.images)
        yield from (found for each in self.attestors for found in _attestor_expressions(each) if found is not None)
        yield from validation_expressions(self.validations)
        yield from annotation_expressions(self.audit_annotations)


def _attestor_expressions(attestor: Attestor) -> Iterator[Expression | None]:
    given: list[Given | None] = []
    if attestor.notary is not None:
        given += [attestor.notary.certs, attestor.notary.tsa_certs]
    if attestor.cosign is not None:
        cosign = attestor.cosign
        if cosign.key is not None:
            yield cosign.key.expression
        if cosign.keyless is not None:
            yield from (identity.subject_expression for identity in cosign.keyless.identities)
        if cosign.certificate is not None:
            given += [cosign.certificate.cert, cosign.certificate.cert_chain]
        given.append(cosign.trusted_root)
    yield from (each.expression for each in given if each is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageValidatingPolicy(CelPolicy):
    """An ImageValidatingPolicy or NamespacedImageValidatingPolicy."""

    spec: ImageValidatingSpec


def _reference(*, path: Path, expression: str = "", glob: str = "") -> ImageReference:
    return ImageReference(glob, optional_expression(path=path, expression=expression), path)


def _build_given(*, path: Path, expression: str = "", value: str = "") -> Given:
    return Given(value, optional_expression(path=path, expression=expression), path)


def _key(*, path: Path, expression: str = "", **values: str) -> Key:
    return Key(expression=optional_expression(path=path, expression=expression), path=path, **values)


def _identity(*, path: Path, subject_expression: str = "", **values: str) -> Identity:
    found = Expression(subject_expression, (*path, "subjectExpression")) if subject_expression else None
    return Identity(subject_expression=found, path=path, **values)


def _tuf(*, mirror: str = "", root: Mapping[str, str] | None = None) -> Tuf:
    place = root or {}
    return Tuf(mirror, place.get("path", ""), place.get("data", ""))


def _name(*, name: str = "") -> str:
    return name


def _type(*, type: str) -> str:
    return type


_GIVEN = Record(_build_given, Field("value", text), Field("expression", text), extras=("path",))
_KEY = Record(_key, *(Field(name, text) for name in ("data", "kms", "hash_algorithm", "expression")), extras=("path",))
_IDENTITY = Record(
    _identity,
    Field("issuer", text),
    Field("subject", text),
    Field("issuer_reg_exp", text),
    Field("subject_reg_exp", text),
    Field("subject_expression", text),
    extras=("path",),
)
_KEYLESS = Record(
    Keyless,
    Field("identities", list_of(_IDENTITY), required=True),
    Field("roots", text),
    Field("additional_extensions", map_of(text)),
)
_CTLOG = Record(
    Ctlog,
    Field("url", text),
    Field("rekor_pub_key", text),
    Field("ct_log_pub_key", text),
    Field("tsa_cert_chain", text),
    Field("insecure_ignore_tlog", boolean),
    Field("insecure_ignore_sct", boolean, json="insecureIgnoreSCT"),
)
_SOURCE = Record(
    SignatureSource,
    Field("repository", text),
    Field("tag_prefix", text),
    Field("pull_secrets", list_of(Record(_name, Field("name", text))), json="PullSecrets"),
)
_TUF = Record(_tuf, Field("mirror", text), Field("root", Record(dict, Field("path", text), Field("data", text))))
_COSIGN = Record(
    Cosign,
    Field("key", _KEY),
    Field("keyless", _KEYLESS),
    Field("certificate", Record(Certificate, Field("cert", _GIVEN), Field("cert_chain", _GIVEN))),
    Field("source", _SOURCE),
    Field("ctlog", _CTLOG),
    Field("tuf", _TUF),
    Field("trusted_root", _GIVEN),
    Field("annotations", map_of(text)),
)
_TYPE = Record(_type, Field("type", text, required=True))

IMAGE_VALIDATING_SPEC = Record(
    ImageValidatingSpec,
    *COMMON_FIELDS,
    *JUDGING_FIELDS,
    Field(
        "match_image_references",
        list_of(Record(_reference, Field("glob", text), Field("expression", text), extras=("path",))),
    ),
    Field("images", CONDITIONS),
    Field(
        "attestors",
        list_of(
            Record(
                Attestor,
                Field("name", text, required=True),
                Field("cosign", _COSIGN),
                Field("notary", Record(Notary, Field("certs", _GIVEN), Field("tsa_certs", _GIVEN))),
            )
        ),
        required=True,
    ),
    Field(
        "attestations",
        list_of(
            Record(Attestation, Field("name", text, required=True), Field("intoto", _TYPE), Field("referrer", _TYPE))
        ),
    ),
    Field(
        "credentials",
        Record(
            Credentials,
            Field("allow_insecure_registry", boolean),
            Field("providers", list_of(choice(CredentialProvider))),
            Field("secrets", list_of(text)),
        ),
    ),
    Field(
        "validation_configurations",
        Record(
            ValidationConfiguration,
            Field("mutate_digest", boolean),
            Field("verify_digest", boolean),
            Field("required", boolean),
        ),
    ),
    Field("validations", VALIDATIONS, required=True),
    Field("validation_actions", VALIDATION_ACTIONS),
    Field("evaluation", evaluation_record("admission", "background")),
    Field("autogen", autogen_record()),
)

IMAGE_VALIDATING_POLICY = policy_record(ImageValidatingPolicy, IMAGE_VALIDATING_SPEC)
