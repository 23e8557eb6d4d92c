"""One image of one review: its digest, and its signatures held against attestors.

The tag is resolved once in a review, whoever asks; signatures, their subject, the patch and the cache use that digest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from pyverno.engine.broker import Broker
from pyverno.engine.imagesource import ImageAccess, ResolvedImage
from pyverno.engine.imageverification.notary import check_notary
from pyverno.errors import HostError, VerificationError
from pyverno.images.info import ImageInfo
from pyverno.images.verification.attestors import Attestor, AttestorSet
from pyverno.images.verification.attestorsets import Trust
from pyverno.images.verification.notary.verify import NotaryTarget
from pyverno.images.verification.payloads import IMAGE_SIGNATURE
from pyverno.images.verification.signature import (
    Signature,
    read_attestation_layer,
    read_bundle,
    read_signature_layer,
)
from pyverno.images.verification.stored import SignatureForm, StoredSignature
from pyverno.images.verification.verify import Expected, SetFinding, verify, verify_set
from pyverno.lang.runtime import Runtime
from pyverno.value import dataclass

__all__ = ["ImageAtWork", "StatementFinding"]

_NANOSECONDS: Final = 1_000_000_000
_READERS: Final[dict[SignatureForm, Callable[[StoredSignature], Signature]]] = {
    SignatureForm.SIGNATURE_TAG: lambda stored: read_signature_layer(stored.blob, stored.annotations),
    SignatureForm.ATTESTATION_TAG: lambda stored: read_attestation_layer(stored.blob, stored.annotations),
    SignatureForm.BUNDLE: lambda stored: read_bundle(stored.blob),
}


class _Read(NamedTuple):
    """Signatures that could be read, and why others could not."""

    signatures: tuple[Signature, ...]
    problems: tuple[str, ...]


class StatementFinding(NamedTuple):
    """Attestations of one type held against a set: the verdict, and those that one of its attestors signed."""

    found: SetFinding
    verified: tuple[Signature, ...]
    of_type: int


@dataclass(frozen=True, slots=True)
class ImageAtWork:
    """An image in one rule; `access` says with which credentials it is read."""

    image: ImageInfo
    access: ImageAccess
    broker: Broker
    runtime: Runtime

    @property
    def repository(self) -> str:
        """The repository of the image, with its registry."""
        return f"{self.image.registry}/{self.image.path}" if self.image.registry else self.image.path

    @property
    def trust(self) -> Trust:
        """Whom the installation trusts."""
        return Trust(self.broker.trust_root, self.broker.public_key)

    def resolve(self) -> ResolvedImage:
        """Return the image that the reference names, as it was when this review first asked; raises HostError."""
        # whom a registry lets read is part of the answer: one tenant's credentials must not answer another's question
        reference = self.image.reference
        key = ("image", reference, self.broker.namespace, repr(self.access))
        found: ResolvedImage | HostError | None = self.runtime.memory.get(key)
        if found is None:
            try:
                found = self.broker.resolve_image(reference, self.access)
            except HostError as error:
                found = error.copied()
            self.runtime.memory[key] = found
        if isinstance(found, HostError):
            raise found.copied()
        if self.image.digest and found.digest != self.image.digest:
            raise HostError(f"the registry answers with another image than {self.image.digest}")
        return found

    def now(self) -> int:
        """Return the present time in seconds since 1970."""
        return self.runtime.host.now() // _NANOSECONDS

    def check_signatures(self, attestors: AttestorSet, form: SignatureForm) -> SetFinding:
        """Hold the signatures of the image against a set; raises HostError when they cannot be fetched."""
        if form is SignatureForm.NOTARY:
            image = self.resolve()
            target = NotaryTarget(image.digest, image.size, self.now(), image.media_type)
            check_deadline = self.runtime.budget.check_deadline
            return check_notary(attestors, lambda entry: self._stored(form, entry.repository), target, check_deadline)
        expected = Expected(self.resolve().digest, IMAGE_SIGNATURE, self.now())
        return self._held(attestors, lambda entry: self._read(form, entry.repository), expected)

    def check_statements(self, attestors: AttestorSet, form: SignatureForm, predicate_type: str) -> StatementFinding:
        """Hold the attestations of one type against a set; those of other types say nothing about this one."""
        expected = Expected(self.resolve().digest, predicate_type, self.now())

        def of_type(entry: Attestor) -> _Read:
            read = self._read(form, entry.repository)
            kept = [each for each in read.signatures if each.payload.predicate_type == predicate_type]
            return _Read(tuple(kept), read.problems)

        found = self._held(attestors, of_type, expected)
        verified: dict[int, Signature] = {}
        seen: set[int] = set()
        for entry in _attestors_in(attestors):
            self.runtime.budget.check_deadline()
            for each in of_type(entry).signatures:
                seen.add(id(each))
                if id(each) not in verified and verify(entry, each, expected).ledger.passes:
                    verified[id(each)] = each
        return StatementFinding(found, tuple(verified.values()), len(seen))

    def _held(self, attestors: AttestorSet, read: Callable[[Attestor], _Read], expected: Expected) -> SetFinding:
        problems: list[str] = []

        def signatures(entry: Attestor) -> Sequence[Signature]:
            found = read(entry)
            problems.extend(f"{entry.path}: {each}" for each in found.problems)
            return found.signatures

        found = verify_set(attestors, signatures, expected, self.runtime.budget.check_deadline)
        if found.passes or not problems:
            return found
        told = dict.fromkeys((*found.problems, *problems))
        return SetFinding(found.path, found.verified, found.required, found.findings, tuple(told))

    def _stored(self, form: SignatureForm, repository: str) -> tuple[StoredSignature, ...]:
        """Return what is stored in a repository, fetched once in a review."""
        place = repository or self.repository
        digest = self.resolve().digest
        key = ("stored", place, digest, form, self.broker.namespace, repr(self.access))
        found: tuple[StoredSignature, ...] | HostError | None = self.runtime.memory.get(key)
        if found is None:
            try:
                found = self.broker.image_signatures(place, digest, form, self.access)
            except HostError as error:
                found = error
            self.runtime.memory[key] = found
        if isinstance(found, HostError):
            raise found
        return found

    def _read(self, form: SignatureForm, repository: str) -> _Read:
        """Return the signatures in a repository, fetched once in a review."""
        place = repository or self.repository
        digest = self.resolve().digest
        key = ("signatures", place, digest, form, self.broker.namespace, repr(self.access))
        found: _Read | HostError | None = self.runtime.memory.get(key)
        if found is None:
            try:
                found = _read_all(self.broker.image_signatures(place, digest, form, self.access))
            except HostError as error:
                found = error.copied()
            self.runtime.memory[key] = found
        if isinstance(found, HostError):
            raise found.copied()
        return found


def _read_all(stored: Sequence[StoredSignature]) -> _Read:
    signatures, problems = [], []
    for each in stored:
        try:
            signatures.append(_READERS[each.form](each))
        except VerificationError as error:
            problems.append(error.message)
    return _Read(tuple(signatures), tuple(problems))


def _attestors_in(attestors: AttestorSet) -> Sequence[Attestor]:
    found: list[Attestor] = []
    for entry in attestors.entries:
        found.extend(_attestors_in(entry) if isinstance(entry, AttestorSet) else (entry,))
    return found
