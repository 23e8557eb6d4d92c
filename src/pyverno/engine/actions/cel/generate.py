"""Generation in CEL: objects that a GeneratingPolicy wants, by expressions or by templates."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from pyverno.engine.actions.cel.annotations import annotation_detail
from pyverno.engine.actions.cel.validate import exempted, no_exceptions
from pyverno.engine.cel.session import CelCondition, CelSession, CelVariable, first_unmet, request_bindings
from pyverno.engine.effects import CreateEffect
from pyverno.engine.origin import cel_labels, uid_of
from pyverno.engine.result import ResourceRef, Status, Verdict
from pyverno.engine.rule import Exemption, Run
from pyverno.errors import EvaluationError, PyvernoError
from pyverno.kube.gvk import GVK, parse_api_version
from pyverno.kube.json import JSON, JSONObject
from pyverno.lang.cel import Program
from pyverno.value import dataclass

__all__ = ["GeneratingAction", "TemplateSource"]

TemplateSource = Callable[[CelSession], Sequence[JSONObject]]


@dataclass(frozen=True, slots=True)
class GeneratingAction:
    """Entries in order: expressions that call `generator.Apply`, or templates that give objects."""

    entries: tuple[Program | TemplateSource, ...]
    conditions: tuple[CelCondition, ...] = ()
    variables: tuple[CelVariable, ...] = ()
    synchronize: bool = False
    server_side_apply: bool = False
    orphan_on_policy_delete: bool = False
    annotations: tuple[tuple[str, Program], ...] = ()

    def run(self, run: Run) -> Sequence[Verdict]:
        """Collect what the entries ask for; nothing is created here."""
        return self._generate(run, no_exceptions())

    def _generate(self, run: Run, exceptions: Mapping[str, JSON]) -> Sequence[Verdict]:
        session = CelSession(run, {**request_bindings(run.request), "exceptions": dict(exceptions)}, self.variables)
        try:
            unmet = first_unmet(session.for_conditions(), self.conditions)
            if unmet is not None:
                if not unmet.errors:
                    return ()
                raise EvaluationError("; ".join(unmet.errors))
            for entry in self.entries:
                if isinstance(entry, Program):
                    session.evaluate(entry)
                else:
                    for document in entry(session):
                        # Kyverno: a template without a namespace gets that of the policy, if the policy has one
                        session.host.generate(ResourceRef.of(document).namespace or None, [document])
            detail = annotation_detail(session, self.annotations)
            effects = tuple(self._effect(namespace, document, run) for namespace, document in session.host.generated)
        except PyvernoError as error:
            return (Verdict(Status.ERROR, f"failed to evaluate policy: {error.message}"),)
        return (Verdict(Status.PASS, "policy evaluated successfully", detail, effects=effects),)

    def exempt(self, run: Run, exemptions: Sequence[Exemption]) -> Sequence[Verdict] | None:
        """Skip the policy, or generate with what the first exception allows that makes a difference."""
        verdicts = exempted(exemptions)
        if verdicts is not None or not exemptions:
            return verdicts
        usual = self._generate(run, no_exceptions())
        outcomes = (self._generate(run, exemption.allowances) for exemption in exemptions)
        return next((outcome for outcome in outcomes if outcome != usual), usual)

    def _effect(self, namespace: str, document: JSONObject, run: Run) -> CreateEffect:
        ref = ResourceRef.of(document)
        for required, text in (("apiVersion", ref.api_version), ("kind", ref.kind)):
            if not text:
                raise EvaluationError(f"failed to generate resources: an object to generate has no {required}")
        known = run.broker.host.kinds.is_namespaced(GVK(*parse_api_version(ref.api_version), ref.kind))
        metadata = dict(document.get("metadata") or {})
        is_copy = bool(uid_of(document))  # an object that has a uid was read from the cluster
        own = run.rule.info.policy.namespace
        if known is False:
            if own:
                raise EvaluationError(
                    f"a policy of namespace `{own}` may not generate the cluster-scoped kind {ref.kind}"
                )
            metadata.pop("namespace", None)
        elif namespace:
            metadata["namespace"] = namespace
        for dropped in ("uid", "selfLink", "creationTimestamp", "managedFields", "resourceVersion"):
            metadata.pop(dropped, None)
        if is_copy and ref.namespace != metadata.get("namespace", ""):
            metadata.pop("ownerReferences", None)  # an owner in another namespace would have the copy deleted
        labels = metadata.get("labels") or {}
        if not isinstance(labels, dict):
            raise EvaluationError("failed to generate resources: the labels of an object to generate must be a map")
        metadata["labels"] = {**labels, **cel_labels(run.rule.info.policy, run.request, uid_of(document))}
        placed = {key: value for key, value in document.items() if key != "status"}
        placed["metadata"] = metadata
        return CreateEffect(
            placed,
            synchronize=self.synchronize,
            server_side_apply=self.server_side_apply,
            # Kyverno: copies stay when the policy is gone
            orphan_on_policy_delete=self.orphan_on_policy_delete or is_copy,
            source=ref if is_copy else None,
            adopts=False,
        )
