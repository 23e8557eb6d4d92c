"""Images as the CEL functions of an ImageValidatingPolicy verify them.

An expression receives the number of attestors that verified an image; the reasons of the others are kept for the texts
of a denial. A registry that fails is an error of the expression, never a lower count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from pyverno.engine.cel.brokerhost import BrokerHost
from pyverno.engine.imagesource import ImageAccess
from pyverno.engine.imageverification.verifier import ImageAtWork
from pyverno.errors import EvaluationError, VerificationError
from pyverno.images.info import ImageInfo
from pyverno.images.verification.attestors import Attestor, AttestorSet
from pyverno.images.verification.attestorsets import Trust
from pyverno.images.verification.counting import SetFinding, Signers
from pyverno.images.verification.ledger import Ledger
from pyverno.images.verification.stored import SignatureForm, StoredArtifact
from pyverno.kube.json import JSON, JSONObject
from pyverno.lang.cel import Program
from pyverno.lang.cel.faults import OperandError
from pyverno.lang.cel.values import Value
from pyverno.lang.runtime import Runtime
from pyverno.value import dataclass, field

__all__ = ["ImageAttestation", "ImageAttestor", "ImageHost", "failed_checks", "verified_images"]

Evaluate = Callable[[Program], Value]

_VERIFIED: Final = "verified images"
_FAILED: Final = "failed image checks"


@dataclass(frozen=True, slots=True)
class ImageAttestor:
    """A named attestor; `build` evaluates its expressions on first use, or raises the reason why it is unusable."""

    name: str
    build: Callable[[Evaluate, Trust], Attestor]
    is_notary: bool = False


@dataclass(frozen=True, slots=True)
class ImageAttestation:
    """A named attestation: the predicate type of a statement, or the artifact type of a referrer."""

    name: str
    predicate_type: str = ""
    artifact_type: str = ""


def verified_images(runtime: Runtime) -> dict[str, bool]:
    """Return which images any policy of this review verified: False where each check failed."""
    found: dict[str, bool] = runtime.memory.setdefault(_VERIFIED, {})
    return found


def failed_checks(runtime: Runtime) -> set[int]:
    """Return the policies of this review whose validations failed, by the identity of what selects their images."""
    found: set[int] = runtime.memory.setdefault(_FAILED, set())
    return found


@dataclass(slots=True)
class ImageHost(BrokerHost):
    """Answers the calls of one policy about the images that it matched.

    `problems` lists failed verifications, `checks` the ledgers of all with image and attestor.
    """

    runtime: Runtime = field(default_factory=Runtime)
    images: Mapping[str, ImageInfo] = field(default_factory=dict)
    attestors: Mapping[str, ImageAttestor] = field(default_factory=dict)
    attestations: Mapping[str, ImageAttestation] = field(default_factory=dict)
    credentials: JSONObject | None = None
    evaluate: Callable[[], Evaluate | None] | None = None
    problems: list[str] = field(default_factory=list)
    checks: list[tuple[str, Ledger]] = field(default_factory=list)
    payloads: dict[tuple[str, str], JSON | StoredArtifact] = field(default_factory=dict)
    built: dict[str, Attestor] = field(default_factory=dict)

    def verify_image(self, image: str, attestors: list[JSON], attestation: str | None) -> int:
        """Return how many attestors verify an image, or an attestation of it; 0 for one that is not matched.

        A signer counts once, whatever attestors it satisfies.
        """
        if image not in self.images:
            return 0
        demanded = None if attestation is None else self._attestation(attestation)
        names = dict.fromkeys(self._name(each) for each in attestors)
        count, repeated = self._count_signed(image, names, demanded)
        if repeated:
            # one that was taken by the attestor of another may be the only one of its own
            count = max(count, self._count_signed(image, (*repeated, *names), demanded)[0])
        if names:
            verified = verified_images(self.runtime)
            verified[image] = verified.get(image, False) or count > 0
        return count

    def image_payload(self, image: str, attestation: JSON) -> JSON:
        """Return the content of an attestation that was verified before in this evaluation.

        Of an in-toto attestation that is the whole statement, of a referrer the JSON of its layer.
        """
        demanded = self._attestation(attestation)
        try:
            found = self.payloads[image, demanded.name]
        except KeyError:
            # Kyverno: the text is spelled so; it reads referrers unverified, which proves nothing
            kind = "referrer" if demanded.artifact_type else "intoto"
            text = f"{kind} attestation payload cannot be fetch before verifying {kind} attestation"
            raise OperandError(text, text) from None
        return self.at_work(image).artifact_json(found) if isinstance(found, StoredArtifact) else found

    def image_metadata(self, reference: str) -> JSONObject:
        """Return a registry's data about an image, read with the credentials of the policy."""
        if self.credentials is None:
            return BrokerHost.image_metadata(self, reference)
        return self.image_answer(self.broker.described_image(reference, ImageAccess(self.credentials)))

    def at_work(self, image: str) -> ImageAtWork:
        """Return a matched image with the credentials of the policy."""
        return self._work(self.images[image], self._works)

    def _works(self) -> Sequence[ImageAtWork]:
        return [self._work(each) for each in self.images.values()]

    def _work(self, image: ImageInfo, others: Callable[[], Sequence[ImageAtWork]] = tuple) -> ImageAtWork:
        return ImageAtWork(image, ImageAccess(self.credentials), self.broker, self.runtime, others)

    def _count_signed(
        self, image: str, names: Iterable[str], attestation: ImageAttestation | None
    ) -> tuple[int, Sequence[str]]:
        """Return how many attestors verify, each by a signer of its own, and those whose only signers are taken."""
        signers: Signers = frozenset()
        count, repeated = 0, []
        for name in dict.fromkeys(names):
            found = self._verify(image, name, attestation, signers)
            count += found.passes
            signers |= found.signers  # guard: a signer counts once among attestors
            if found.repeats:
                repeated.append(name)
        return count, repeated

    def _verify(self, image: str, name: str, attestation: ImageAttestation | None, counted: Signers) -> SetFinding:
        """Return whether an attestor signed an image or an attestation of it; why not is kept in `problems`."""
        work, attestor = self.at_work(image), self._build(name)
        attestors = AttestorSet(attestor.path, (attestor,), 1)
        if self.attestors[name].is_notary:
            found = self._notary(work, image, attestors, attestation, counted)
        elif attestation is None:
            found = self._check_signatures(work, image, attestors, counted)
        else:
            found = self._check_statements(work, image, attestors, attestation, counted)
        if not found.passes:
            self.problems.extend(f"{image}: {each}" for each in found.problems)
        return found

    def _check_signatures(self, work: ImageAtWork, image: str, attestors: AttestorSet, counted: Signers) -> SetFinding:
        # Kyverno looks at layers only where there are no bundles; an added signature must not hide the others
        forms = (SignatureForm.BUNDLE, SignatureForm.SIGNATURE_TAG)
        return self._first_pass(image, attestors, (work.check_signatures(attestors, form, counted) for form in forms))

    def _check_statements(
        self, work: ImageAtWork, image: str, attestors: AttestorSet, demanded: ImageAttestation, counted: Signers
    ) -> SetFinding:
        if demanded.artifact_type:
            # Kyverno's text is another; its verifier fails as well, because cosign signs no referrer
            reason = f"{attestors.path}: cosign verifies in-toto attestations only, not referrers"
            return SetFinding(attestors.path, 0, 1, problems=(reason,))

        def found() -> Iterator[SetFinding]:
            for form in (SignatureForm.BUNDLE, SignatureForm.ATTESTATION_TAG):
                statements = work.check_statements(attestors, form, demanded.predicate_type, counted)
                if statements.found.passes:
                    self.payloads[image, demanded.name] = statements.verified[-1].payload.body
                yield statements.found

        return self._first_pass(image, attestors, found())

    def _notary(
        self,
        work: ImageAtWork,
        image: str,
        attestors: AttestorSet,
        demanded: ImageAttestation | None,
        counted: Signers,
    ) -> SetFinding:
        if demanded is None:
            found = work.check_signatures(attestors, SignatureForm.NOTARY, counted)
            return self._first_pass(image, attestors, (found,))
        if not demanded.artifact_type:
            text = "notary verifier only supports oci 1.1 referrers as attestations"
            raise OperandError(text, text)
        artifacts = work.check_artifacts(attestors, demanded.artifact_type, counted)
        if artifacts.verified:
            self.payloads[image, demanded.name] = artifacts.verified[-1]
        return self._first_pass(image, attestors, (artifacts.found,))

    def _first_pass(self, image: str, attestors: AttestorSet, findings: Iterable[SetFinding]) -> SetFinding:
        """Return the first finding that passes, else one with the most specific problems; every ledger is kept."""
        problems: tuple[str, ...] = ()
        for found in findings:
            self.checks.extend((f"{image}: {path}", ledger) for path, ledger in found.checks)
            if found.passes:
                return found
            if not problems or "no signatures found" not in " ".join(found.problems):
                problems = found.problems
        return SetFinding(attestors.path, 0, attestors.count, problems=problems)

    def _attestation(self, value: JSON) -> ImageAttestation:
        found = self.attestations.get(value) if isinstance(value, str) else None
        if found is None:
            raise EvaluationError("there is no such attestation in the policy")
        return found

    def _name(self, value: JSON) -> str:
        name = value.get("name") if isinstance(value, dict) else None
        if not isinstance(name, str) or name not in self.attestors:
            raise EvaluationError("there is no such attestor in the policy")
        return name

    def _build(self, name: str) -> Attestor:
        if name not in self.built:
            evaluate = self.evaluate() if self.evaluate is not None else None
            if evaluate is None:
                raise EvaluationError("attestors cannot be used here")
            try:
                trust = Trust(self.broker.trust_root, self.broker.public_key)
                self.built[name] = self.attestors[name].build(evaluate, trust)
            except VerificationError as error:
                text = f"attestors.{name}: {error.message}"
                raise OperandError(text, text) from None  # it concerns the policy, and quotes nothing else
        return self.built[name]
