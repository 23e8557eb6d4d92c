"""One rule in both dialects, evaluated on generated objects: the reference for converted expressions."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from pyverno.cli.equivalent.admission import admission_of
from pyverno.compiler import compile_documents
from pyverno.compiler.equivalence.compare import Comparison, Pair, compare
from pyverno.compiler.equivalence.shrinking import Admit
from pyverno.compiler.equivalence.vocabulary import vocabulary_of
from pyverno.compiler.migration.conditions.blocks import conditions_test
from pyverno.compiler.migration.expressions import Names, names_of
from pyverno.compiler.migration.foreach import elements_pass
from pyverno.compiler.migration.schema import SchemaBook
from pyverno.compiler.migration.text import TRUE, Reference, any_of, ternary
from pyverno.compiler.migration.variables import variables_of
from pyverno.engine.engine import Engine
from pyverno.engine.policyset import PolicySet
from pyverno.kube.json import JSONObject
from pyverno.kube.kinds import KindInfo
from pyverno.kube.yaml.documents import load_documents
from pyverno.kube.yaml.writer import dump_yaml
from pyverno.policy.kinds import KNOWN_KINDS

__all__ = ["admission", "compare_rule", "convert_rule", "engine_of", "kind_named", "names_for"]

GROUP = "policies.kyverno.io/v1"
WITHOUT_AUTOGEN = {"pod-policies.kyverno.io/autogen-controllers": "none"}


@cache
def _book() -> SchemaBook:
    return SchemaBook()


@cache
def admission() -> Admit:
    """Return the objects that the API server of one Kubernetes version admits."""
    return admission_of("1.35")


def kind_named(kind: str) -> KindInfo:
    """Return a built-in kind; an unknown one is a custom kind without a schema."""
    found = KNOWN_KINDS.by_kind(kind)
    return found[0] if found else KindInfo("example.com", "v1", kind, f"{kind.lower()}s", kind.lower(), namespaced=True)


def names_for(kind: str) -> Names:
    """Return the names of a rule for objects of a kind."""
    info = kind_named(kind)
    schema = _book().of(info.group, info.version, info.kind)
    return names_of(Reference("object", schema), Reference("oldObject", schema), book=_book())


def convert_rule(rule: JSONObject, kind: str, names: Names | None = None) -> JSONObject:
    """Return a ValidatingPolicy for the checks of a rule: context, preconditions, deny or foreach."""
    info = kind_named(kind)
    names, variables = variables_of(rule.get("context") or [], names or names_for(kind), "context")
    before = conditions_test(rule.get("preconditions"), names, "preconditions")
    validate = rule["validate"]
    if "deny" in validate:
        passes = conditions_test(validate["deny"]["conditions"], names, "validate.deny.conditions", strict=False)
        holds = passes.cel.not_()
    else:
        holds = elements_pass(validate["foreach"], names, "validate.foreach")
    holds = ternary(before.cel, holds, TRUE) if before.fails else any_of([before.cel.not_(), holds])
    spec: JSONObject = {
        "validationActions": ["Deny"],
        "autogen": {"podControllers": {"controllers": []}},
        "matchConstraints": {
            "resourceRules": [
                {
                    "apiGroups": [info.group],
                    "apiVersions": [info.version],
                    "operations": ["CREATE", "UPDATE"],
                    # a rule for Pods also judges the subresource that adds ephemeral containers
                    "resources": [info.plural, *(["pods/ephemeralcontainers"] if info.kind == "Pod" else [])],
                }
            ]
        },
        "validations": [{"expression": holds.text, "message": "refused"}],
    }
    if variables:
        spec["variables"] = [{"name": each.name, "expression": each.expression.text} for each in variables]
    return {"apiVersion": GROUP, "kind": "ValidatingPolicy", "metadata": {"name": "rule"}, "spec": spec}


def legacy_policy(rule: JSONObject, kind: str) -> JSONObject:
    """Return the rule as a ClusterPolicy with the match of the converted policy."""
    info = kind_named(kind)
    kinds = [f"{info.api_version}/{info.kind}"]
    match = {"any": [{"resources": {"kinds": kinds, "operations": ["CREATE", "UPDATE"]}}]}
    validate = {**rule["validate"], "message": "refused", "failureAction": "Enforce", "allowExistingViolations": False}
    written = {**rule, "name": "rule", "match": match, "validate": validate}
    return {
        "apiVersion": "kyverno.io/v1",
        "kind": "ClusterPolicy",
        "metadata": {"name": "rule", "annotations": WITHOUT_AUTOGEN},
        "spec": {"background": False, "rules": [written]},
    }


def engine_of(*documents: JSONObject) -> Engine:
    """Compile documents without errors."""
    compilation = compile_documents([each for document in documents for each in load_documents(dump_yaml(document))])
    assert () == compilation.errors
    return Engine(PolicySet(compilation.policies))


def compare_rule(
    rule: JSONObject, kind: str, converted: JSONObject, *, count: int, seed: int = 7, seeds: Sequence[JSONObject] = ()
) -> Comparison:
    """Evaluate generated objects with a rule and with its conversion."""
    old = legacy_policy(rule, kind)
    pair = Pair(engine_of(old), engine_of(converted), admission())
    return compare(pair, vocabulary_of([old, converted]), seeds=seeds, count=count, seed=seed)
