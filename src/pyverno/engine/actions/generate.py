"""`generate`: objects that should exist because of this one."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from pyverno.engine.actions.elements import Elements
from pyverno.engine.effects import CreateEffect, Effect
from pyverno.engine.origin import CLONE_SOURCE, copy_labels, rule_labels
from pyverno.engine.redaction import redact_errors, redact_values
from pyverno.engine.result import ResourceRef, Status, Verdict
from pyverno.engine.rule import Exemption, Run
from pyverno.errors import BudgetExceededError, EvaluationError, ExpressionError, HostError, PyvernoError
from pyverno.kube.gvk import GVK, parse_api_version
from pyverno.kube.json import JSONObject
from pyverno.lang.template import Template
from pyverno.value import dataclass, replace

__all__ = ["CloneListSource", "CloneSource", "DataSource", "GenerateElements", "GenerateRule", "Source"]

_DROPPED = ("uid", "selfLink", "creationTimestamp", "managedFields", "resourceVersion")


@dataclass(frozen=True, slots=True)
class DataSource:
    """An object written in the rule: target fields and `data`."""

    document: Template

    def objects(self, run: Run) -> Sequence[CreateEffect]:
        """Return the one object."""
        value = self.document.render(run.scope, run.runtime, delete_request=run.is_delete)
        target = value["target"]
        data = value.get("data")
        if not isinstance(data, dict):
            raise EvaluationError("the data of a generate rule must be an object")
        return (CreateEffect(_place(data, target, run)),)


@dataclass(frozen=True, slots=True)
class CloneSource:
    """A copy of one existing object."""

    document: Template

    def objects(self, run: Run) -> Sequence[CreateEffect]:
        """Return the copy; raises EvaluationError when the source does not exist."""
        value = self.document.render(run.scope, run.runtime, delete_request=run.is_delete)
        target, clone = value["target"], value["clone"]
        api_version, kind = target.get("apiVersion") or "", target.get("kind") or ""
        namespace, name = clone.get("namespace") or "", clone.get("name") or ""
        if (namespace, name) == (target.get("namespace") or "", target.get("name")):
            return ()
        source = redact_errors(
            lambda: run.broker.get_object(api_version, kind, namespace, name), (self.document, value)
        )
        if source is None:
            text = f"source resource {api_version} {kind}/{namespace}/{name} not found"
            raise EvaluationError(redact_values(text, self.document, value))
        # Kyverno: the copy of one named object stays when the rule is gone
        return (replace(_clone(source, target, run), orphan_on_policy_delete=True),)


@dataclass(frozen=True, slots=True)
class CloneListSource:
    """Copies of all objects of some kinds in a namespace."""

    document: Template

    def objects(self, run: Run) -> Sequence[CreateEffect]:
        """Return the copies; sources in the target's own namespace are left out."""
        value = self.document.render(run.scope, run.runtime, delete_request=run.is_delete)
        target, clone = value["target"], value["cloneList"]
        namespace = clone.get("namespace") or ""
        if namespace == (target.get("namespace") or ""):
            return ()
        if not namespace and self.document.document["cloneList"]["namespace"]:  # it would select all namespaces
            raise EvaluationError("the variables in `cloneList.namespace` yield an empty text")
        found: list[CreateEffect] = []
        for written in clone.get("kinds") or ():
            api_version, _, kind = str(written).rpartition("/")
            listing = partial(run.broker.list_objects, api_version, kind, namespace, clone.get("selector"))
            for source in redact_errors(listing, (self.document, value)):
                own = {**target, "apiVersion": api_version, "kind": kind, "name": ResourceRef.of(source).name}
                found.append(_clone(source, own, run))
        return found


Source = DataSource | CloneSource | CloneListSource


@dataclass(frozen=True, slots=True)
class GenerateElements:
    """One foreach entry of a generate rule."""

    elements: Elements
    source: Source


@dataclass(frozen=True, slots=True)
class GenerateRule:
    """Objects to create: from one source, or from one per element of lists."""

    source: Source | None = None
    entries: tuple[GenerateElements, ...] = ()
    synchronize: bool = False
    server_side_apply: bool = False
    orphan_on_policy_delete: bool = False

    def run(self, run: Run) -> Sequence[Verdict]:
        """Describe the objects as effects; nothing is created here."""
        if run.request.object is None and run.request.old is None:
            return ()
        problems: list[str] = []
        try:
            effects = self._effects(run, problems)
        except (BudgetExceededError, HostError):
            raise
        except PyvernoError as error:
            return (Verdict(Status.ERROR, error.message),)
        if problems:
            return (Verdict(Status.ERROR, "; ".join(problems), effects=tuple(effects)),)
        return (Verdict(Status.PASS, effects=tuple(effects)),)

    def exempt(self, run: Run, exemptions: Sequence[Exemption]) -> Sequence[Verdict] | None:
        """Skip the rule and name the exceptions."""
        keys = tuple(exemption.key for exemption in exemptions)
        text = "rule is skipped due to policy exception " + ", ".join(keys)
        return (Verdict(Status.SKIP, text, exceptions=keys),)

    def _effects(self, run: Run, problems: list[str]) -> list[Effect]:
        made: list[CreateEffect] = []
        if self.source is not None:
            made.extend(self.source.objects(run))
        for entry in self.entries:
            made.extend(_for_elements(entry, run, problems))
        return [
            replace(
                effect,
                synchronize=self.synchronize,
                server_side_apply=self.server_side_apply,
                orphan_on_policy_delete=self.orphan_on_policy_delete or effect.orphan_on_policy_delete,
            )
            for effect in made
        ]


def _for_elements(entry: GenerateElements, run: Run, problems: list[str]) -> list[CreateEffect]:
    """Generate for every element; a problem with one element does not stop the others."""
    made: list[CreateEffect] = []
    try:
        values = entry.elements.values(run)
    except (BudgetExceededError, HostError):
        raise
    except ExpressionError as error:
        problems.append(f"failed to evaluate list {entry.elements.query.text}: {error.message}")
        return made
    for _, _, inner in entry.elements.visit(run, values):
        try:
            if entry.elements.preconditions is not None and entry.elements.preconditions.check(inner) is not None:
                continue
            made.extend(entry.source.objects(inner))
        except (BudgetExceededError, HostError):
            raise
        except PyvernoError as error:
            problems.append(error.message)
    return made


def _place(data: JSONObject, target: JSONObject, run: Run) -> JSONObject:
    """Give an object the identity from the rule, and labels with its origin."""
    metadata = data.get("metadata")
    metadata = dict(metadata) if isinstance(metadata, dict) else {}
    metadata["name"] = target.get("name") or ""
    namespace = target.get("namespace") or ""
    if namespace:
        metadata["namespace"] = namespace
    labels = metadata.get("labels")
    metadata["labels"] = {
        **(labels if isinstance(labels, dict) else {}),
        **rule_labels(run.rule.info.policy, run.rule.info.name, run.request),
    }
    placed = {**data, "apiVersion": target.get("apiVersion") or "", "kind": target.get("kind") or ""}
    placed["metadata"] = metadata
    _confine(placed, run)
    return placed


def _confine(placed: JSONObject, run: Run) -> None:
    """Raise unless a policy of a namespace generates in it; variables may have chosen the kind of the object."""
    own = run.rule.info.policy.namespace
    if not own:
        return
    if placed["metadata"].get("namespace") != own:
        raise EvaluationError(f"a policy of namespace `{own}` may not generate in another namespace")
    ref = ResourceRef.of(placed)
    if run.broker.host.kinds.is_namespaced(GVK(*parse_api_version(ref.api_version), ref.kind)) is False:
        raise EvaluationError(f"a policy of namespace `{own}` may not generate cluster-scoped objects")


def _clone(source: JSONObject, target: JSONObject, run: Run) -> CreateEffect:
    origin = ResourceRef.of(source)
    metadata = {key: value for key, value in (source.get("metadata") or {}).items() if key not in _DROPPED}
    if origin.namespace != (target.get("namespace") or ""):
        metadata.pop("ownerReferences", None)
        metadata.pop("namespace", None)
    copy = {key: value for key, value in source.items() if key != "status"}
    copy["metadata"] = metadata
    identity = {**target, "apiVersion": target.get("apiVersion") or origin.api_version}
    placed = _place(copy, identity, run)
    labels = {key: value for key, value in placed["metadata"]["labels"].items() if key != CLONE_SOURCE}
    labels.update(copy_labels(source))
    placed["metadata"] = {**placed["metadata"], "labels": labels}
    return CreateEffect(placed, source=origin)
