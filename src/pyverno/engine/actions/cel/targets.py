"""Mutation in CEL of existing objects: a request triggers it, its own object stays as it is.

What is found is what the policy selects by rules, or what an expression returns. This module must never write.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

from pyverno.engine.actions.cel.annotations import annotation_detail
from pyverno.engine.actions.cel.mutate import CelMutation, applied, conditions_met, mutating_bindings
from pyverno.engine.actions.cel.validate import exempted
from pyverno.engine.cel.constraints import ConstraintMatcher
from pyverno.engine.cel.session import CelCondition, CelSession, CelVariable, first_unmet
from pyverno.engine.effects import PatchEffect
from pyverno.engine.faults import error_verdict
from pyverno.engine.request import Request
from pyverno.engine.result import ResourceRef, Status, Verdict
from pyverno.engine.rule import Exemption, Run
from pyverno.errors import EvaluationError, PyvernoError
from pyverno.kube.gvk import GVR
from pyverno.kube.json import JSON, JSONObject, equal
from pyverno.kube.resource import Resource
from pyverno.lang.cel import Program
from pyverno.lang.cel.json_values import to_json
from pyverno.value import dataclass

__all__ = ["CelTargets", "MutatingTargets"]

_FAILED = "failed to evaluate policy: "


@dataclass(frozen=True, slots=True)
class CelTargets:
    """Which existing objects: those that `matcher` selects, or what `expression` returns (an object, or a list object).

    `conditions` are asked about each of them; one that does not hold leaves the object out.
    """

    matcher: ConstraintMatcher
    expression: Program | None = None
    conditions: tuple[CelCondition, ...] = ()

    def find(self, session: CelSession) -> Iterator[JSONObject]:
        """Yield the objects; raises EvaluationError when they can not be found out."""
        if self.expression is None:
            yield from self._selected(session.run)
            return
        found = to_json(session.evaluate(self.expression))
        items = found.get("items") if isinstance(found, dict) else None
        for document in items if isinstance(items, list) else [found]:
            if not isinstance(document, dict):
                raise EvaluationError("the targets must be an object or a list of objects")
            yield document

    def _selected(self, run: Run) -> Iterator[JSONObject]:
        namespace = run.rule.info.policy.namespace
        for rule in self.matcher.rules:
            plurals = {resource for resource, _ in rule.resources}
            for group, version, plural in product(*map(sorted, (rule.groups, rule.versions, plurals))):
                known = run.broker.host.kinds.by_resource(GVR(group, version, plural))
                if known is None:
                    raise EvaluationError(
                        f"the resource {plural} of {group or 'v1'} is not known: name targets exactly"
                    )
                api_version = f"{group}/{version}" if group else version
                for document in run.broker.list_objects(api_version, known.kind, namespace):
                    if self._selects(document, GVR(group, version, plural), run):
                        yield document

    def _selects(self, document: JSONObject, gvr: GVR, run: Run) -> bool:
        view = Resource(document)
        request = Request.from_manifest(
            document, gvk=view.gvk, gvr=gvr, namespace_labels=_namespace_labels(self.matcher, view, run)
        )
        return self.matcher.mismatch(request, view) is None


def _namespace_labels(matcher: ConstraintMatcher, view: Resource, run: Run) -> dict[str, str]:
    if matcher.namespace_selector is None or not view.namespace:
        return {}
    found = run.broker.get_object("v1", "Namespace", "", view.namespace)
    return {} if found is None else dict(Resource(found).labels)


@dataclass(frozen=True, slots=True)
class MutatingTargets:
    """All mutations of a policy on each of its targets; `object` is the target."""

    targets: CelTargets
    mutations: tuple[CelMutation, ...]
    conditions: tuple[CelCondition, ...] = ()
    variables: tuple[CelVariable, ...] = ()
    refuses_atomics: bool = True
    annotations: tuple[tuple[str, Program], ...] = ()

    def run(self, run: Run) -> Sequence[Verdict]:
        """Return one verdict per target; a target that fails does not stop the others."""
        session = CelSession(run, mutating_bindings(run.request), self.variables)
        try:
            unmet = first_unmet(session.for_conditions(), self.conditions)
            if unmet is not None:
                if not unmet.errors:
                    return ()
                raise EvaluationError("; ".join(unmet.errors))
            found = [*self.targets.find(session)]
        except PyvernoError as error:
            return (Verdict(Status.ERROR, f"{_FAILED}{error.message}"),)
        return [verdict for document in found if (verdict := self._one(document, session)) is not None]

    def triggered(self, run: Run) -> Sequence[Verdict]:
        """Pass when the conditions hold, without looking for targets."""
        return conditions_met(run, self.conditions, self.variables)

    def exempt(self, run: Run, exemptions: Sequence[Exemption]) -> Sequence[Verdict] | None:
        """Skip the policy; an exception that only allows values changes nothing here."""
        return exempted(exemptions)

    def _one(self, document: JSONObject, session: CelSession) -> Verdict | None:
        target = ResourceRef.of(document)
        changed: JSON = document
        try:
            session = session.with_bindings({"object": document, "oldObject": {}})
            unmet = first_unmet(session.for_conditions(), self.targets.conditions)
            if unmet is not None:
                if unmet.errors:
                    raise EvaluationError("; ".join(unmet.errors))
                return None
            for mutation in self.mutations:
                changed = applied(mutation, changed, session, refuses_atomics=self.refuses_atomics)
                session.see(changed)
            detail = annotation_detail(session, self.annotations)
        except Exception as error:
            return error_verdict(error, prefix=_FAILED, target=target)
        if equal(changed, document):
            return Verdict(Status.PASS, "success", detail, target=target)
        return Verdict(Status.PASS, "success", detail, changed, (PatchEffect(target, document, changed),), target)
