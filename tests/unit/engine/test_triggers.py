"""Requests trigger generate and mutate-existing rules: on objects that are created, changed and deleted."""

from __future__ import annotations

import pytest

from pyverno.compiler.compile import compile_documents
from pyverno.engine.policyset import PolicySet
from pyverno.engine.request import Request
from pyverno.engine.triggers import Triggers
from pyverno.kube.gvk import GVR
from pyverno.kube.json import encode
from pyverno.kube.yaml.documents import load_documents
from pyverno.offline.host import OfflineHost

CONFIG_MAPS = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}
MADE = {"apiVersion": "v1", "kind": "Secret", "name": "made", "namespace": "team", "data": {"data": {}}}
TARGETS = [{"apiVersion": "v1", "kind": "Secret", "name": "one", "namespace": "team"}]
PATCH = {"metadata": {"labels": {"seen": "yes"}}}


def config_map(**data):
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "settings", "namespace": "team"},
        "data": data,
    }


def generate(*, synchronize=False, operations=(), selector=None, level=None, name="make"):
    """Return a generate rule about ConfigMaps, with a precondition about `data.level`."""
    resources = {"kinds": ["ConfigMap"], **({"operations": list(operations)} if operations else {})}
    if selector:
        resources["selector"] = {"matchLabels": selector}
    rule = {
        "name": name,
        "match": {"any": [{"resources": resources}]},
        "generate": {**MADE, "synchronize": synchronize},
    }
    if level is not None:
        condition = {"key": "{{ request.object.data.level || '' }}", "operator": "Equals", "value": level}
        rule["preconditions"] = {"all": [condition]}
    return rule


def mutate(*operations, name="touch"):
    resources = {"kinds": ["ConfigMap"], **({"operations": list(operations)} if operations else {})}
    match = {"any": [{"resources": resources}]}
    return {"name": name, "match": match, "mutate": {"targets": TARGETS, "patchStrategicMerge": PATCH}}


def legacy(*rules, kind="ClusterPolicy"):
    metadata = {"name": "work", **({"namespace": "team"} if kind == "Policy" else {})}
    return {"apiVersion": "kyverno.io/v1", "kind": kind, "metadata": metadata, "spec": {"rules": list(rules)}}


def cel(kind, *operations, **spec):
    rules = [{**CONFIG_MAPS, "operations": list(operations)}]
    return {
        "apiVersion": "policies.kyverno.io/v1",
        "kind": kind,
        "metadata": {"name": "work"},
        "spec": {"matchConstraints": {"resourceRules": rules}, **spec},
    }


def generating(*operations, **spec):
    expression = "generator.Apply('team', [{'apiVersion': dyn('v1'), 'kind': dyn('Secret')}])"
    return cel("GeneratingPolicy", *operations, generate=[{"expression": expression}], **spec)


def mutating(*operations, **spec):
    patch = "[JSONPatch{op: 'add', path: '/metadata/labels', value: {'a': 'b'}}]"
    mutations = [{"patchType": "JSONPatch", "jsonPatch": {"expression": patch}}]
    spec = {"evaluation": {"mutateExisting": {"enabled": True}}, **spec}
    return cel("MutatingPolicy", *operations, mutations=mutations, **spec)


def when(level):
    return [{"name": "level", "expression": f"object.data.level == '{level}'"}]


def triggers(*policies, exceptions=()):
    documents = [each for body in (*policies, *exceptions) for each in load_documents(encode(body))]
    compiled = compile_documents(documents)
    assert () == tuple(compiled.errors)
    return Triggers(PolicySet(compiled.policies, compiled.exceptions))


def asked(operation, new, old=None):
    body = {
        "uid": "1",
        "operation": operation,
        "kind": {"group": "", "version": "v1", "kind": "ConfigMap"},
        "resource": {"group": "", "version": "v1", "resource": "configmaps"},
        "name": "settings",
        "namespace": "team",
        "object": new,
        "oldObject": old,
        "userInfo": {"username": "alice"},
    }
    return Request.from_admission_review(body, namespace_labels={})


def said(policies, request, *, host=None):
    """Return rule and what is to be done: make, change or delete, with a star when what is not made any more goes."""
    found = triggers(*policies).of(request, host or OfflineHost())
    return [(each.rule.name, _aim(each) + "*" * each.synchronizes) for each in found]


def _aim(trigger):
    return "delete" if trigger.deletes else "make" if trigger.generates else "change"


CREATE = asked("CREATE", config_map(level="gold"))
DELETE = asked("DELETE", None, config_map(level="gold"))


@pytest.mark.parametrize(
    ("rule", "request_", "expected"),
    [
        (generate(), CREATE, [("make", "make")]),
        (generate(level="gold"), CREATE, [("make", "make")]),
        (generate(level="tin"), CREATE, []),
        (generate(operations=["UPDATE"]), CREATE, []),
        (mutate(), CREATE, [("touch", "change")]),
        (generate(), DELETE, []),
        (generate(synchronize=True), DELETE, [("make", "delete")]),
        (generate(synchronize=True, level="tin"), DELETE, [("make", "delete")]),
        (generate(operations=["DELETE"]), DELETE, [("make", "make")]),
        (generate(operations=["DELETE"], synchronize=True), DELETE, [("make", "make")]),
        (mutate(), DELETE, []),
        (mutate("DELETE"), DELETE, [("touch", "change")]),
        (mutate("CREATE"), DELETE, []),
    ],
)
def test_a_rule_is_triggered_by_objects_that_it_matches(rule, request_, expected):
    """By match and conditions when an object comes; deletions only for rules that name them or keep in step."""
    assert expected == said([legacy(rule)], request_)


@pytest.mark.parametrize(
    ("rule", "new", "old", "expected"),
    [
        (generate(level="gold"), "gold", "gold", [("make", "make")]),
        (generate(level="gold", synchronize=True), "tin", "gold", [("make", "delete")]),
        (generate(level="gold"), "tin", "gold", []),
        (generate(level="gold", synchronize=True), "tin", "tin", []),
        (generate(level="gold", synchronize=True), "gold", "tin", [("make", "make")]),
    ],
)
def test_a_rule_whose_condition_held_before_takes_back_what_it_made(rule, new, old, expected):
    """Only a rule that keeps what it makes in step does."""
    assert expected == said([legacy(rule)], asked("UPDATE", config_map(level=new), config_map(level=old)))


def test_an_object_that_no_longer_matches_takes_back_what_was_made():
    """The old object's conditions are not evaluated, so that no generated object stays behind."""
    rule = generate(selector={"app": "web"}, synchronize=True, level="gold")
    before = config_map(level="tin")
    before["metadata"]["labels"] = {"app": "web"}
    assert [("make", "delete")] == said([legacy(rule)], asked("UPDATE", config_map(level="tin"), before))


def test_a_rule_whose_conditions_fail_is_triggered_with_the_error():
    """The background controller evaluates the rule again; an error must not read as "does not apply"."""
    rule = generate(level="gold")
    rule["context"] = [{"name": "far", "apiCall": {"urlPath": "/api/v1/namespaces"}}]
    rule["preconditions"]["all"][0]["key"] = "{{ far.items[0].metadata.name }}"
    (found,) = triggers(legacy(rule)).of(CREATE, OfflineHost())
    assert ("make", False) == (found.rule.name, found.deletes)
    assert "failed to evaluate conditions" in found.error


def test_an_exception_keeps_a_rule_still():
    """Neither is anything made for the object, nor taken back."""
    exception = {
        "apiVersion": "kyverno.io/v2",
        "kind": "PolicyException",
        "metadata": {"name": "let", "namespace": "team"},
        "spec": {
            "match": {"any": [{"resources": {"kinds": ["ConfigMap"]}}]},
            "exceptions": [{"policyName": "work", "ruleNames": ["make", "touch"]}],
        },
    }
    found = triggers(legacy(generate(synchronize=True), mutate()), exceptions=[exception])
    assert ((), ()) == (found.of(CREATE, OfflineHost()), found.of(DELETE, OfflineHost()))


def test_rules_that_judge_or_change_the_object_itself_are_none_of_these():
    """Nor is a policy that takes no part in admission."""
    match = {"any": [{"resources": {"kinds": ["ConfigMap"]}}]}
    plain = {"name": "label", "match": match, "mutate": {"patchStrategicMerge": PATCH}}
    check = {"name": "check", "match": match, "validate": {"pattern": {"data": {"a": "b"}}}}
    silent = generating("CREATE", evaluation={"admission": {"enabled": False}})
    found = triggers(legacy(plain, check))
    assert (0, False) == (len(found), found.concerns(CREATE))
    assert 0 == len(triggers(silent))


@pytest.mark.parametrize(
    ("policy", "request_", "expected"),
    [
        (generating("CREATE"), CREATE, "make"),
        (generating("UPDATE"), CREATE, None),
        (generating("CREATE"), asked("UPDATE", config_map(), config_map()), None),
        (
            generating("CREATE", evaluation={"synchronize": {"enabled": True}}),
            asked("UPDATE", config_map(), config_map()),
            "make*",
        ),
        (generating("CREATE"), DELETE, None),
        (generating("CREATE", evaluation={"synchronize": {"enabled": True}}), DELETE, "delete"),
        (generating("DELETE", evaluation={"synchronize": {"enabled": True}}), DELETE, "make"),
        (mutating("CREATE"), CREATE, "change"),
        (mutating("UPDATE"), CREATE, None),
        (mutating("CREATE", evaluation={}), CREATE, None),
        (mutating("CREATE", matchConditions=when("gold")), CREATE, "change"),
        (mutating("CREATE", matchConditions=when("tin")), CREATE, None),
    ],
)
def test_policies_in_cel_are_triggered_by_constraints(policy, request_, expected):
    """Conditions of generating policies are evaluated later, in the background, those of other policies at once."""
    assert ([expected] if expected else []) == [what for _, what in said([policy], request_)]


def test_an_object_that_a_rule_made_is_kept_in_step_unless_it_sets_the_rule_in_motion_itself():
    """Only by a rule that still exists and still keeps what it makes in step."""
    found = triggers(legacy(generate(synchronize=True, selector={"app": "web"}), generate(name="once")))
    change = asked("UPDATE", config_map(), config_map())
    own = config_map()
    own["metadata"]["labels"] = {"app": "web"}
    assert found.keeps_in_step("ClusterPolicy", "work", "make", change)
    assert not found.keeps_in_step("ClusterPolicy", "work", "make", asked("UPDATE", own, own))
    assert not found.keeps_in_step("ClusterPolicy", "work", "once", change)
    assert not found.keeps_in_step("ClusterPolicy", "work", "gone", change)


def test_requests_of_the_background_account_trigger_only_rules_that_opt_in():
    """By default its own changes set nothing in motion."""
    found = triggers(
        legacy(generate(), {**mutate(), "skipBackgroundRequests": False}),
        generating("CREATE", evaluation={"skipBackgroundRequests": False}),
    )
    assert [("touch", False), ("work", False), ("make", True)] == sorted(
        ((each.rule.name, found.skips_background(each.rule)) for each in found.of(CREATE, OfflineHost())),
        key=lambda item: item[1:] + item[:1],
    )


def test_a_request_through_an_unknown_resource_triggers_nothing():
    """Most requests are over before anything is evaluated."""
    found = triggers(legacy(generate()), generating("CREATE"))
    other = Request.from_manifest(
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "b"}}, gvr=GVR("", "v1", "pods")
    )
    assert (True, False) == (found.concerns(CREATE), found.concerns(other))
