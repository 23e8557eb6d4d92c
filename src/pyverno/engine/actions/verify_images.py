"""`verifyImages`: signatures and attestations of the images of an object, and their digests.

`VerifyImages` runs where objects are changed: it verifies, pins digests, and records what it found in an annotation.
`ImagesCheck` runs where objects are validated, and requires digests and verified images: it verifies those that the
same review has not verified. An error of a registry is an ERROR, never a pass and never "no signature".
"""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from pyverno.engine.actions.deny import DenyCheck
from pyverno.engine.actions.exemption import SkippedByException
from pyverno.engine.imagesource import ImageAccess
from pyverno.engine.imageverification.annotations import ImageRecord, ImageStatus
from pyverno.engine.imageverification.demands import AttestationDemand, Demands, read_demands
from pyverno.engine.imageverification.passes import PassKey
from pyverno.engine.imageverification.pinning import pinned
from pyverno.engine.imageverification.records import RuleRecords
from pyverno.engine.imageverification.verifier import ArtifactFinding, ImageAtWork, StatementFinding
from pyverno.engine.redaction import redact_values
from pyverno.engine.result import Status, Verdict
from pyverno.engine.rule import Run
from pyverno.engine.rules.conditions import Conditions
from pyverno.errors import (
    BudgetExceededError,
    ExpressionError,
    HostUnavailableError,
    NotFoundError,
    PyvernoError,
    SubstitutionError,
    ValueSyntaxError,
)
from pyverno.images import Extractors, FoundImages, ImageInfo, list_images
from pyverno.images.verification.attestors import AttestorSet
from pyverno.images.verification.counting import SetFinding
from pyverno.images.verification.stored import SignatureForm
from pyverno.kube.imageref.globs import Selector
from pyverno.kube.json import JSON, JSONObject
from pyverno.lang.template import Template
from pyverno.lazyregex import regex
from pyverno.value import dataclass

__all__ = ["ImageBlock", "ImagesCheck", "VerifyImages", "object_images"]

_NO_TEXT = "validation error: rule imageVerify failed"
_NONE_FOUND = regex("no signatures found|no attestation of type")


@dataclass(frozen=True, slots=True)
class ImageBlock:
    """One entry of `verifyImages`.

    `demands` are read from `document` when the policy is compiled, unless it has variables (None). `conditions` are
    those of the attestations, in their order.
    """

    references: tuple[Selector, ...]
    document: Template
    demands: Demands | None = None
    signatures: SignatureForm = SignatureForm.SIGNATURE_TAG
    attestations: SignatureForm = SignatureForm.ATTESTATION_TAG
    skipped: tuple[Selector, ...] = ()
    conditions: tuple[Conditions | None, ...] = ()
    deny: DenyCheck | None = None
    mutates_digest: bool = True
    verifies_digest: bool = True
    required: bool = True
    uses_cache: bool = True
    credentials: JSONObject | None = None

    def selects(self, image: ImageInfo) -> bool:
        """Return whether the entry matches an image in any of its spellings."""
        return any(selects(image.parsed) for selects in self.references)

    def skips(self, image: ImageInfo) -> bool:
        """Return whether an image is certainly left out; with a digest the tag proves nothing, and is not looked at."""
        return any(exempts(image.parsed) for exempts in self.skipped)

    def reads(self, image: ImageInfo) -> bool:
        """Return whether the entry reads the registry of an image."""
        demands_something = self.demands is None or not self.demands.is_empty
        return not self.skips(image) and (demands_something or (self.mutates_digest and not image.digest))


class _FailedError(Exception):
    """An image does not meet a demand; the text is that of the verdict."""


@dataclass(frozen=True, slots=True)
class _ImagesAction(SkippedByException):
    """An action of a rule with `verifyImages`, on the images of an object; `content` is a hash of what it demands."""

    rule: str
    blocks: tuple[ImageBlock, ...]
    extractors: Extractors | None = None
    content: str = ""

    def run(self, run: Run) -> Sequence[Verdict]:
        """Find the images of the object and judge them; images that cannot be read are an ERROR."""
        resource = run.resource
        if not isinstance(resource, dict):
            return ()
        try:
            found = object_images(run, resource, self.extractors)
        except ValueSyntaxError as error:
            found = FoundImages((), (error.message,))
        text = "failed to instantiate handler: failed to extract images: "
        problems = [Verdict(Status.ERROR, f"{text}{each}") for each in dict.fromkeys(found.problems)]
        verdicts = self.judge(run, resource, tuple(image for _, _, image in found.images))
        return (*problems, *verdicts)  # guard: an image that cannot be read is an error beside the others

    if TYPE_CHECKING:

        @abstractmethod
        def judge(self, run: Run, resource: JSONObject, images: tuple[ImageInfo, ...]) -> Sequence[Verdict]:
            """Return the verdicts on these images."""

    def records(self, run: Run) -> RuleRecords:
        """Return what this rule knows of the images before it verifies any."""
        return RuleRecords(run, self.rule, self.content, lambda image: self._rendered_demands(run, image))

    def _rendered_demands(self, run: Run, image: ImageInfo) -> str:
        """Return a hash of the demands that variables render; one that cannot be rendered is like no other."""
        try:
            found = [
                _BlockAtWork(self.rule, block, image, run, ()).demands().constraints
                for block in self.blocks
                if block.demands is None and block.selects(image)
            ]
        except PyvernoError:
            return "unknown"
        return hashlib.sha256("/".join(found).encode()).hexdigest() if found else ""


@dataclass(frozen=True, slots=True)
class VerifyImages(_ImagesAction):
    """Verifies the images of an object, entry by entry."""

    def judge(self, run: Run, resource: JSONObject, images: tuple[ImageInfo, ...]) -> Sequence[Verdict]:
        """Return a verdict for each image of each entry; the last one carries the changed object."""
        verdicts: list[Verdict] = []
        records = self.records(run)
        matched = False
        for block in self.blocks:
            judged: list[ImageInfo] = []
            for image in images:
                if not block.selects(image):
                    continue
                matched = True
                # a scan verifies again, so that its report shows signatures as they are now
                before = None if run.request.is_background else records.before(image)
                if before is not None:
                    records.note(image.reference, before)
                else:
                    judged.append(image)
            for image in judged:
                work = _BlockAtWork(self.rule, block, image, run, judged)
                found, status = work.judge()
                resource, digest, problem = work.pin(resource)
                if digest and not found:
                    found = (Verdict(Status.PASS, "mutated image digest"),)
                verdicts += found
                if problem is not None and not any(each.status is not Status.PASS for each in found):
                    verdicts.append(problem)
                if status is not None:
                    named = image.reference if not digest else f"{work.at_work.repository}@{digest}"
                    records.note(named, work.record(status, self._rendered_demands(run, image)))
        if not matched:
            return ()
        resource = records.write(resource)
        if resource is run.resource:
            return verdicts
        if not verdicts:
            return (Verdict(Status.SKIP, "no change in image, skipping check", patched=resource),)
        return (*verdicts[:-1], verdicts[-1]._replace(patched=resource))


@dataclass(frozen=True, slots=True)
class ImagesCheck(_ImagesAction):
    """Demands the digests of images, and that they are verified."""

    def judge(self, run: Run, resource: JSONObject, images: tuple[ImageInfo, ...]) -> Sequence[Verdict]:
        """Return one verdict; the first image that fails decides."""
        statuses = self._statuses(run, resource, images)
        skipped: list[str] = []
        passed = 0
        for block in self.blocks:
            for image in (each for each in images if block.selects(each)):
                if block.verifies_digest and not image.digest:
                    return (Verdict(Status.FAIL, f"missing digest for {image.reference}"),)
                status = statuses.get(image.reference)
                if block.required and status is None and block.skips(image):
                    status = ImageStatus.SKIP
                if block.required and status not in (ImageStatus.PASS, ImageStatus.SKIP):
                    return (Verdict(Status.FAIL, f"unverified image {image.reference}"),)
                if status is ImageStatus.SKIP:
                    skipped.append(image.reference)
                else:
                    passed += 1
        if not passed and not skipped:
            return ()
        if not skipped:
            return (Verdict(Status.PASS, "image verified"),)
        listed = " ".join(skipped)
        if passed:
            return (Verdict(Status.PASS, f"image verified, skipped images: {listed}"),)
        return (Verdict(Status.SKIP, f"image skipped, skipped images: {listed}"),)

    def _statuses(self, run: Run, resource: JSONObject, images: Sequence[ImageInfo]) -> Mapping[str, ImageStatus]:
        """Return what is known of the images: found in this review, recorded by us before, or else verified now.

        The annotation of a request proves nothing, because a requester can write it.
        """
        records = self.records(run)
        known: Mapping[str, ImageStatus] = run.runtime.memory.get(records.memory_key) or {}
        statuses = dict(known)
        for block in self.blocks:
            judged: list[ImageInfo] = []
            for image in images:
                if image.reference in known or not block.selects(image):
                    continue
                before = records.before(image)
                if before is not None:
                    _note(statuses, image.reference, before.status)
                else:
                    judged.append(image)
            for image in judged:
                _, status = _BlockAtWork(self.rule, block, image, run, judged).judge()
                if status is not None:
                    _note(statuses, image.reference, status)
        return statuses


class _BlockAtWork:
    """One entry at work on one image; `judged` are all images that it judges, which are read together."""

    def __init__(self, rule: str, block: ImageBlock, image: ImageInfo, run: Run, judged: Sequence[ImageInfo]) -> None:
        self._rule = rule
        self._block = block
        self._image = image
        self._text = image.reference
        self._run = run.with_scope(run.scope.with_values(image=image.to_variable()))
        self.at_work = _at_work(
            block, image, run, lambda: [_at_work(block, each, run) for each in judged if block.reads(each)]
        )
        self._rendered: JSON = None

    def judge(self) -> tuple[tuple[Verdict, ...], ImageStatus | None]:
        """Return the verdict, and what is recorded of the image; errors show variables, not their values."""
        verdicts, status = self._judge()
        if status is ImageStatus.PASS or self._rendered is None:
            return verdicts, status
        return tuple(each._replace(message=self._redact(each.message)) for each in verdicts), status

    def _redact(self, message: str) -> str:
        prefix = self._failed("")
        kept = prefix if message.startswith(prefix) else ""
        return kept + redact_values(message[len(kept) :], self._block.document, self._rendered)

    def _judge(self) -> tuple[tuple[Verdict, ...], ImageStatus | None]:
        if self._block.demands is not None and self._block.demands.is_empty:
            return (), None  # nothing is verified, and so nothing is skipped
        if self._block.skips(self._image):
            policy = self._run.rule.info.policy.name
            text = f"skipping image reference image {self._text}, policy {policy} ruleName {self._rule}"
            return (Verdict(Status.SKIP, text),), ImageStatus.SKIP
        try:
            text = self._verify(self.demands())
        except _FailedError as failed:
            return (Verdict(Status.FAIL, str(failed)),), ImageStatus.FAIL
        except BudgetExceededError as error:
            return (Verdict(Status.ERROR, error.message),), ImageStatus.FAIL
        except NotFoundError as error:
            return (Verdict(Status.FAIL, self._failed(error.message)),), ImageStatus.FAIL
        except SubstitutionError as error:
            return (Verdict(Status.ERROR, f"failed to substitute variables: {error.message}"),), ImageStatus.FAIL
        except PyvernoError as error:
            return (Verdict(Status.ERROR, self._failed(error.message)),), ImageStatus.FAIL
        return ((Verdict(Status.PASS, text),), ImageStatus.PASS) if text else ((), None)

    def pin(self, resource: JSONObject) -> tuple[JSONObject, str, Verdict | None]:
        """Return the object with the digest of the image, the digest, and what went wrong; the same object if not."""
        if not self._block.mutates_digest or self._image.digest:
            return resource, "", None
        try:
            digest = self.at_work.resolve().digest
            text = f"{self._image.reference_with_tag}@{digest}"
            return pinned(resource, self._image.steps, text), digest, None  # guard: a digest goes where its image is
        except PyvernoError as error:
            return resource, "", Verdict(Status.ERROR, f"failed to update digest: {error.message}")

    def _failed(self, reason: str) -> str:
        return f"failed to verify image {self._text}: {reason}"

    def record(self, status: ImageStatus, rendered: str) -> ImageRecord:
        """Return what is recorded of the image: one that passed has a digest, which its verification has read."""
        return ImageRecord(status, self.at_work.resolve().digest if status is ImageStatus.PASS else "", rendered)

    def demands(self) -> Demands:
        """Return what the entry demands of the image; raises PyvernoError subclasses where variables are missing."""
        if self._block.demands is not None:
            return self._block.demands
        run = self._run
        self._rendered = self._block.document.render(run.scope, run.runtime, delete_request=run.is_delete)
        return read_demands(self._rendered)

    def _verify(self, demands: Demands) -> str:
        """Return the text of the pass, "" when nothing is demanded; raises _FailedError and PyvernoError."""
        if demands.is_empty:
            return ""
        key = self._pass_key(demands)
        passes, trust = self._run.broker.host.image_source.passes, self._trust_root()
        if key is not None and passes.has(key, trust, self._run.runtime.host.now()):
            return "verified from cache"
        text = ""
        for each in demands.attestors:
            found = self.at_work.check_signatures(each.resolve(self.at_work.trust), self._block.signatures)
            if not found.passes:
                raise _FailedError(self._failed("; ".join(found.problems)))
            text = f"verified image signatures for {self._text}"
        named: dict[str, JSON] = {}
        for index, attestation in enumerate(demands.attestations):
            conditions = self._block.conditions[index] if index < len(self._block.conditions) else None
            predicate = self._check_attestation(attestation, conditions)
            if attestation.name:
                named[attestation.name] = predicate
            text = f"verified image attestations for {self._text}"
        if self._block.deny is not None:
            text = self._check_conditions(self._block.deny, named)
        if key is not None:
            passes.add(key, trust, self._run.runtime.host.now())
        return text

    def _pass_key(self, demands: Demands) -> PassKey | None:
        """Return the key of the cache; None for what depends on the request, or on keys that may change."""
        block = self._block
        depends = demands.reads_cluster or block.deny is not None or any(each is not None for each in block.conditions)
        if not block.uses_cache or depends:
            return None
        constraints = f"{block.signatures}/{block.attestations}/{demands.constraints}"
        return PassKey(self._image.parsed.normal_repository, self.at_work.resolve().digest, constraints)

    def _trust_root(self) -> object:
        try:
            return self._run.broker.trust_root()
        except HostUnavailableError:
            return None

    def _check_attestation(self, demand: AttestationDemand, conditions: Conditions | None) -> JSON:
        """Return the predicate of an attestation whose signatures and conditions hold."""
        if not demand.type:
            raise _FailedError(f"{demand.path}: missing type")
        if not demand.attestors:
            # Kyverno reads the statement unverified; an unsigned statement proves nothing
            raise _FailedError(f"{demand.path}.attestors: an attestor is required")
        predicate: JSON = None
        for each in demand.attestors:
            attestors = each.resolve(self.at_work.trust)
            found, predicates = self._predicates(attestors, demand.type)
            place = next((f"{one.attestor.path}: " for one in found.findings if one.ledger.passes), "")
            for predicate in predicates:
                problem = "" if conditions is None else self._unmet(conditions, predicate)
                if problem:
                    image = f"{self.at_work.repository}@{self.at_work.resolve().digest}"
                    text = f"attestation checks failed for {image} and predicate {demand.type}: {problem.strip()}"
                    raise _unattested(found, f"{place}{text}", verified=0)
        return predicate

    def _predicates(self, attestors: AttestorSet, wanted: str) -> tuple[SetFinding, list[JSON]]:
        """Return the predicates of verified attestations of a type; raises _FailedError when too few exist."""
        statements: StatementFinding | ArtifactFinding
        if self._block.attestations is SignatureForm.NOTARY:
            statements = self.at_work.check_artifacts(attestors, wanted)
        else:
            statements = self.at_work.check_statements(attestors, self._block.attestations, wanted)
        found = statements.found
        if not found.passes:
            raise _unattested(found, _first_problem(found, statements.of_type, attestors.path, wanted))
        if isinstance(statements, ArtifactFinding):
            return found, [self.at_work.artifact_json(each) for each in statements.verified]
        return found, [each.payload.body.get("predicate") for each in statements.verified]

    def _unmet(self, conditions: Conditions, predicate: JSON) -> str:
        """Return why conditions do not hold of a predicate, whose fields are variables; "" when they hold."""
        if not isinstance(predicate, dict):
            return "failed to extract predicate from statement"
        run = self._run
        fields = {name: value for name, value in predicate.items() if name not in ("request", "image", "images")}
        scope = run.scope.with_mapping(fields)
        outcome = conditions.check(scope, run.runtime, delete_request=run.is_delete)
        return "" if outcome.met else outcome.message or "the conditions do not hold"

    def _check_conditions(self, deny: DenyCheck, named: Mapping[str, JSON]) -> str:
        run = self._run
        verdict = deny.run(run.with_scope(run.scope.with_mapping(dict(named))))[0]
        if verdict.status is Status.PASS:
            return f"verifyImages validation is passed in {self._rule} rule"
        # Kyverno: the text of a denial without a message has two spaces
        reason = "validation error: imageVerify  failed" if verdict.message == _NO_TEXT else verdict.message
        text = f"validation in verifyImages failed: {reason}"
        if verdict.status is Status.ERROR:
            raise ExpressionError(text)
        raise _FailedError(text)


def _at_work(
    block: ImageBlock, image: ImageInfo, run: Run, others: Callable[[], Sequence[ImageAtWork]] = tuple
) -> ImageAtWork:
    access = ImageAccess(block.credentials, image.pull_secrets, run.request.namespace)
    return ImageAtWork(image, access, run.broker, run.runtime, others)


def _unattested(found: SetFinding, reason: str, verified: int | None = None) -> _FailedError:
    count = found.verified if verified is None else verified
    return _FailedError(
        f"image attestations verification failed, verifiedCount: {count}, requiredCount: {found.required}, "
        f"error: {reason}"
    )


def _first_problem(found: SetFinding, of_type: int, path: str, predicate_type: str) -> str:
    if not of_type and all(_NONE_FOUND.search(each) for each in found.problems):
        return f"{path}: attestions not found for predicate type {predicate_type}"
    return "; ".join(found.problems) or "attestations verification failed"


def object_images(run: Run, resource: JSONObject, extractors: Extractors | None) -> FoundImages:
    """Return every image of an object, and why others cannot be read; raises ValueSyntaxError without a place."""
    settings = run.request.settings
    return list_images(
        resource,
        extractors,
        default_registry=settings.default_registry,
        mutate_registry=settings.mutates_registry,
        runtime=run.runtime,
    )


def _note(statuses: dict[str, ImageStatus], image: str, status: ImageStatus) -> None:
    """Record a status; of several the worst counts."""
    order = (ImageStatus.FAIL, ImageStatus.PASS, ImageStatus.SKIP)
    known = statuses.get(image)
    statuses[image] = status if known is None else min(known, status, key=order.index)
