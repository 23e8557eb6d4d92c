"""PolicyExceptions of kyverno.io as exceptions of policies in CEL.

An exception of the new kind exempts from a whole policy, by name and kind, and has no match: kinds, names, namespaces
and labels become match conditions. An exception that names some rules of a policy is converted where for every kind of
object the rules that it names are all that the new policy took over.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pyverno.compiler.migration.conditions.blocks import conditions_test
from pyverno.compiler.migration.expressions import names_of
from pyverno.compiler.migration.mutations.policy import names_of_any
from pyverno.compiler.migration.outcome import Converted, Note, UnconvertibleError
from pyverno.compiler.migration.related.successors import Successor, Successors
from pyverno.compiler.migration.schema import SchemaBook
from pyverno.compiler.migration.scope import ANY_OPERATION, Scope, convert_scope
from pyverno.compiler.migration.scopetests import one_of
from pyverno.compiler.migration.text import Cel, CelType, Reference, compare, literal
from pyverno.kube.json import JSONObject
from pyverno.kube.yaml.documents import Document
from pyverno.policy.decode import decode
from pyverno.policy.exception import PolicyException, PolicyReference

__all__ = ["convert_exception"]

_KIND: Final = Cel("request.kind.kind", CelType.STRING)


def convert_exception(document: Document, successors: Successors, book: SchemaBook) -> Converted:
    """Return the exceptions of policies in CEL; raises UnconvertibleError.

    There is one for each set of kinds for which policies are exempt. An exception that also names rules that stay as
    they are is kept beside them.
    """
    exception = decode(document).policy
    if not isinstance(exception, PolicyException):
        raise UnconvertibleError("not-an-exception", "", "the document is no PolicyException of kyverno.io")
    spec = exception.spec
    if spec.pod_security:
        reason = "parts of podSecurity cannot be exempt from a policy in CEL"
        raise UnconvertibleError("exception-pod-security", "spec.podSecurity", reason, "exempt from the whole policy")
    if not spec.background:
        reason = "an exception of a policy in CEL also counts in background scans"
        raise UnconvertibleError("exception-background", "spec.background", reason, "remove `background: false`")
    scope = convert_scope(spec.match, None, book.schemas.kinds, operations=ANY_OPERATION)
    if scope.namespace_selector is not None:
        reason = "an exception of a policy in CEL has no namespaceSelector"
        raise UnconvertibleError("exception-namespace-selector", "spec.match", reason, "list the namespaces")
    conditions = _conditions(document.value, scope, book)
    matched = frozenset(each.kind for each in scope.targets)
    groups: dict[tuple[str, frozenset[str]], list[Successor]] = {}
    notes: list[Note] = [*scope.notes]
    for reference in spec.exceptions:
        for successor, kinds in _exempted(reference, successors, matched):
            namespace = successor.policy.partition("/")[0] if "/" in successor.policy else ""
            groups.setdefault((namespace, kinds), []).append(successor)
        kept = successors.keeps(reference.policy_name, reference.rule_names)
        if kept:
            text = f"rules stay as they are ({', '.join(kept)}): keep the old exception for them"
            notes.append(Note("exception-kept", "spec.exceptions", text))
    if not groups:
        reason = "no policy that was converted is named"
        raise UnconvertibleError("exception-unused", "spec.exceptions", reason, "convert its policies along with it")
    documents = []
    for number, ((namespace, kinds), group) in enumerate(
        sorted(groups.items(), key=lambda item: sorted(item[0][1])), 1
    ):
        tests = [{"name": "kinds", "expression": one_of(_KIND, sorted(kinds)).text}, *conditions]
        if namespace:
            test = compare(Cel("request.namespace"), "==", literal(namespace))
            tests.append({"name": "policy-namespace", "expression": test.text})
        documents.append(_document(document.value, group, tests, number if len(groups) > 1 else 0))
    return Converted(tuple(documents), tuple(dict.fromkeys(notes)))


def _conditions(document: JSONObject, scope: Scope, book: SchemaBook) -> list[JSONObject]:
    found = [{"name": each.name, "expression": each.expression.text} for each in scope.conditions]
    written = document["spec"].get("conditions")
    if written is not None:
        kinds = {(each.group, each.version, each.kind) for each in scope.targets}
        names = names_of_any(scope.subject, book)
        if len(kinds) == 1 and (schema := book.of(*next(iter(kinds)))).is_known:
            names = names_of(Reference(scope.subject, schema), Reference("oldObject", schema), book=book)
        test = conditions_test(written, names, "spec.conditions")
        if test.fails:
            reason = "a condition that fails exempts from nothing, and is an error of the policy in CEL"
            raise UnconvertibleError("exception-condition", "spec.conditions", reason, "give every key a default")
        found.append({"name": "conditions", "expression": test.cel.text})
    return found


def _exempted(
    reference: PolicyReference, successors: Successors, matched: frozenset[str]
) -> Sequence[tuple[Successor, frozenset[str]]]:
    """Return the policies that are exempt as a whole, each with the kinds of objects for which it is."""
    everything = successors.of_policy(reference.policy_name)
    named = {each for rule in reference.rule_names for each in successors.find(reference.policy_name, rule)}
    found: dict[tuple[str, str], tuple[Successor, set[str]]] = {}
    for kind in sorted(matched):
        for successor in everything:
            if kind not in successor.kinds:
                continue
            same = [
                each
                for each in everything
                if kind in each.kinds and (each.name, each.kind) == (successor.name, successor.kind)
            ]
            chosen = [each for each in same if each in named]
            if not chosen:
                continue
            if len(chosen) < len(same):
                others = ", ".join(f"`{each.rule}`" for each in same if each not in named)
                reason = f"the new policy `{successor.name}` also does what rule {others} did"
                advice = "convert the policy into one for each rule, or exempt from all of its rules"
                raise UnconvertibleError("exception-of-some-rules", "spec.exceptions", reason, advice)
            found.setdefault((successor.name, successor.kind), (successor, set()))[1].add(kind)
    return [(successor, frozenset(kinds)) for successor, kinds in found.values()]


def _document(document: JSONObject, group: Sequence[Successor], tests: Sequence[JSONObject], number: int) -> JSONObject:
    metadata = dict(document["metadata"])
    if number:
        metadata["name"] = f"{metadata['name']}-{number}"
    references = {(each.name, each.kind): {"name": each.name, "kind": each.kind} for each in group}
    return {
        "apiVersion": "policies.kyverno.io/v1",
        "kind": "PolicyException",
        "metadata": metadata,
        "spec": {"policyRefs": list(references.values()), "matchConditions": list(tests)},
    }
