"""The frame of a rule's check: its scope with the copies of autogen, the object it reads, the policy's settings.

Copies for pod controllers come from the engine's own autogen. A rule and its copies become one scope, in which the
variable `pod` is the Pod or the template of the controller, and the checks are written once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pyverno.compiler.autogen.patterns import expand
from pyverno.compiler.migration.outcome import Note, UnconvertibleError, join_path
from pyverno.compiler.migration.schema import Schema, SchemaBook
from pyverno.compiler.migration.scope import Condition, Scope, convert_scope
from pyverno.compiler.migration.scopetests import Target, one_of, rule_path
from pyverno.compiler.migration.text import Cel, CelType, Reference, all_of, any_of
from pyverno.kube.json import JSONObject
from pyverno.policy.cleanup import CleanupPolicy
from pyverno.policy.clusterpolicy import ClusterPolicy
from pyverno.policy.rule import Rule
from pyverno.policy.subresources import POD_SUBRESOURCES, pod_subresources_of
from pyverno.value import dataclass, replace

__all__ = ["Frame", "PodVariable", "frame_of", "home_of", "policy_head"]

_CRON_JOB: Final = "CronJob"
_KIND: Final = Cel("request.kind.kind", CelType.STRING)
_DROPPED: Final = ("pod-policies.kyverno.io/autogen-controllers", "kubectl.kubernetes.io/last-applied-configuration")


@dataclass(frozen=True, slots=True)
class PodVariable:
    """The variable that holds the Pod, or the template of a controller: its name and expression."""

    name: str
    expression: str


@dataclass(frozen=True, slots=True, eq=False)
class Frame:
    """The scope of a rule and its copies. `has_pods` means that the checks read `variables.pod`, not the object."""

    rule: Rule
    scope: Scope
    book: SchemaBook
    has_pods: bool = False
    subject: str = ""

    @property
    def root(self) -> str:
        """The object that the checks read, the old one on DELETE unless `subject` is another."""
        return self.subject or self.scope.subject

    @property
    def roots(self) -> tuple[tuple[tuple[Target, ...], Reference], ...]:
        """Groups of matched kinds, each with the object that its checks read."""
        return self.roots_of(self.root, "pod")

    @property
    def old_roots(self) -> tuple[tuple[tuple[Target, ...], Reference], ...]:
        """The same for the object as it was before an update."""
        return self.roots_of("oldObject", "oldPod")

    def roots_of(self, root: str, pod: str) -> tuple[tuple[tuple[Target, ...], Reference], ...]:
        """Return the groups of kinds for a root of the object and the name of the variable that holds the Pod."""
        if self.has_pods:
            return ((self.scope.targets, Reference(f"variables.{pod}", pod_schema(self.book))),)
        by_kind: dict[tuple[str, str, str], list[Target]] = {}
        for target in self.scope.targets:
            by_kind.setdefault((target.group, target.version, target.kind), []).append(target)
        return tuple(
            (tuple(targets), Reference(root, self._schema(targets[0]))) for _, targets in sorted(by_kind.items())
        )

    def _schema(self, target: Target) -> Schema:
        if target.kind == "*" or target.subresource not in ("", "status", *POD_SUBRESOURCES):
            return self.book.any_object()
        found = self.book.of(target.group, target.version, target.kind)
        return found if found.is_known else self.book.any_object()

    def pod_variables(self, texts: Sequence[str]) -> tuple[PodVariable, ...]:
        """Return the variables that expressions of this rule read: `pod`, and `oldPod` for the object before."""
        found = []
        for name, root in (("pod", self.root), ("oldPod", "oldObject")):
            if any(f"variables.{name}." in text or text.endswith(f"variables.{name}") for text in texts):
                found.append(PodVariable(name, self._pod(root)))
        return tuple(found)

    def _pod(self, root: str) -> str:
        kinds = {target.kind for target in self.scope.targets}
        cases = []
        if "Pod" in kinds:
            cases.append(f"request.kind.kind == 'Pod' ? {root}")
        if _CRON_JOB in kinds:
            cases.append(f"request.kind.kind == '{_CRON_JOB}' ? {root}.spec.jobTemplate.spec.template")
        if kinds - {"Pod", _CRON_JOB}:
            return " : ".join([*cases, f"{root}.spec.template"])
        *before, last = cases
        return " : ".join([*before, last.partition(" ? ")[2]])


def pod_schema(book: SchemaBook) -> Schema:
    """Return the schema of `variables.pod`: a Pod without the fields that templates lack."""
    return book.schema_of(
        {
            "type": "object",
            "required": ["spec"],
            "properties": {
                "metadata": {"$ref": "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"},
                "spec": {"$ref": "io.k8s.api.core.v1.PodSpec"},
            },
        }
    )


def frame_of(
    policy: ClusterPolicy,
    rule: Rule,
    book: SchemaBook,
    *,
    operations: Sequence[str],
    allowed: Sequence[str] = (),
) -> Frame:
    """Return the frame of a rule; raises UnconvertibleError for a scope that CEL cannot express."""
    table = book.schemas.kinds
    scope = convert_scope(
        rule.match,
        rule.exclude,
        table,
        operations=operations,
        allowed=allowed,
        pod_subresources=pod_subresources_of(rule),
    )
    scope = _with_guessed_kinds(scope, rule, book)
    copies = [each for each in expand(policy) if each.path == rule.path and each.name != rule.name]
    if not copies:
        return Frame(rule, scope, book)
    scopes = [convert_scope(each.match, each.exclude, table, operations=operations, allowed=allowed) for each in copies]
    return Frame(rule, _united([scope, *scopes]), book, has_pods=True)


def _with_guessed_kinds(scope: Scope, rule: Rule, book: SchemaBook) -> Scope:
    """Return a scope that selects kinds without a definition by kind: only a cluster knows their plural names."""
    guessed = [target for target in scope.targets if book.is_inferred(target.group, target.kind)]
    if not guessed:
        return scope
    targets = [replace(each, plural="*") if each in guessed else each for each in scope.targets]
    conditions = scope.conditions
    if all(each.kind != "*" for each in targets):
        conditions = (Condition("kind", one_of(_KIND, sorted({each.kind for each in targets}))), *conditions)
    names = ", ".join(sorted({f"{each.group}/{each.kind}" for each in guessed}))
    text = f"no definition of {names} is known: fields have the types that rules compare them with; --crd makes sure"
    note = Note("assumed-types", join_path(rule_path(rule.match.path), "kinds"), text)
    return replace(
        scope,
        targets=tuple(sorted(targets)),
        conditions=conditions,
        scope=_scope_word(scope),
        notes=(*scope.notes, note),
    )


def _scope_word(scope: Scope) -> str:
    """Return the scope of a kind that may or may not have namespaces: selected labels of one are only there."""
    selector = scope.namespace_selector or {}
    operators = {each.get("operator") for each in selector.get("matchExpressions") or ()}
    return "Namespaced" if selector.get("matchLabels") or operators & {"In", "Exists"} else scope.scope


def _united(scopes: Sequence[Scope]) -> Scope:
    """Return one scope for a rule and its copies, whose conditions may differ by kind."""
    first = scopes[0]
    targets = [target for scope in scopes for target in scope.targets]
    if len(set(targets)) != len(targets):
        raise UnconvertibleError(
            "autogen-overlap",
            "match",
            "the rule names a kind for which autogen also makes a copy, and judges it twice",
            "split the rule by kind, or switch autogen off with the annotation",
        )
    if any(
        (each.operations, each.namespace_selector) != (first.operations, first.namespace_selector) for each in scopes
    ):
        raise UnconvertibleError("autogen", "match", "the copies of the rule are for other requests", "split the rule")
    conditions = first.conditions
    if any(_texts(each) != _texts(first) for each in scopes):
        alternatives = []
        for each in scopes:
            is_kind = one_of(_KIND, [target.kind for target in each.targets])
            alternatives.append(all_of([is_kind, *(condition.expression for condition in each.conditions)]))
        conditions = (Condition("match", any_of(alternatives)),)
    return replace(first, targets=tuple(sorted(targets)), conditions=conditions)


def _texts(scope: Scope) -> list[tuple[str, str]]:
    return [(each.name, each.expression.text) for each in scope.conditions]


def home_of(policy: ClusterPolicy | CleanupPolicy) -> str:
    """Return the namespace of a policy that reads the objects of its namespace only, "" for others."""
    return (policy.namespace or "default") if policy.is_namespaced else ""


def policy_head(policy: ClusterPolicy, kind: str, name: str) -> JSONObject:
    """Return apiVersion, kind and metadata of a policy that takes the place of another one."""
    written: JSONObject = policy.raw.get("metadata") or {}
    metadata: JSONObject = {"name": name}
    if policy.is_namespaced and policy.namespace:
        metadata["namespace"] = policy.namespace
    if written.get("labels"):
        metadata["labels"] = dict(written["labels"])
    annotations = {key: value for key, value in (written.get("annotations") or {}).items() if key not in _DROPPED}
    if annotations:
        metadata["annotations"] = annotations
    prefix = "Namespaced" if policy.is_namespaced else ""
    return {"apiVersion": "policies.kyverno.io/v1", "kind": prefix + kind, "metadata": metadata}
