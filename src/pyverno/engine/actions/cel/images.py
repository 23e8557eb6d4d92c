"""ImageValidatingPolicies: digests are pinned where objects are changed, signatures are checked where they are judged.

`PinDigests` verifies nothing and records nothing: the record of the mutating webhook is not trusted.
`ImageValidatingCheck` evaluates the validations; `RequiredImages` runs after all policies, because any of them may have
verified an image.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple
from weakref import WeakMethod

from pyverno.engine.actions.cel.validate import CelValidation, annotated, exempted, no_exceptions
from pyverno.engine.cel.images import ImageAttestation, ImageAttestor, ImageHost, failed_checks, verified_images
from pyverno.engine.cel.session import CelCondition, CelSession, CelVariable, first_unmet, request_bindings
from pyverno.engine.imageverification.pinning import pinned, text_at
from pyverno.engine.result import CelDetail, Status, Verdict
from pyverno.engine.rule import Exemption, Run
from pyverno.errors import EvaluationError, PyvernoError, ValueSyntaxError
from pyverno.images import IMAGE_VOLUMES, FoundImages, ImageInfo, list_images, parse_image_at
from pyverno.kube.imageref.globs import Selector, full_texts
from pyverno.kube.json import JSONObject
from pyverno.lang.cel import Program
from pyverno.lang.cel.values import Value
from pyverno.value import dataclass

__all__ = ["ImageReferenceMatch", "ImageSelection", "ImageValidatingCheck", "PinDigests", "RequiredImages"]

_GROUPS = ("containers", "initContainers", "ephemeralContainers", IMAGE_VOLUMES)


@dataclass(frozen=True, slots=True)
class ImageReferenceMatch:
    """One of `matchImageReferences`: a glob, or an expression on `ref`."""

    glob: Selector | None = None
    program: Program | None = None


class MatchedImages(NamedTuple):
    """The matched images by group as written, the parts of their references, and why others cannot be read."""

    groups: dict[str, list[str]]
    infos: dict[str, ImageInfo]
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ImageSelection:
    """The image settings that all rules of a policy share: conditions, variables, selection, and credentials."""

    conditions: tuple[CelCondition, ...] = ()
    variables: tuple[CelVariable, ...] = ()
    references: tuple[ImageReferenceMatch, ...] = ()
    expressions: tuple[tuple[str, Program], ...] = ()
    credentials: JSONObject | None = None
    attestors: tuple[ImageAttestor, ...] = ()
    attestations: tuple[ImageAttestation, ...] = ()
    ignores_errors: bool = False

    def open(self, run: Run) -> tuple[CelSession, ImageHost]:
        """Return the session of a request, without images."""
        host = ImageHost(
            run.broker,
            runtime=run.runtime,
            attestors={each.name: each for each in self.attestors},
            attestations={each.name: each for each in self.attestations},
            credentials=self.credentials,
        )
        bindings: dict[str, Value] = {
            **request_bindings(run.request),
            "exceptions": no_exceptions(),
            "attestors": {each.name: {"name": each.name} for each in self.attestors},
            "attestations": {each.name: each.name for each in self.attestations},
            "images": {},
        }
        session = CelSession(run, bindings, self.variables, host=host)
        host.evaluate = WeakMethod(session.evaluate)  # the session holds its host
        return session, host

    def applies(self, session: CelSession) -> bool:
        """Return whether the match conditions hold; raises EvaluationError when they cannot be evaluated."""
        unmet = first_unmet(session.for_conditions(), self.conditions)
        if unmet is None:
            return True
        if unmet.errors and not self.ignores_errors:
            raise EvaluationError("; ".join(unmet.errors))
        return False

    def found(self, run: Run, session: CelSession) -> MatchedImages:
        """Return the matched images, and why others cannot be read; raises PyvernoError.

        The groups of built-in kinds always exist.
        """
        groups: dict[str, list[str]] = {name: [] for name in _GROUPS}
        document = _object(run)
        listed = self._listed(run, document)
        for name, _, image in listed.images:
            groups.setdefault(name, []).append(text_at(document, image.steps) or image.reference)
        for name, program in self.expressions:
            groups.setdefault(name, []).extend(_texts(session.evaluate(program), name))  # guard: a name hides no group
        infos: dict[str, ImageInfo] = {}
        problems = list(listed.problems)
        for name, texts in groups.items():
            kept = []
            for index, text in enumerate(texts):
                try:
                    if self._matches(text, f"images.{name}[{index}]", infos, run, session):
                        kept.append(text)
                except ValueSyntaxError as error:
                    problems.append(error.message)  # guard: a reference that is none hides no other image
            groups[name] = kept
        return MatchedImages(groups, infos, tuple(problems))

    def pinnable(self, run: Run, session: CelSession, problems: list[str]) -> Iterator[tuple[str, ImageInfo]]:
        """Yield matched images of built-in fields that have no digest; `problems` gets why others cannot be read."""
        infos: dict[str, ImageInfo] = {}
        listed = self._listed(run, _object(run))
        problems.extend(listed.problems)
        for _, _, image in listed.images:
            text = text_at(run.resource, image.steps)
            if not image.digest and text and self._matches(text, image.pointer, infos, run, session):
                yield text, image

    @staticmethod
    def _listed(run: Run, document: JSONObject) -> FoundImages:
        return list_images(document, default_registry=run.request.settings.default_registry, runtime=run.runtime)

    def _matches(self, text: str, place: str, infos: dict[str, ImageInfo], run: Run, session: CelSession) -> bool:
        if text in infos:
            return True
        info = parse_image_at(place, text, default_registry=run.request.settings.default_registry)
        if self.references and not any(self._selects(each, text, info, session) for each in self.references):
            return False
        infos[text] = info
        return True

    @staticmethod
    def _selects(each: ImageReferenceMatch, text: str, info: ImageInfo, session: CelSession) -> bool:
        if each.glob is not None and each.glob(info.parsed):
            return True
        if each.program is None:
            return False
        texts = (text, info.reference, *full_texts(info.parsed))  # guard: an expression sees the normal form
        # an expression sees one spelling at a time, and any of them that it selects is enough
        return any(session.with_bindings({"ref": name}).evaluate(each.program) is True for name in dict.fromkeys(texts))


@dataclass(frozen=True, slots=True)
class ImageValidatingCheck:
    """The validations of a policy over the images that it matches."""

    selection: ImageSelection
    validations: tuple[CelValidation, ...]
    annotations: tuple[tuple[str, Program], ...] = ()
    verifies_digest: bool = True

    def run(self, run: Run) -> Sequence[Verdict]:
        """Judge the request."""
        session, host = self.selection.open(run)
        try:
            if not self.selection.applies(session):
                return ()  # Kyverno: such a policy has no result, whereas a ValidatingPolicy is skipped
            groups, infos, problems = self.selection.found(run, session)
            for text, info in infos.items():
                if self.verifies_digest and not info.digest:
                    failed_checks(run.runtime).add(id(self.selection))
                    return (Verdict(Status.FAIL, f"image {text} does not have a digest"),)
            host.images = infos
            session.bindings["images"] = groups
            for index, validation in enumerate(self.validations):
                if session.evaluate(validation.program) is not True:
                    failed_checks(run.runtime).add(id(self.selection))
                    text = _message(session, validation, index, host.problems)
                    return (Verdict(Status.FAIL, text, CelDetail(index, checks=tuple(host.checks))),)
            if problems:
                raise ValueSyntaxError(problems[0])
            if self.annotations:
                annotated(session, self.annotations)
        except (PyvernoError, ValueSyntaxError) as error:
            return (Verdict(Status.ERROR, f"failed to evaluate policy: {error.message}"),)
        return (Verdict(Status.PASS, "success", CelDetail(checks=tuple(host.checks))),)

    def properties(self, run: Run, verdict: Verdict) -> Mapping[str, str]:
        """Return the audit annotations of a request, none where it is exempt or left out."""
        if verdict.exceptions or verdict.status is Status.SKIP:
            return {}
        session, host = self.selection.open(run)
        groups, host.images, _ = self.selection.found(run, session)
        session.bindings["images"] = groups
        return annotated(session, self.annotations)

    def exempt(self, run: Run, exemptions: Sequence[Exemption]) -> Sequence[Verdict] | None:
        """Skip the policy for exceptions of the whole of it; one about images or values changes nothing here."""
        return exempted(exemptions)


@dataclass(frozen=True, slots=True)
class PinDigests:
    """Adds the digest to each matched image of a built-in field that has none."""

    selection: ImageSelection

    def run(self, run: Run) -> Sequence[Verdict]:
        """Return one verdict with the changed object, and an error for each image that cannot be resolved."""
        if not isinstance(run.resource, dict):
            return ()
        session, host = self.selection.open(run)
        changed: JSONObject = run.resource
        errors: list[Verdict] = []
        try:
            if not self.selection.applies(session):
                return ()
            unreadable: list[str] = []
            pinnable = tuple(self.selection.pinnable(run, session, unreadable))
            errors += [Verdict(Status.ERROR, f"failed to update digest: {each}") for each in dict.fromkeys(unreadable)]
            host.images = dict(pinnable)
            for text, info in pinnable:
                try:
                    digest = host.at_work(text).resolve().digest
                    changed = pinned(changed, info.steps, f"{text}@{digest}")
                except PyvernoError as error:
                    reason = f"failed to resolve digest for image {text}: {error.message}"
                    errors.append(Verdict(Status.ERROR, f"failed to update digest: {reason}"))
        except PyvernoError as error:
            return (Verdict(Status.ERROR, f"failed to update digest: {error.message}"),)
        if changed is run.resource:
            return errors
        return (Verdict(Status.PASS, "mutated image digest", patched=changed), *errors)

    def exempt(self, run: Run, exemptions: Sequence[Exemption]) -> Sequence[Verdict] | None:
        """Pin nothing where an exception exempts the whole policy."""
        return () if exempted(exemptions) is not None else None


@dataclass(frozen=True, slots=True)
class RequiredImages:
    """Demands that some policy of the review verified each matched image.

    A policy whose validations failed has reported the problem of its images.
    """

    selection: ImageSelection

    def run(self, run: Run) -> Sequence[Verdict]:
        """Return a fail for the first image that no policy verified, else nothing."""
        if id(self.selection) in failed_checks(run.runtime):
            return ()
        session, _ = self.selection.open(run)
        try:
            if not self.selection.applies(session):
                return ()
            _, infos, problems = self.selection.found(run, session)
        except PyvernoError as error:
            return (Verdict(Status.ERROR, f"failed to evaluate policy: {error.message}"),)
        verified = verified_images(run.runtime)
        for text in infos:
            if text not in verified:
                reason = "no policy performed a signature or attestation check on it"
                return (Verdict(Status.FAIL, f"image {text} is not verified: {reason}"),)
            if not verified[text]:
                return (Verdict(Status.FAIL, f"image {text} failed signature or attestation verification"),)
        return tuple(Verdict(Status.ERROR, f"failed to evaluate policy: {each}") for each in problems[:1])

    def exempt(self, run: Run, exemptions: Sequence[Exemption]) -> Sequence[Verdict] | None:
        """Demand nothing where an exception exempts the whole policy."""
        return () if exempted(exemptions) is not None else None


def _message(session: CelSession, validation: CelValidation, index: int, problems: Sequence[str]) -> str:
    text: Value = validation.message
    if validation.message_program is not None:
        try:
            text = session.evaluate(validation.message_program)
        except PyvernoError as error:
            return f"failed to evaluate message expression: {error.message}"
    if isinstance(text, str) and text:
        return text
    found = f"CEL expression validation failed at index {index}"
    return f"{found}: {'; '.join(dict.fromkeys(problems))}" if problems else found


def _object(run: Run) -> JSONObject:
    document = run.request.object if isinstance(run.request.object, dict) else run.request.old
    return document if isinstance(document, dict) else {}


def _texts(value: Value, name: str) -> list[str]:
    if not isinstance(value, (list, tuple)) or not all(isinstance(each, str) for each in value):
        raise EvaluationError(f"the expression of images.{name} does not return a list of strings")
    return list(value)
