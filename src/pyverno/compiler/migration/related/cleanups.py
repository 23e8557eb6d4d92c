"""CleanupPolicies as DeletingPolicies: the same schedule, match and conditions as CEL on `object`.

Conditions see `target` and the context, which is read once for a run in the old dialect and once for an object in the
new one.
"""

from __future__ import annotations

from typing import Final

from pyverno.compiler.migration.conditions import conditions
from pyverno.compiler.migration.expressions import Names, Value
from pyverno.compiler.migration.expressions.value import of_reference
from pyverno.compiler.migration.frame import home_of
from pyverno.compiler.migration.outcome import Converted, Note, UnconvertibleError
from pyverno.compiler.migration.schema import ANY, SchemaBook
from pyverno.compiler.migration.scope import Scope, convert_scope
from pyverno.compiler.migration.text import Cel, CelType, Level, Reference
from pyverno.compiler.migration.variables import variables_of
from pyverno.kube.json import JSONObject
from pyverno.kube.kinds import KindTable
from pyverno.kube.yaml.documents import Document
from pyverno.policy.cleanup import CleanupPolicy
from pyverno.policy.decode import decode
from pyverno.policy.kinds import KNOWN_KINDS

__all__ = ["convert_cleanup"]

_ONLY_OBJECT: Final[dict[tuple[str, ...], tuple[str, str, str]]] = {
    ("request",): ("request", "a cleanup run has no request", "use `target`"),
    ("images",): ("images-variable", "CEL has no `images`", "compare the text of the image"),
}


def convert_cleanup(document: Document, book: SchemaBook, table: KindTable = KNOWN_KINDS) -> Converted:
    """Return the DeletingPolicy of a CleanupPolicy or ClusterCleanupPolicy; raises UnconvertibleError."""
    policy = decode(document).policy
    if not isinstance(policy, CleanupPolicy):
        raise UnconvertibleError("not-a-cleanup-policy", "", "the document is no CleanupPolicy")
    scope = convert_scope(
        policy.spec.match, policy.spec.exclude, table, operations=("CREATE",), pod_subresources=frozenset()
    )
    names = Names(_targets(scope, book), refused=_ONLY_OBJECT, home=home_of(policy))
    written = document.value["spec"]
    names, variables = variables_of(written.get("context") or (), names, "spec.context")
    found = [(each.name, each.expression) for each in scope.conditions]
    if written.get("conditions") is not None:
        test = conditions(written["conditions"], names, "spec.conditions")
        if test.text != "true":
            found.append(("conditions", test))
    found = [(name, _without_request(test)) for name, test in found]
    for name, test in found:
        if "request." in test.text:
            reason = "a deleting policy has no request: several kinds cannot be distinguished"
            raise UnconvertibleError("request", f"spec.match ({name})", reason, "write a policy for each kind")
    spec: JSONObject = {"schedule": written["schedule"]}
    if written.get("deletionPropagationPolicy"):
        spec["deletionPropagationPolicy"] = written["deletionPropagationPolicy"]
    spec["matchConstraints"] = _constraints(scope)
    if variables:
        spec["variables"] = [{"name": each.name, "expression": each.expression.text} for each in variables]
    if found:
        spec["conditions"] = [{"name": name, "expression": test.text} for name, test in found]
    notes = [*scope.notes, *names.notes]
    if variables:
        notes.append(Note("context-per-object", "spec.context", "the context is read for every object, not once a run"))
    return Converted(({**_head(document.value), "spec": spec},), tuple(notes))


def _without_request(test: Cel) -> Cel:
    """Return a test that reads the kind of the object, not of the request, and whose type is certainly bool."""
    text = test.text.replace("request.kind.kind", "object.kind")
    if test.level is Level.PRIMARY and (".orValue(" in text or not text.endswith(")")) and not text.startswith("has("):
        return Cel(f"{text} == true", CelType.BOOL, Level.RELATION)
    return Cel(text, CelType.BOOL, test.level)


def _targets(scope: Scope, book: SchemaBook) -> dict[tuple[str, ...], Value]:
    """Return what `target` is: an object of one kind, or one of which only the metadata have known types."""
    kinds = {(each.group, each.version, each.kind) for each in scope.targets}
    schema = book.of(*next(iter(kinds))) if len(kinds) == 1 else ANY
    if schema.is_known:
        return {("target",): of_reference(Reference("object", schema))}
    metadata = Reference("object", book.any_object()).field("metadata")
    return {("target",): of_reference(Reference("object")), ("target", "metadata"): of_reference(metadata)}


def _constraints(scope: Scope) -> JSONObject:
    found = scope.constraints
    rules = [{**each, "operations": ["*"]} for each in found["resourceRules"]]
    return {**found, "resourceRules": rules}


def _head(document: JSONObject) -> JSONObject:
    kind = "DeletingPolicy" if document["kind"] == "ClusterCleanupPolicy" else "NamespacedDeletingPolicy"
    return {"apiVersion": "policies.kyverno.io/v1", "kind": kind, "metadata": document["metadata"]}
