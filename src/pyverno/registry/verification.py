"""Verification of one image outside of a review: demands, verdicts, and the ledger of each check."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final

from pyverno.engine.imagesource import ImageAccess, ResolvedImage, SignatureQuery, answer_of
from pyverno.engine.imageverification.notary import check_notary, try_notary
from pyverno.errors import UsageError, VerificationError
from pyverno.images.verification.attestors import Attestor
from pyverno.images.verification.attestorsets import Trust, UnresolvedSet, read_attestor_sets
from pyverno.images.verification.certificates import read_certificates
from pyverno.images.verification.ledger import Ledger
from pyverno.images.verification.notary.verify import NotaryAttestor, NotaryTarget
from pyverno.images.verification.payloads import IMAGE_SIGNATURE, predicate_type_of
from pyverno.images.verification.signature import Signature, read_stored
from pyverno.images.verification.stored import SignatureForm, StoredSignature
from pyverno.images.verification.trust import TrustRoot, read_trust_root
from pyverno.images.verification.verify import Expected, verify_set
from pyverno.kube.imageref.reference import parse_reference
from pyverno.kube.json import JSONObject
from pyverno.registry.images import BlockingImages
from pyverno.registry.owncredentials import own_credentials
from pyverno.registry.ownimages import OwnRegistryImages
from pyverno.registry.transport import RegistrySettings
from pyverno.value import dataclass, field

__all__ = ["DemandVerdict", "ImageChecks", "ImageVerdict", "key_entry", "keyless_entry", "verify_image"]

_SIGNATURES: Final = (SignatureForm.SIGNATURE_TAG, SignatureForm.BUNDLE)
_ATTESTATIONS: Final = (SignatureForm.ATTESTATION_TAG, SignatureForm.BUNDLE)


@dataclass(frozen=True, slots=True)
class DemandVerdict:
    """The verdict on one demand, its reason if it is not met, and the ledgers by the path of their attestor."""

    demand: str
    passes: bool
    problems: tuple[str, ...] = ()
    checks: tuple[tuple[str, Ledger], ...] = field(default=())

    def to_json(self) -> JSONObject:
        """Return the verdict as `pyverno verify -o json` prints it."""
        checks = [
            {"attestor": path, "passes": ledger.passes, "entries": [each.to_json() for each in ledger.entries]}
            for path, ledger in self.checks
        ]
        return {"demand": self.demand, "passes": self.passes, "problems": list(self.problems), "checks": checks}


@dataclass(frozen=True, slots=True)
class ImageVerdict:
    """An image, the digest that its reference named, and a verdict for each demand."""

    image: str
    digest: str
    demands: tuple[DemandVerdict, ...]

    @property
    def verified(self) -> bool:
        """Whether demands exist and all of them are met."""
        return bool(self.demands) and all(each.passes for each in self.demands)

    def to_json(self) -> JSONObject:
        """Return the verdict as `pyverno verify -o json` prints it."""
        return {
            "image": self.image,
            "digest": self.digest,
            "verified": self.verified,
            "demands": [each.to_json() for each in self.demands],
        }


class ImageChecks:
    """Checks the signatures and attestations of one image against demands."""

    def __init__(
        self,
        image: str,
        source: BlockingImages,
        root: TrustRoot | None,
        missing_root: str = "`trust_root` is needed, or `ignore_log` for keys",
    ) -> None:
        """Resolve the image; raises HostError. `missing_root` is the text of the error where a root is needed."""
        self._missing_root = missing_root
        self._source = source
        self._root = root
        self._trust = Trust(self._trusted, source.public_key)
        self._now = int(time.time())
        self._repository = parse_reference(image).repository
        self.image: ResolvedImage = answer_of(source.resolve([(image, ImageAccess())])[0])

    def _trusted(self) -> TrustRoot:
        if self._root is None:
            raise UsageError(self._missing_root)
        return self._root

    def check(
        self,
        title: str,
        attestors: UnresolvedSet,
        predicate_type: str = "",
        forms: Sequence[SignatureForm] = (),
    ) -> DemandVerdict:
        """Return whether attestors signed the image, or attestations of it of a type.

        `forms` are those in which the signatures may be stored: layers and bundles if empty.
        """
        forms = forms or (_ATTESTATIONS if predicate_type else _SIGNATURES)
        if SignatureForm.NOTARY in forms:
            return self._check_notary_set(title, attestors)
        expected = Expected(self.image.digest, predicate_type or IMAGE_SIGNATURE, self._now)
        problems: list[str] = []

        def signatures(entry: Attestor) -> list[Signature]:
            found = []
            for stored in (each for form in forms for each in self._fetch_stored(form, entry.repository)):
                try:
                    found.append(read_stored(stored))
                except VerificationError as error:
                    problems.append(error.message)
            return found

        result = verify_set(attestors.resolve(self._trust), signatures, expected)
        return DemandVerdict(
            title, result.passes, () if result.passes else (*result.problems, *problems), result.checks
        )

    def check_notary(self, title: str, certificates: str) -> DemandVerdict:
        """Return whether a Notary signature of the image leads to certificates (PEM)."""
        attestor = NotaryAttestor(title, read_certificates(certificates))
        stored = self._fetch_stored(SignatureForm.NOTARY)
        tries = try_notary(attestor, stored, self._notary_target(), self._source.revocation)
        checks = tuple((title, each) for each in tries.ledgers)
        return DemandVerdict(title, not tries.problems, tries.problems, checks)

    def _check_notary_set(self, title: str, attestors: UnresolvedSet) -> DemandVerdict:
        found = check_notary(
            attestors.resolve(self._trust),
            lambda entry: self._fetch_stored(SignatureForm.NOTARY, entry.repository),
            self._notary_target(),
            lambda: None,
            self._source.revocation,
        )
        return DemandVerdict(title, found.passes, () if found.passes else found.problems, found.checks)

    def _notary_target(self) -> NotaryTarget:
        return NotaryTarget(self.image.digest, self.image.size, self._now, self.image.media_type)

    def _fetch_stored(self, form: SignatureForm, repository: str = "") -> tuple[StoredSignature, ...]:
        query = SignatureQuery(repository or self._repository, self.image.digest, form, ImageAccess())
        return answer_of(self._source.signatures([query])[0])


def key_entry(key: str, *, ignore_log: bool = False) -> tuple[UnresolvedSet, ...]:
    """Return the attestors of a key: PEM, or its name in a key management system."""
    keys: JSONObject = {"publicKeys": key, "rekor": {"ignoreTlog": ignore_log}}
    return read_attestor_sets([{"entries": [{"keys": keys}]}], "")


def keyless_entry(identity: str, issuer: str) -> tuple[UnresolvedSet, ...]:
    """Return the attestors of a keyless identity; `*` and `?` are wildcards."""
    return read_attestor_sets([{"entries": [{"keyless": {"subject": identity, "issuer": issuer}}]}], "")


def verify_image(
    image: str,
    *,
    keys: Sequence[str] = (),
    identity: str = "",
    issuer: str = "",
    notary_certificates: str = "",
    attestation: str = "",
    trust_root: bytes | None = None,
    ignore_log: bool = False,
    allow_http: bool = False,
) -> ImageVerdict:
    """Verify the signatures of an image, or its attestations of a type, and return every check.

    Each of `keys` (PEM), the keyless `identity` of an `issuer`, and `notary_certificates` (PEM) must have signed.
    `trust_root` is the content of a `trusted_root.json`, which logged and keyless signatures need. The credentials of
    docker and podman are used. Blocks while it reads the registry.

    Raises UsageError when nothing is demanded or a trust root is missing, HostError when the registry cannot be read,
    VerificationError for keys and certificates that cannot be read. An invalid signature is a verdict, not an error.
    """
    root = read_trust_root(trust_root) if trust_root is not None else None
    demands: list[tuple[str, UnresolvedSet]] = []
    for number, key in enumerate(keys, 1):
        demands.extend((f"key {number}", each) for each in key_entry(key, ignore_log=ignore_log))
    if identity or issuer:
        demands.extend(("identity", each) for each in keyless_entry(identity, issuer))
    if not demands and not notary_certificates:
        raise UsageError("nothing is demanded of the image: give keys, an identity or certificates")
    with OwnRegistryImages(own_credentials(), settings=RegistrySettings(allows_http=allow_http)) as own:
        checks = ImageChecks(image, own.source, root)
        found = [checks.check(title, each, predicate_type_of(attestation)) for title, each in demands]
        if notary_certificates:
            found.append(checks.check_notary("notary", notary_certificates))
    return ImageVerdict(image, checks.image.digest, tuple(found))
