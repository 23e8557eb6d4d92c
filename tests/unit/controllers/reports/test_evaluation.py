"""The evaluation of one object: its results, the data that it depends on, and outcomes that objects share."""

from __future__ import annotations

from dataclasses import replace

from pyverno.controllers.reports.contexts import Contexts
from pyverno.controllers.reports.evaluation import Evaluation, Evaluator, ReportFilter
from pyverno.controllers.reports.objects import BucketKey
from pyverno.controllers.reports.plan import make_plan
from pyverno.engine.host import NO_HOST, Host
from pyverno.engine.policyset import PolicySet
from pyverno.kube.gvk import GVK, GVR
from pyverno.kube.json import JSONObject
from pyverno.kube.kinds import BUILTIN_KINDS
from pyverno.offline.host import OfflineHost
from pyverno.offline.objects import ObjectStore
from tests.unit.controllers.reports.policies import compiled, pod, policy, validating

PODS = BucketKey(GVR("", "v1", "pods"), "team")
POD = GVK("", "v1", "Pod")


def contexts(*bodies: JSONObject, namespaces: dict[str, JSONObject] | None = None) -> Contexts:
    """Return contexts for the scan plan of these documents."""
    found = compiled(*bodies)
    made = Contexts((namespaces or {}).get)
    made.follow(make_plan(found.policies, found.exceptions, BUILTIN_KINDS))
    return made


def evaluate(body: JSONObject, made: Contexts, evaluator: Evaluator | None = None, host: Host = NO_HOST) -> Evaluation:
    """Evaluate a pod."""
    return (evaluator or Evaluator(ReportFilter())).evaluate(body, made.find(PODS, POD), host)


def statuses(found: Evaluation) -> list[tuple[str, str]]:
    """Return policies and results."""
    return [(item["policy"], item["result"]) for item in found.items(1)]


def test_objects_with_the_same_results_share_an_outcome() -> None:
    """Sharing keeps the memory of a scan small, for passing and for failing objects."""
    made, evaluator = contexts(policy("a")), Evaluator(ReportFilter())
    found = [
        evaluate(pod(name, image), made, evaluator).outcome
        for name, image in (("a", "nginx:1"), ("b", "nginx:1"), ("c", "nginx:latest"), ("d", "nginx:latest"))
    ]
    assert found[0] is found[1]
    assert found[2] is found[3]
    assert found[0].digest != found[2].digest


def test_results_from_before_the_fast_tier_cost_later_objects_nothing() -> None:
    """The time to compile may end before the first object: the results of those after it are known by their ids."""
    made, evaluator = contexts(policy("a")), Evaluator(ReportFilter())
    context = made.find(PODS, POD)
    slow = [
        replace(each, rules=tuple(replace(rule, fast_tier=None) for rule in each.rules)) for each in made.plan.policies
    ]
    exact, fast = replace(made.plan, checks=PolicySet(slow)), made.plan
    context.plan = exact
    first = evaluate(pod(), made, evaluator)
    context.plan = fast
    second = [evaluate(pod(), made, evaluator) for _ in range(2)]
    known = len(evaluator._outcomes)
    for image in ("nginx:1", "nginx:latest", "nginx:latest", "nginx:latest"):
        second.append(evaluate(pod(image=image), made, evaluator))
    assert [first.outcome] * 3 == [each.outcome for each in second[:3]]
    # of failures the results, their texts among them, are other objects each time
    assert known + 2 == len(evaluator._outcomes)
    by_ids = [key for key in evaluator._outcomes if isinstance(key, tuple) and id(second[0].results[0]) in key]
    assert len(by_ids) == 1


def test_filtered_results_are_not_reported() -> None:
    """Filters exclude results by status and by kind of rule."""
    made = contexts(policy("a"))
    assert [("a", "pass")] == statuses(evaluate(pod(), made))
    assert [] == statuses(evaluate(pod(), made, Evaluator(ReportFilter(statuses=frozenset({"fail"})))))
    none = evaluate(pod(), made, Evaluator(ReportFilter(types=frozenset({"mutate"}))))
    assert ([], b"", True) == (statuses(none), none.outcome.digest, none.outcome.is_empty)


def test_a_scan_evaluates_a_creation_without_a_user() -> None:
    """Rules see the operation CREATE, an empty old object and no user, but the namespace of the object."""
    seen = (
        "request.operation == 'CREATE' && oldObject == {}"
        " && request.userInfo.username == '' && !has(request.userInfo.username)"
        " && namespaceObject.metadata.labels.team == 'a'"
    )
    body = validating("a", "pods")
    body["spec"]["validations"] = [{"expression": seen}]
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team", "labels": {"team": "a"}}}
    assert [("a", "pass")] == statuses(evaluate(pod(), contexts(body, namespaces={"team": namespace})))


def test_policies_of_a_namespace_that_enforce_are_reported() -> None:
    """The background scan covers their own namespace only, and includes Enforce policies (ef64527e)."""
    rules = policy("a")["spec"]["rules"]
    enforcing = [{**each, "validate": {**each["validate"], "failureAction": "Enforce"}} for each in rules]
    bodies = [
        {**policy("a", rules=enforcing), "kind": "Policy", "metadata": {"name": name, "namespace": name}}
        for name in ("team", "other")
    ]
    assert [("team/team", "fail")] == statuses(evaluate(pod(image="nginx:latest"), contexts(*bodies)))


def test_a_config_map_that_is_read_is_remembered() -> None:
    """A change of the ConfigMap leads to another evaluation."""
    body = policy("a")
    rule = body["spec"]["rules"][0]
    rule["context"] = [{"name": "settings", "configMap": {"name": "settings", "namespace": "team"}}]
    rule["preconditions"] = {"all": [{"key": "{{ settings.data.on }}", "operator": "Equals", "value": "yes"}]}
    metadata = {"name": "settings", "namespace": "team"}
    config: JSONObject = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"on": "yes"}}
    host = OfflineHost(objects=ObjectStore([config]))
    found = evaluate(pod(), contexts(body), host=host)
    assert [("a", "pass")] == statuses(found)
    assert (frozenset({("team", "settings")}), False) == (found.outcome.config_maps, found.outcome.reads_host)


def test_an_evaluation_that_reads_more_varies_with_time() -> None:
    """An API call makes the result depend on time; a failing call is an error, never an empty result."""
    body = policy("a")
    rule = body["spec"]["rules"][0]
    rule["context"] = [{"name": "all", "apiCall": {"urlPath": "/api/v1/namespaces/team/pods"}}]
    rule["preconditions"] = {"all": [{"key": "{{ length(all.items) }}", "operator": "Equals", "value": 1}]}
    found = evaluate(pod(), contexts(body))
    assert [("a", "error")] == statuses(found)
    assert (True, True) == (found.outcome.reads_host, found.outcome.has_errors)


def test_an_object_without_a_mutation_fails_its_policy() -> None:
    """An object that includes the mutation passes."""
    body = {
        "apiVersion": "policies.kyverno.io/v1",
        "kind": "MutatingPolicy",
        "metadata": {"name": "labelled"},
        "spec": {
            "matchConstraints": {
                "resourceRules": [
                    {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
                ]
            },
            "mutations": [
                {
                    "patchType": "ApplyConfiguration",
                    "applyConfiguration": {
                        "expression": 'Object{metadata: Object.metadata{labels: Object.metadata.labels{a: "b"}}}'
                    },
                }
            ],
        },
    }
    made = contexts(body)
    [item] = evaluate(pod(), made).items(1)
    assert ("fail", "mutation is not applied") == (item["result"], item["message"])
    labelled = pod()
    labelled["metadata"]["labels"] = {"a": "b"}
    assert [("labelled", "pass")] == statuses(evaluate(labelled, made))


def test_match_conditions_that_leave_an_object_out_give_no_result() -> None:
    """This is Kyverno's behaviour for ValidatingPolicies."""
    body = validating("a", "pods")
    body["spec"]["matchConditions"] = [{"name": "none", "expression": "false"}]
    assert [] == statuses(evaluate(pod(), contexts(body)))


def test_a_change_of_policies_replaces_only_the_contexts_that_it_concerns() -> None:
    """Evaluations of other kinds stay valid."""
    made = contexts(policy("a"))
    maps = BucketKey(GVR("", "v1", "configmaps"), "team")
    before = made.find(PODS, POD), made.find(maps, GVK("", "v1", "ConfigMap"))
    kept = made.plan.policies
    assert made.follow(make_plan((*kept, *compiled(validating("b", "configmaps")).policies), (), BUILTIN_KINDS))
    after = made.find(PODS, POD), made.find(maps, GVK("", "v1", "ConfigMap"))
    assert (True, False) == (before[0] is after[0], before[1] is after[1])
    assert not made.follow(made.plan)


def test_a_change_of_a_namespace_replaces_the_contexts_of_its_objects() -> None:
    """A change of its resource version alone replaces none."""
    namespaces: dict[str, JSONObject] = {"team": {"metadata": {"name": "team", "labels": {"tier": "a"}}}}
    made = contexts(policy("a"), namespaces=namespaces)
    before = made.find(PODS, POD)
    namespaces["team"] = {"metadata": {"name": "team", "labels": {"tier": "a"}, "resourceVersion": "9"}}
    assert not made.follow_namespace("team")
    namespaces["team"] = {"metadata": {"name": "team", "labels": {"tier": "b"}}}
    assert made.follow_namespace("team")
    assert made.find(PODS, POD) is not before
    assert not made.follow_namespace("other")
