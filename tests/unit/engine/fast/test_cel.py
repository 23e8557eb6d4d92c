"""Fast tiers of validations in CEL: which rules have one, and that it changes no result."""

from __future__ import annotations

from typing import Any

import pytest

from pyverno.engine.engine import Engine
from pyverno.engine.host import NoHost
from pyverno.engine.phases import VALIDATING
from pyverno.engine.request import Operation, Request
from pyverno.engine.rule import NO_FAST_TIER, FastTier
from pyverno.kube.json import JSON, JSONObject
from tests.support.celpolicies import (
    CONFIG_MAP,
    CONSTRAINTS,
    binding,
    compiled,
    conditions,
    exception,
    kyverno,
    named,
    native,
    validations,
)

HOLDS = "object.data.key == 'value'"
FAILS = "object.data.key == 'other'"


class SupplyingHost(NoHost):
    """Makes the engine ask the closures, as where a person supplied variables."""

    supplies_variables = True


def fast_tier(*documents: JSONObject) -> FastTier:
    """Return the fast tier of the first rule."""
    compilation = compiled(*documents)
    assert [] == [str(error) for error in compilation.errors]
    rule = compilation.policies[0].rules[0]
    return NO_FAST_TIER if rule.fast_tier is None else rule.fast_tier()


def rule(**cel: Any) -> JSONObject:
    """Return a ClusterPolicy with a `validate.cel` rule."""
    match = {"any": [{"resources": {"kinds": ["ConfigMap"]}}]}
    return {
        "apiVersion": "kyverno.io/v1",
        "kind": "ClusterPolicy",
        "metadata": {"name": "check"},
        "spec": {"rules": [{"name": "rule", "match": match, "validate": {"cel": cel}}]},
    }


def said(documents: tuple[JSONObject, ...], host: NoHost, value: JSON, operation: str) -> list[tuple[str, str, Any]]:
    """Return status, text and detail of every result."""
    request = Request.from_manifest(value, operation=Operation(operation))
    results = Engine(compiled(*documents).policy_set(), host).review(request, VALIDATING).results
    return [(result.status.value, result.message, result.detail) for result in results]


PROVEN = (
    (kyverno(validations=validations(HOLDS)),),
    (kyverno("NamespacedValidatingPolicy", validations=validations(HOLDS, "object.kind == 'ConfigMap'")),),
    (kyverno(matchConditions=conditions(HOLDS), validations=validations("variables.v == 1"), variables=named(v="1")),),
    (kyverno(validations=validations(HOLDS, messageExpression="'no ' + object.data.key")),),
    (kyverno(validations=validations(FAILS)),),
    (native(validations=validations(HOLDS)),),
    (native(validations=validations(HOLDS)), binding()),
    (native(validations=validations(HOLDS)), binding("one"), binding("two")),
    (native(validations=validations("variables.v.size() == 5"), variables=named(v="object.data.key")), binding()),
    (rule(expressions=validations(HOLDS)),),
    (rule(expressions=validations("variables.v"), variables=named(v=HOLDS)),),
)
UNPROVEN = (
    (kyverno(validations=validations("request.operation == 'CREATE'")),),
    (kyverno(validations=validations("oldObject == null")),),
    (kyverno(validations=validations("'a' in exceptions.allowedValues")),),
    (kyverno(validations=validations("resource.List('v1', 'configmaps', 'team').items.size() == 0")),),
    (kyverno(validations=validations(HOLDS), auditAnnotations=[{"key": "a", "valueExpression": "'b'"}]),),
    (kyverno(matchConditions=conditions("namespaceObject != null"), validations=validations(HOLDS)),),
    (native(validations=validations("authorizer.group('').resource('pods').check('get').allowed()")),),
    (native(validations=validations(HOLDS)), binding(matchResources=CONSTRAINTS)),
    (
        native(validations=validations(HOLDS), paramKind={"apiVersion": "v1", "kind": "ConfigMap"}),
        binding(paramRef={"name": "a", "namespace": "b", "parameterNotFoundAction": "Allow"}),
    ),
    (
        rule(
            expressions=validations(HOLDS),
            paramKind={"apiVersion": "v1", "kind": "ConfigMap"},
            paramRef={"name": "a", "namespace": "b", "parameterNotFoundAction": "Allow"},
        ),
    ),
)


@pytest.mark.parametrize("documents", PROVEN)
def test_rules_about_the_object_have_a_proof(documents: tuple[JSONObject, ...]) -> None:
    """All kinds of validations in CEL have one; the results that it gives are those of the closures."""
    assert fast_tier(*documents).pass_check is not None
    for value in (CONFIG_MAP, {**CONFIG_MAP, "data": {"key": "other"}}, {**CONFIG_MAP, "data": {}}):
        for operation in ("CREATE", "UPDATE", "DELETE"):
            fast, exact = (said(documents, host, value, operation) for host in (NoHost(), SupplyingHost()))
            assert exact == fast


@pytest.mark.parametrize("documents", UNPROVEN)
def test_what_the_object_does_not_decide_has_no_fast_tier(documents: tuple[JSONObject, ...]) -> None:
    """Requests, parameters, the world, exceptions by value and annotations are left to the closures."""
    assert NO_FAST_TIER == fast_tier(*documents)


def test_an_exception_keeps_a_policy_from_its_fast_tier() -> None:
    """A rule that an exception names is judged in full: it may be skipped, although it would pass."""
    documents = (kyverno(validations=validations(HOLDS)), exception())
    (status, message, _), *rest = said(documents, NoHost(), CONFIG_MAP, "CREATE")
    assert [] == rest
    assert ("skip", "rule is skipped due to policy exception: team/let") == (status, message)


def test_the_fast_verdict_of_a_rule_covers_passes_only() -> None:
    """It gives the results of a pass, or leaves the object to the closures."""
    made = fast_tier(kyverno(validations=validations(HOLDS)))
    assert made.verdict is not None
    assert made.verdict(CONFIG_MAP) == made.passed
    assert made.verdict({**CONFIG_MAP, "data": {}}) is None


def test_patterns_and_cel_share_one_pass_check() -> None:
    """A plan of both languages passes where both do, and each policy is judged alone where one does not."""
    pattern = rule(expressions=validations(HOLDS))
    pattern["metadata"] = {"name": "pattern"}
    pattern["spec"]["rules"][0]["validate"] = {"message": "no", "pattern": {"data": {"key": "value"}}}
    documents = (pattern, rule(expressions=validations(HOLDS)))
    for value in (CONFIG_MAP, {**CONFIG_MAP, "data": {"key": "other"}}):
        fast, exact = (said(documents, host, value, "CREATE") for host in (NoHost(), SupplyingHost()))
        assert sorted(map(str, exact)) == sorted(map(str, fast))
