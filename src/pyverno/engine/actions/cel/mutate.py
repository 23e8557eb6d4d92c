"""Mutations in CEL: ApplyConfiguration and JSONPatch of MutatingPolicy and MutatingAdmissionPolicy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyverno.engine.actions.cel.annotations import annotation_detail
from pyverno.engine.actions.cel.validate import SKIPPED, exempted, no_exceptions
from pyverno.engine.cel.session import CelCondition, CelSession, CelVariable, first_unmet, request_bindings
from pyverno.engine.redaction import redact_texts
from pyverno.engine.request import Request
from pyverno.engine.result import Status, Verdict
from pyverno.engine.rule import Exemption, Run
from pyverno.errors import EvaluationError, PatchError, PyvernoError
from pyverno.kube.apply.schematree import schema_tree_for
from pyverno.kube.apply.typedmerge import apply_configuration
from pyverno.kube.gvk import GVK, parse_api_version
from pyverno.kube.json import JSON, JSONObject, equal
from pyverno.kube.meter import Meter
from pyverno.kube.patch.jsonpatch import apply_patch
from pyverno.kube.schemas import schema_set
from pyverno.lang.cel import Program
from pyverno.lang.cel.checking.structs import misnamed_types
from pyverno.lang.cel.json_values import to_json
from pyverno.lang.cel.values import StructValue, Value
from pyverno.value import dataclass

__all__ = ["CelMutation", "MutatingAction", "applied", "conditions_met", "laid_over", "mutating_bindings"]

_FAILED_TEST = "testing value"


@dataclass(frozen=True, slots=True)
class CelMutation:
    """One mutation: an expression that gives an `Object{…}` to lay over the object, or JSON patch operations."""

    program: Program
    is_json_patch: bool = False


@dataclass(frozen=True, slots=True)
class MutatingAction:
    """All mutations of a policy in order, each on the object as the ones before left it; one that fails drops all.

    `refuses_atomics`: atomic lists and maps may not be replaced, except in a policy that uses server-side apply.
    `target_conditions` count for existing objects only (`existing.py`).
    """

    mutations: tuple[CelMutation, ...]
    conditions: tuple[CelCondition, ...] = ()
    variables: tuple[CelVariable, ...] = ()
    refuses_atomics: bool = True
    annotations: tuple[tuple[str, Program], ...] = ()
    passed: str = "success"
    failed: str = "failed to evaluate policy: "
    target_conditions: tuple[CelCondition, ...] = ()

    def run(self, run: Run) -> Sequence[Verdict]:
        """Mutate the object of the request; a DELETE has none."""
        return self._mutate(run, no_exceptions())

    def triggered(self, run: Run) -> Sequence[Verdict]:
        """Pass when the conditions hold, without mutating anything."""
        return conditions_met(run, self.conditions, self.variables)

    def _mutate(self, run: Run, exceptions: Mapping[str, JSON]) -> Sequence[Verdict]:
        if not isinstance(run.resource, dict):
            return ()
        bindings = {**mutating_bindings(run.request), "exceptions": dict(exceptions)}
        session = CelSession(run, bindings, self.variables)
        try:
            unmet = first_unmet(session.for_conditions(), self.conditions)
            if unmet is not None:
                if not unmet.errors:
                    return SKIPPED
                raise EvaluationError("; ".join(unmet.errors))
            changed: JSON = run.resource
            for mutation in self.mutations:
                changed = applied(mutation, changed, session, refuses_atomics=self.refuses_atomics)
                session.see(changed)
            detail = annotation_detail(session, self.annotations)
        except PyvernoError as error:
            # Kyverno: whatever the failurePolicy, which only decides about the request
            return (Verdict(Status.ERROR, f"{self.failed}{error.message}"),)
        if equal(changed, run.resource):
            return (Verdict(Status.PASS, self.passed, detail),)
        return (Verdict(Status.PASS, self.passed, detail, changed),)

    def exempt(self, run: Run, exemptions: Sequence[Exemption]) -> Sequence[Verdict] | None:
        """Skip the policy, or mutate with what the first exception allows that makes a difference."""
        verdicts = exempted(exemptions)
        if verdicts is not None or not exemptions:
            return verdicts
        usual = self._mutate(run, no_exceptions())
        outcomes = (self._mutate(run, exemption.allowances) for exemption in exemptions)
        return next((outcome for outcome in outcomes if outcome != usual), usual)


def conditions_met(run: Run, conditions: Sequence[CelCondition], variables: Sequence[CelVariable]) -> Sequence[Verdict]:
    """Pass when match conditions hold for a request; no verdict when one is false. Raises when that is unknown."""
    session = CelSession(run, mutating_bindings(run.request), variables)
    unmet = first_unmet(session.for_conditions(), conditions)
    if unmet is not None and unmet.errors:
        raise EvaluationError("; ".join(unmet.errors))
    return (Verdict(Status.PASS),) if unmet is None else ()


def mutating_bindings(request: Request) -> dict[str, Value]:
    """Return the variables of expressions of a MutatingPolicy.

    Kyverno: a missing object is an empty map here, within `request` too.
    """
    seen = request_bindings(request)
    objects = {"object": seen["object"], "oldObject": seen["oldObject"]}
    return {**seen, "request": {**seen["request"], **objects}, "exceptions": no_exceptions()}


def applied(mutation: CelMutation, document: JSON, session: CelSession, *, refuses_atomics: bool) -> JSON:
    """Return the object after one mutation; raises EvaluationError or PatchError."""
    value, meter = session.evaluate(mutation.program), session.run.runtime.budget
    return laid_over(mutation, value, document, refuses_atomics=refuses_atomics, meter=meter)


def laid_over(mutation: CelMutation, value: Value, document: JSON, *, refuses_atomics: bool, meter: Meter) -> JSON:
    """Return the object changed by the value of a mutation's expression; raises EvaluationError or PatchError.

    Operations of a JSON patch are charged to `meter`. Errors show the literals of the expression, but nothing else of
    the value: it may come from a Secret.
    """
    try:
        if mutation.is_json_patch:
            return _patch(value, document, meter)
        return _merge(value, document, refuses_atomics=refuses_atomics)
    except (EvaluationError, PatchError) as error:
        text = redact_texts(error.message, to_json(value), mutation.program.text)
        raise type(error)(text) from None


def _patch(value: Value, document: JSON, meter: Meter) -> JSON:
    if not isinstance(value, list | tuple):
        raise EvaluationError("JSON Patch: the expression must give a list of JSONPatch")
    operations = [_operation(item) for item in value]
    try:
        patched = apply_patch(document, operations, meter=meter)
    except PatchError as error:
        if error.message.startswith(_FAILED_TEST):
            # Kubernetes: a failing test drops the operations of this expression
            return document
        # Kubernetes uses an older library, which begins this text with a capital letter
        text = error.message.replace("unable to remove nonexistent", "Unable to remove nonexistent")
        raise PatchError(f"JSON Patch: {text}") from error
    if not isinstance(patched, dict):
        raise PatchError("JSON Patch: the result must be an object")
    return patched


def _operation(value: Value) -> JSONObject:
    operation = to_json(value)
    if not isinstance(operation, dict):
        raise EvaluationError("JSON Patch: an operation must be a JSONPatch")
    if not operation.get("from"):
        operation.pop("from", None)
    return operation


def _merge(value: Value, document: JSON, *, refuses_atomics: bool) -> JSON:
    if not isinstance(value, StructValue) or not isinstance(document, dict):
        raise EvaluationError("ApplyConfiguration: the expression must give an Object")
    problems = misnamed_types(value)
    if problems:
        raise EvaluationError("type mismatch: " + "\n".join(problems))
    # Kubernetes: the configuration is one of the object's own kind, whatever kind it names
    kind = {name: document[name] for name in ("apiVersion", "kind") if name in document}
    patch = {**to_json(value), **kind}
    group, version = parse_api_version(str(document.get("apiVersion") or ""))
    tree = schema_tree_for(schema_set(), GVK(group, version, str(document.get("kind") or "")))
    try:
        return apply_configuration(document, patch, tree, refuses_atomics=refuses_atomics)
    except PatchError as error:
        raise PatchError(f"error applying patch: {error.message}") from error
