"""Mutation in CEL of existing objects: a request triggers it, its own object stays as it is.

Targets are the objects that the policy selects by rules, or that an expression returns.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product

from pyverno.engine.actions.cel.annotations import annotation_detail
from pyverno.engine.actions.cel.mutate import CelMutation, applied, conditions_met, mutating_bindings
from pyverno.engine.actions.cel.validate import exempted
from pyverno.engine.actions.existing import ExistingObject, ExistingObjects
from pyverno.engine.cel.constraints import ConstraintMatcher
from pyverno.engine.cel.session import CelCondition, CelSession, CelVariable, first_unmet
from pyverno.engine.faults import error_verdict
from pyverno.engine.request import Request
from pyverno.engine.result import ResourceRef, Status, Verdict
from pyverno.engine.rule import Exemption, Run
from pyverno.errors import EvaluationError, PyvernoError
from pyverno.kube.gvk import GVK, GVR, parse_api_version
from pyverno.kube.json import JSON, JSONObject, equal
from pyverno.kube.kinds import KindInfo, KindTable
from pyverno.kube.resource import Resource
from pyverno.lang.cel import Program
from pyverno.lang.cel.json_values import to_json
from pyverno.value import dataclass

__all__ = ["CelTargets", "MutatingTargets"]

_FAILED = "failed to evaluate policy: "


@dataclass(frozen=True, slots=True)
class CelTargets:
    """The objects to change: those that `matcher` selects, or what `expression` returns (an object, or a list object).

    `conditions` are evaluated for each of them; one that does not hold leaves the object out.
    """

    matcher: ConstraintMatcher
    expression: Program | None = None
    conditions: tuple[CelCondition, ...] = ()

    def find(self, session: CelSession) -> Iterator[ExistingObject | Verdict]:
        """Yield the objects, and an ERROR verdict for each kind that cannot be read; raises for an expression."""
        if self.expression is None:
            yield from self._select(session.run)
            return
        request = session.run.request
        if request.object is None:  # Kyverno: of a deletion, `object` is the object that is deleted
            session = session.with_bindings({"object": request.old})
        found = to_json(session.evaluate(self.expression))
        items = found.get("items") if isinstance(found, dict) else None
        for document in items if isinstance(items, list) else [found]:
            if not isinstance(document, dict):
                raise EvaluationError("the targets must be an object or a list of objects")
            yield self._route(document, session.run)

    def _select(self, run: Run) -> Iterator[ExistingObject | Verdict]:
        namespace = run.rule.info.policy.namespace
        labels = _NamespaceLabels(self.matcher, run)
        seen: set[tuple[str, str, str, str, str]] = set()
        for group, version, plural, subresource in _resources(self.matcher):
            gvr = GVR(group, version, plural)
            try:
                known = _known_kind(gvr, run.broker.host.kinds)
                objects = ExistingObjects(run.broker, known.api_version, known.kind, subresource)
                listed = run.broker.list_objects(known.api_version, known.kind, namespace)
                chosen = [document for document in listed if self._selects(document, known.gvr, subresource, labels)]
                for existing in objects.of(chosen):
                    owner = existing.owner
                    place = (known.group, known.kind, owner.namespace, owner.name, subresource)
                    if place not in seen:  # another rule, or another version of the same objects
                        seen.add(place)
                        yield existing
            except PyvernoError as error:
                yield error_verdict(error, prefix=_FAILED)

    def _selects(self, document: JSONObject, gvr: GVR, subresource: str, labels: _NamespaceLabels) -> bool:
        view = Resource(document)
        request = Request.from_manifest(
            document, gvk=view.gvk, gvr=gvr, subresource=subresource, namespace_labels=labels.of(view.namespace)
        )
        return self.matcher.mismatch(request, view) is None

    def _route(self, document: JSONObject, run: Run) -> ExistingObject:
        """Return the object that an expression names, with the subresource that the resource rules name for its kind.

        An object that an expression made, or took from elsewhere, is read again, because only stored objects may be
        changed.
        """
        ref = ResourceRef.of(document)
        part = self._subresource(ref, run.broker.host.kinds)
        objects = ExistingObjects(run.broker, ref.api_version, ref.kind, part)
        if part or not Resource(document).metadata.get("resourceVersion"):
            found = objects.get(ref.namespace or run.rule.info.policy.namespace, ref.name)
            if found is None:
                raise EvaluationError(f"the target {ref.kind} `{ref.name}` does not exist")
            return found
        return ExistingObject(document, ref)

    def _subresource(self, ref: ResourceRef, kinds: KindTable) -> str:
        info = kinds.find(GVK(*parse_api_version(ref.api_version), ref.kind))
        if info is not None:
            for group, version, plural, subresource in _resources(self.matcher):
                if group in ("*", info.group) and version in ("*", info.version) and plural in ("*", info.plural):
                    return subresource
        return ""


def _resources(matcher: ConstraintMatcher) -> Iterator[tuple[str, str, str, str]]:
    """Yield group, version, resource and subresource of everything that rules name."""
    for rule in matcher.rules:
        for group, version in product(sorted(rule.groups), sorted(rule.versions)):
            for plural, subresource in sorted(rule.resources):
                yield group, version, plural, subresource


def _known_kind(gvr: GVR, kinds: KindTable) -> KindInfo:
    """Return the kind of a resource; wildcards of group and version stand for what the cluster prefers."""
    if gvr.resource != "*":
        found = kinds.by_resource(gvr)
        if found is not None:
            return found
        for info in kinds.named(gvr.resource):
            if gvr.group in ("*", info.group) and gvr.version in ("*", info.version) and info.plural == gvr.resource:
                return info
    raise EvaluationError(f"the resource {gvr.resource} of {gvr.group or 'v1'} is not known: name targets exactly")


class _NamespaceLabels:
    """The labels of namespaces, each read once when a selector needs them."""

    def __init__(self, matcher: ConstraintMatcher, run: Run) -> None:
        self._is_needed = matcher.namespace_selector is not None
        self._run = run
        self._known: dict[str, Mapping[str, str]] = {}

    def of(self, namespace: str) -> Mapping[str, str]:
        """Return the labels of a namespace; raises HostError."""
        if not self._is_needed or not namespace:
            return {}
        if namespace not in self._known:
            self._known[namespace] = self._read(namespace)
        return self._known[namespace]

    def _read(self, namespace: str) -> Mapping[str, str]:
        request, broker = self._run.request, self._run.broker
        if namespace == request.namespace and request.namespace_labels is not None:
            return request.namespace_labels
        found = broker.get_object("v1", "Namespace", "", namespace)
        return {} if found is None else Resource(found).labels


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
        each = (item if isinstance(item, Verdict) else self._one(item, session) for item in found)
        return [verdict for verdict in each if verdict is not None]

    def triggered(self, run: Run) -> Sequence[Verdict]:
        """Pass when the conditions hold, without looking for targets."""
        return conditions_met(run, self.conditions, self.variables)

    def exempt(self, run: Run, exemptions: Sequence[Exemption]) -> Sequence[Verdict] | None:
        """Skip the policy; an exception that only allows values changes nothing here."""
        return exempted(exemptions)

    def _one(self, existing: ExistingObject, session: CelSession) -> Verdict | None:
        document, target = existing.document, existing.ref
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
        return Verdict(Status.PASS, "success", detail, changed, (existing.patched(changed),), target)
