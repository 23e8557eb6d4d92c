"""Rules that enforce and excuse updates of what failed before: both dialects judge the old object alike."""

from __future__ import annotations

import pytest

from pyverno.kube.json import JSON, JSONObject
from tests.support.conversions import convert, differences, policy, rule

OWNER = "{{ request.object.metadata.annotations.owner || '' }}"
TIER: JSONObject = {
    "all": [{"key": "{{ request.object.metadata.labels.tier || '' }}", "operator": "Equals", "value": "a"}]
}
LABELLED: JSONObject = {"any": [{"resources": {"selector": {"matchLabels": {"tier": "a"}}}}]}
FIXED: JSON = [{"name": "least", "variable": {"value": 5}}]
OF_OBJECT: JSON = [{"name": "own", "variable": {"jmesPath": "request.object.metadata.annotations.owner || 'x'"}}]


def deny(key: str, value: JSON, operator: str = "Equals") -> JSONObject:
    """Return a check that denies by one condition."""
    return {"deny": {"conditions": {"all": [{"key": key, "operator": operator, "value": value}]}}}


def enforced(check: JSONObject, *kinds: str, **more: JSON) -> JSONObject:
    """Return a rule that enforces a check, with everything else by default."""
    entry: JSONObject = rule("a", None, kinds=kinds, action="Enforce", **more)
    entry["validate"] |= check
    return entry


OWNED: JSONObject = {"pattern": {"metadata": {"annotations": {"owner": "?*"}}}}
BOTH: JSONObject = {
    "deny": {
        "conditions": {
            "any": [
                {"key": "{{ to_upper(request.object.metadata.labels.tier) }}", "operator": "Equals", "value": "A"},
                {"key": OWNER, "operator": "Equals", "value": "bob"},
            ]
        }
    }
}
PORTS: JSONObject = {
    "foreach": [{"list": "request.object.spec.ports", **deny("{{ element.protocol || 'TCP' }}", "UDP")}],
}


@pytest.mark.parametrize("kind", ["Service", "Pod", "Namespace"])
@pytest.mark.parametrize(
    ("check", "more"),
    [
        (deny(OWNER, "bob"), {}),
        (deny(OWNER, "bob"), {"preconditions": TIER}),
        (OWNED, {"preconditions": TIER}),
        (deny("{{ to_upper(request.object.metadata.labels.tier) }}", "A"), {}),
        (BOTH, {}),
        (deny("{{ length(request.object.metadata.name) }}", "{{ least }}", "LessThan"), {"context": FIXED}),
        (deny("{{ request.namespace || '' }}", "default"), {}),
    ],
    ids=["deny", "precondition", "pattern", "error", "any", "context", "request"],
)
def test_an_update_is_excused_as_before(kind: str, check: JSONObject, more: JSONObject) -> None:
    """By the check, the preconditions and the context of the old object; an error never excuses, nor is excused."""
    written = policy(enforced(check, kind, **more))
    found = convert(written)
    assert [None] == [each.refused for each in found.rules]
    assert "failedBefore" in {each["name"] for each in found.documents[0]["spec"]["variables"]}
    assert [] == differences(written, found.documents, count=400)


@pytest.mark.parametrize("check", [PORTS, deny("{{ request.object.spec.type || '' }}", "NodePort")])
@pytest.mark.parametrize("exclude", [None, LABELLED])
def test_an_old_object_that_was_excluded_excuses_nothing(check: JSONObject, exclude: JSONObject | None) -> None:
    """Match and exclude are those of the old object, too."""
    written = policy(enforced(check, "Service", exclude=exclude))
    found = convert(written)
    assert [None] == [each.refused for each in found.rules]
    assert [] == differences(written, found.documents, count=400)


def blocks(*entries: tuple[str, list[str]]) -> JSONObject:
    """Return a match of kinds, each in operations of its own."""
    return {"any": [{"resources": {"kinds": [kind], "operations": operations}} for kind, operations in entries]}


@pytest.mark.parametrize(
    "entry",
    [
        enforced(deny("{{ request.operation }}", "UPDATE"), "Service"),
        enforced(deny("{{ request.oldObject.metadata.name || '' }}", "a"), "Service"),
        enforced(deny("{{ request.oldObject.spec.hostNetwork || `false` }}", value=True), "Pod"),
        enforced(deny("{{ own }}", "bob"), "Service", context=OF_OBJECT),
        enforced(
            {"foreach": [{"list": "request.object.spec.ports", **deny("{{ to_upper(element.name) }}", "B")}]}, "Service"
        ),
        {
            **enforced(OWNED, "Service"),
            "match": blocks(("Service", ["CREATE"]), ("ConfigMap", ["CREATE", "UPDATE"])),
        },
    ],
    ids=["operation", "old", "old pod", "context", "errors of elements", "operations"],
)
def test_what_another_request_would_decide_is_refused(entry: JSONObject) -> None:
    """The old object is judged as if it were created, by a request without an old object."""
    (outcome,) = convert(policy(entry)).rules
    assert outcome.refused is not None
    assert "existing-violations" == outcome.refused.code
