"""Find the field that made a rule fail on an object: a function for each kind of action."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pyverno.engine.actions.cel.admission import AdmissionValidation
from pyverno.engine.actions.cel.images import ImageSelection, ImageValidatingCheck, PinDigests, RequiredImages
from pyverno.engine.actions.cel.validate import CelValidation, ValidatingCheck
from pyverno.engine.actions.deny import DenyCheck
from pyverno.engine.actions.foreach import ForeachCheck
from pyverno.engine.actions.pattern import AnyPatternCheck, PatternCheck, subject_name, subject_of
from pyverno.engine.actions.pod_security import PodSecurityRule
from pyverno.engine.actions.verify_images import ImagesCheck, VerifyImages, object_images
from pyverno.engine.blame.cel import blamed_expression
from pyverno.engine.blame.images import blamed_image, blamed_text
from pyverno.engine.blame.paths import Path, common, deepest, exists, parse_dotted, parse_slashed, value_at
from pyverno.engine.blame.queries import Reader, blamed_condition, judged_object
from pyverno.engine.cel.session import CelSession
from pyverno.engine.result import Status
from pyverno.engine.rule import Binding, Run
from pyverno.errors import PyvernoError
from pyverno.lang.pattern.outcome import Status as Match
from pyverno.lang.pattern.validate import Pattern, compile_pattern

__all__ = ["find_blame"]

_FAILED = (Status.FAIL, Status.ERROR)
_TEMPLATES: Mapping[str, Path] = {"Pod": ("spec",), "CronJob": ("spec", "jobTemplate", "spec", "template", "spec")}

_Roots = Mapping[str, Path]
_NO_ROOTS: _Roots = {}


def find_blame(run: Run, position: int = -1, message: str = "") -> Path | None:
    """Return the path of the field that made the rule of a run fail; None when there is no such field.

    `position` is that of the validation that failed, where it is known, and `message` that of the result.
    """
    action: Any = run.rule.action
    if isinstance(action, (VerifyImages, ImagesCheck)):
        return _of_images(action, run, message)
    if isinstance(action, (ImageValidatingCheck, RequiredImages, PinDigests)):
        return _of_policy_images(action.selection, run, message)
    if isinstance(action, (ValidatingCheck, AdmissionValidation)):
        return _validation(action, run, position)
    return _check(action, run, _NO_ROOTS, ())


def _of_images(action: VerifyImages | ImagesCheck, run: Run, message: str) -> Path | None:
    document = judged_object(run)
    found = object_images(run, document, action.extractors).images if isinstance(document, dict) else ()
    images = [image for _, _, image in found if any(block.selects(image) for block in action.blocks)]
    return blamed_image(images, message, document)


def _of_policy_images(selection: ImageSelection, run: Run, message: str) -> Path | None:
    session, _ = selection.open(run)
    infos = selection.found(run, session).infos
    return blamed_text(tuple(infos), message, judged_object(run))


def _check(action: Any, run: Run, roots: _Roots, bindings: tuple[Binding, ...]) -> Path | None:
    find = _FINDERS.get(type(action))
    return None if find is None else find(action, run, roots, bindings)


def _pattern(action: PatternCheck, run: Run, roots: _Roots, _bindings: tuple[Binding, ...]) -> Path | None:
    pattern = action.compiled
    if pattern is None:
        pattern = compile_pattern(action.template.render(run.scope, run.runtime, delete_request=run.is_delete))
    found = _mismatch(pattern, action, run, roots)
    return found[1] if found is not None else None


def _any_pattern(action: AnyPatternCheck, run: Run, roots: _Roots, _bindings: tuple[Binding, ...]) -> Path | None:
    patterns = action.compiled
    if patterns is None:
        document = action.template.render(run.scope, run.runtime, delete_request=run.is_delete)
        items = document if isinstance(document, list) else []
        patterns = tuple(compile_pattern(item, float_numbers=True) for item in items)
    found = [each for each in (_mismatch(pattern, action, run, roots) for pattern in patterns) if each]
    # the alternative that fits furthest is the one that was meant
    return deepest(path for _, path in found)


def _mismatch(
    pattern: Pattern, action: PatternCheck | AnyPatternCheck, run: Run, roots: _Roots
) -> tuple[Match, Path] | None:
    subject = subject_of(run, action.scoped, action.outer)
    outcome = pattern.match(subject, run.runtime.budget)
    if outcome.status is not Match.FAIL or not outcome.path:
        return None
    start = roots.get(subject_name(run, action.scoped, action.outer), ())
    return outcome.status, (*start, *parse_slashed(outcome.path, subject))


def _deny(action: DenyCheck, run: Run, roots: _Roots, bindings: tuple[Binding, ...]) -> Path | None:
    reader = Reader.of(run, roots, bindings)
    found = None if action.conditions is None else blamed_condition(action.conditions, reader, run)
    return found if found is not None else roots.get("element", ())


def _foreach(action: ForeachCheck, run: Run, roots: _Roots, bindings: tuple[Binding, ...]) -> Path | None:
    for entry in action.entries:
        elements = entry.elements
        values = elements.values(run)
        places = Reader.of(run, roots, bindings).query(elements.query)
        for index, element, inner in elements.visit(run, values):
            if elements.preconditions is not None and elements.preconditions.check(inner) is not None:
                continue
            check: Any = entry.check_for(element)
            if not entry.scope_error(element) and not any(verdict.status in _FAILED for verdict in check.run(inner)):
                continue
            place = _place_of(places, index, len(values), element, run)
            if place is None:
                return common(places) if places else None
            names = dict.fromkeys(("element", f"element{elements.depth}"), place)
            found = _check(check, inner, {**roots, **names}, (*bindings, *elements.bindings))
            return place if found is None or found[: len(place)] != place else found
    return None


def _place_of(places: list[Path], index: int, size: int, element: object, run: Run) -> Path | None:
    """Return the place of one element of a list: one of several places, or an item of the only one."""
    document = judged_object(run)
    if len(places) == size and value_at(document, places[index]) == element:
        return places[index]
    if len(places) == 1:
        item = (*places[0], index)
        return item if value_at(document, item) == element else places[0]
    return next((place for place in places if value_at(document, place) == element), None)


def _pod_security(action: PodSecurityRule, run: Run, _roots: _Roots, _bindings: tuple[Binding, ...]) -> Path | None:
    outcome = action.check.check(run.resource, run.request.gvk.kind, meter=run.runtime.budget)
    for violation in outcome.violations:
        for error in violation.errors:
            path = parse_dotted(error.field)
            if path[:3] == ("spec", "template", "metadata") and not exists(run.resource, path[:3]):
                path = path[2:]  # Kyverno moves the metadata of a bare pod, too
            return path
    return None


def _validation(action: ValidatingCheck | AdmissionValidation, run: Run, position: int) -> Path | None:
    session: CelSession = action.session(run)
    validation = _failing(action.validations, session, position)
    if validation is None:
        return None
    template = _TEMPLATES.get(run.request.gvk.kind, ("spec", "template", "spec"))
    return blamed_expression(validation.program, session, judged_object(run), template)


def _failing(validations: tuple[CelValidation, ...], session: CelSession, position: int) -> CelValidation | None:
    """Return the validation at a position, or the first that is not true."""
    if 0 <= position < len(validations):
        return validations[position]
    for validation in validations:
        try:
            if session.evaluate(validation.program) is not True:
                return validation
        except PyvernoError:
            return validation
    return None


_FINDERS: Mapping[type, Callable[[Any, Run, _Roots, tuple[Binding, ...]], Path | None]] = {
    PatternCheck: _pattern,
    AnyPatternCheck: _any_pattern,
    DenyCheck: _deny,
    ForeachCheck: _foreach,
    PodSecurityRule: _pod_security,
}
