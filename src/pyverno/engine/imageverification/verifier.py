"""One image of one review: its digest, and the verification of its signatures by attestors.

The tag is resolved once in a review, for all rules; signatures, their subject, the patch and the cache use that digest.
The first read of one image reads the same of the other images of the object, in parallel.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from typing import Final, NamedTuple, TypeVar

from pyverno.engine.broker import Broker
from pyverno.engine.imagesource import ImageAccess, ResolvedImage, SignatureQuery, answer_of
from pyverno.engine.imageverification.notary import check_notary
from pyverno.errors import DocumentError, EvaluationError, HostError, VerificationError
from pyverno.images.info import ImageInfo
from pyverno.images.verification.attestors import Attestor, AttestorSet
from pyverno.images.verification.attestorsets import Trust
from pyverno.images.verification.counting import SetFinding, Signers
from pyverno.images.verification.ledger import Ledger
from pyverno.images.verification.notary.verify import NotaryTarget
from pyverno.images.verification.payloads import IMAGE_SIGNATURE
from pyverno.images.verification.signature import Signature, read_stored
from pyverno.images.verification.stored import SignatureForm, StoredArtifact, StoredSignature
from pyverno.images.verification.strictjson import MAX_VALUES
from pyverno.images.verification.verify import Expected, verify, verify_set
from pyverno.kube.json import JSON, decode
from pyverno.kube.jsonscan import has_more_values
from pyverno.lang.runtime import Runtime
from pyverno.value import dataclass, replace

__all__ = ["ArtifactFinding", "ImageAtWork", "StatementFinding"]

_T = TypeVar("_T")
_NANOSECONDS: Final = 1_000_000_000


class _Read(NamedTuple):
    """Signatures that could be read, and why others could not."""

    signatures: tuple[Signature, ...]
    problems: tuple[str, ...]


class StatementFinding(NamedTuple):
    """Attestations of one type held against a set: the verdict, and those that one of its attestors signed."""

    found: SetFinding
    verified: tuple[Signature, ...]
    of_type: int


class ArtifactFinding(NamedTuple):
    """Artifacts of one type held against a set: the best verdict, and those whose own signatures reach its count."""

    found: SetFinding
    verified: tuple[StoredArtifact, ...]
    of_type: int


@dataclass(frozen=True, slots=True)
class ImageAtWork:
    """An image in one rule, the credentials to read it, and what returns the images that are read at the same time."""

    image: ImageInfo
    access: ImageAccess
    broker: Broker
    runtime: Runtime
    others: Callable[[], Sequence[ImageAtWork]] = tuple

    @property
    def repository(self) -> str:
        """The repository of the image, with its registry."""
        return f"{self.image.registry}/{self.image.path}" if self.image.registry else self.image.path

    @property
    def trust(self) -> Trust:
        """The trust of the installation."""
        return Trust(self.broker.trust_root, self.broker.public_key)

    def resolve(self) -> ResolvedImage:
        """Return the image that the reference names, as this review first read it; raises HostError."""
        found: ResolvedImage = self._once_together(
            ImageAtWork._image_key,
            lambda images: self.broker.resolve_images([(each.image.reference, each.access) for each in images]),
        )
        if self.image.digest and found.digest != self.image.digest:
            raise HostError(f"the registry answers with another image than {self.image.digest}")
        return found

    def _image_key(self) -> tuple[object, ...]:
        # the credentials are part of the key: one tenant must not get what another's credentials could read
        return ("image", self.image.reference, self.broker.namespace, repr(self.access))

    def _known_digest(self) -> str:
        """Return the digest that the reference names, "" as long as it is not known."""
        found = self.runtime.memory.get(self._image_key())
        return found.digest if isinstance(found, ResolvedImage) else ""

    def now(self) -> int:
        """Return the present time in seconds since 1970."""
        return self.runtime.host.now() // _NANOSECONDS

    def check_signatures(
        self, attestors: AttestorSet, form: SignatureForm, counted: Signers = frozenset()
    ) -> SetFinding:
        """Hold the signatures of the image against a set; raises HostError when they cannot be fetched.

        Signers of `counted` do not count.
        """
        if form is SignatureForm.NOTARY:
            image = self.resolve()
            return self._check_notary(attestors, image, counted)
        expected = Expected(self.resolve().digest, IMAGE_SIGNATURE, self.now())
        return self._check_set(attestors, lambda entry: self._read(form, entry), expected, counted)

    def check_artifacts(
        self, attestors: AttestorSet, artifact_type: str, counted: Signers = frozenset()
    ) -> ArtifactFinding:
        """Hold the Notary signatures of artifacts that refer to the image against a set; raises HostError.

        Each artifact stands for itself: a signature of one proves nothing of another.
        """
        place, digest = self.repository, self.resolve().digest
        stored = self._once(
            ("artifacts", place, digest, artifact_type, self.broker.namespace, repr(self.access)),
            lambda: self.broker.image_artifacts(place, digest, artifact_type, self.access),
        )
        best = SetFinding(attestors.path, 0, attestors.count, (), (f"no attestation of type `{artifact_type}` found",))
        verified: list[StoredArtifact] = []
        problems: list[str] = []
        checks: list[tuple[str, Ledger]] = []
        for each in stored:
            self.runtime.budget.check_deadline()
            target = ResolvedImage(each.digest, each.media_type, each.size)
            found = self._check_notary(attestors, target, counted)
            checks.extend(found.checks)
            if found.passes:
                verified.append(each)
                best = found
            else:
                problems.extend(f"{each.digest}: {problem}" for problem in found.problems)
        if not verified and problems:
            best = SetFinding(attestors.path, 0, attestors.count, (), tuple(problems))
        best = replace(best, checks=tuple(checks))
        return ArtifactFinding(best, tuple(verified), len(stored))

    def artifact_json(self, artifact: StoredArtifact) -> JSON:
        """Return the JSON in an artifact; raises HostError, and EvaluationError for something else."""
        place = (self.repository, artifact.digest, self.broker.namespace, repr(self.access))
        content = self._once(
            ("artifact", *place), lambda: self.broker.artifact_content(self.repository, artifact, self.access)
        )
        return self._once(("artifact as JSON", *place), lambda: (_decode_artifact(content, artifact.digest),))[0]

    def _check_notary(self, attestors: AttestorSet, target: ResolvedImage, counted: Signers) -> SetFinding:
        described = NotaryTarget(target.digest, target.size, self.now(), target.media_type)
        return check_notary(
            attestors,
            lambda entry: self._fetch_stored(SignatureForm.NOTARY, entry, target.digest),
            described,
            self.runtime.budget.check_deadline,
            self._revocation,
            counted=counted,
        )

    def _revocation(self, url: str, request: bytes) -> bytes:
        return self._once(("revocation", url, request), lambda: self.broker.revocation(url, request))

    def check_statements(
        self, attestors: AttestorSet, form: SignatureForm, predicate_type: str, counted: Signers = frozenset()
    ) -> StatementFinding:
        """Verify the attestations of one type against a set; those of other types do not count."""
        expected = Expected(self.resolve().digest, predicate_type, self.now())

        def of_type(entry: Attestor) -> _Read:
            read = self._read(form, entry)
            kept = [each for each in read.signatures if each.payload.predicate_type == predicate_type]
            return _Read(tuple(kept), read.problems)

        found = self._check_set(attestors, of_type, expected, counted)
        verified: dict[int, Signature] = {}
        seen: set[int] = set()
        for entry in _attestors_in(attestors):
            for each in of_type(entry).signatures:
                self.runtime.budget.check_deadline()
                seen.add(id(each))
                if id(each) not in verified and verify(entry, each, expected).ledger.passes:
                    verified[id(each)] = each
        return StatementFinding(found, tuple(verified.values()), len(seen))

    def _check_set(
        self, attestors: AttestorSet, read: Callable[[Attestor], _Read], expected: Expected, counted: Signers
    ) -> SetFinding:
        problems: list[str] = []

        def signatures(entry: Attestor) -> Sequence[Signature]:
            found = read(entry)
            problems.extend(f"{entry.path}: {each}" for each in found.problems)
            return found.signatures

        found = verify_set(attestors, signatures, expected, self.runtime.budget.check_deadline, counted=counted)
        if found.passes or not problems:
            return found
        distinct = dict.fromkeys((*found.problems, *problems))
        return replace(found, problems=tuple(distinct))

    def _read(self, form: SignatureForm, entry: Attestor) -> _Read:
        """Return the signatures where an attestor has them, fetched and read once in a review."""
        digest = self.resolve().digest
        key = ("signatures", *self._place(entry), digest, form, self.broker.namespace, repr(self._access(entry)))
        return self._once(key, lambda: _read_all(self._fetch_stored(form, entry, digest)))

    def _fetch_stored(self, form: SignatureForm, entry: Attestor, digest: str) -> tuple[StoredSignature, ...]:
        """Return the stored signatures of an attestor, fetched once in a review."""

        def query(image: ImageAtWork) -> SignatureQuery | None:
            known = digest if image is self else image._known_digest()
            place, prefix = image._place(entry)
            return SignatureQuery(place, known, form, image._access(entry), prefix) if known else None

        found: tuple[StoredSignature, ...] = self._once_together(
            lambda image: None if (made := query(image)) is None else ("stored", self.broker.namespace, repr(made)),
            lambda images: self.broker.image_signatures([made for each in images if (made := query(each))]),
        )
        return found

    def _place(self, entry: Attestor) -> tuple[str, str]:
        return entry.repository or self.repository, entry.tag_prefix

    def _access(self, entry: Attestor) -> ImageAccess:
        """Return the access of the image, with the Secrets that an attestor names for its signatures."""
        if not entry.pull_secrets:
            return self.access
        credentials = self.access.credentials or {}
        listed = credentials.get("secrets")
        secrets = [*(listed if isinstance(listed, list) else ()), *entry.pull_secrets]
        return replace(self.access, credentials={**credentials, "secrets": secrets})

    def _once(self, key: tuple[object, ...], fetch: Callable[[], _T]) -> _T:
        """Return an answer that is fetched once in a review, an error of it included."""
        found: _T | HostError | None = self.runtime.memory.get(key)
        if found is None:
            try:
                found = fetch()
            except HostError as error:
                found = error.copied()
            self.runtime.memory[key] = found
        if isinstance(found, HostError):
            raise found.copied()
        return found

    def _once_together(
        self,
        key_of: Callable[[ImageAtWork], tuple[object, ...] | None],
        fetch: Callable[[Sequence[ImageAtWork]], Sequence[_T | HostError]],
    ) -> _T:
        """Return an answer that is fetched once in a review, together with those of the other images.

        Images without a key are left out, and so are those for which the budget has no call left.
        """
        memory = self.runtime.memory
        key = key_of(self)
        if key not in memory:
            wanted = {key: self}
            for each in self.others():
                own = key_of(each)
                if own is not None and own not in memory:
                    wanted.setdefault(own, each)
            chosen = dict(islice(wanted.items(), max(self.runtime.budget.calls, 1)))
            try:
                answers = fetch(tuple(chosen.values()))
            except HostError as error:
                answers = [error.copied() for _ in chosen]
            memory.update(zip(chosen, answers, strict=True))
        found: _T | HostError = memory[key]
        return answer_of(found)


def _read_all(stored: Sequence[StoredSignature]) -> _Read:
    signatures, problems = [], []
    for each in stored:
        try:
            signatures.append(read_stored(each))
        except VerificationError as error:
            problems.append(error.message)
    return _Read(tuple(signatures), tuple(problems))


def _attestors_in(attestors: AttestorSet) -> Sequence[Attestor]:
    found: list[Attestor] = []
    for entry in attestors.entries:
        found.extend(_attestors_in(entry) if isinstance(entry, AttestorSet) else (entry,))
    return found


def _decode_artifact(content: bytes, digest: str) -> JSON:
    """Parse the content of an artifact, which whoever pushes to the repository writes; raises EvaluationError."""
    if has_more_values(content, MAX_VALUES):
        raise EvaluationError(f"the attestation {digest} has more than {MAX_VALUES} values")
    try:
        return decode(content)
    except DocumentError:
        raise EvaluationError(f"the attestation {digest} holds no JSON") from None
