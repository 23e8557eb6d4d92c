"""The loop: phases in order, errors as results of their rule alone, nothing performed."""

from __future__ import annotations

from pyverno.compiler import compile_documents
from pyverno.engine.engine import Engine
from pyverno.engine.phases import MUTATING, VALIDATING
from pyverno.engine.policyset import PolicySet
from pyverno.engine.request import Operation, Request
from pyverno.engine.result import Status
from pyverno.kube.json import encode
from pyverno.kube.yaml.documents import load_documents

POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "namespace": "shop"}, "spec": {}}
LABEL = {"mutate": {"patchStrategicMerge": {"metadata": {"labels": {"team": "shop"}}}}}
REQUIRE = {"validate": {"message": "label it", "pattern": {"metadata": {"labels": {"team": "?*"}}}}}
UNKNOWN = {"all": [{"key": "{{ nothing }}", "operator": "Equals", "value": 1}]}
BROKEN = {"validate": {"message": "never", "deny": {"conditions": UNKNOWN}}}


def engine(**rules):
    """Return an engine with one ClusterPolicy per rule."""
    documents = [
        {
            "apiVersion": "kyverno.io/v1",
            "kind": "ClusterPolicy",
            "metadata": {"name": name},
            "spec": {
                "validationFailureAction": "Enforce",
                "rules": [{"name": name, "match": {"any": [{"resources": {"kinds": ["Pod"]}}]}, **rule}],
            },
        }
        for name, rule in rules.items()
    ]
    items = compile_documents(document for each in documents for document in load_documents(encode(each))).items
    return Engine(PolicySet([item.policy for item in items if item.policy is not None]))


def statuses(review):
    """Return the status of each rule by name."""
    return {result.rule.name: result.status for result in review.results}


def test_validation_sees_what_mutation_made_of_the_object():
    """The phases run in their order; the request of the caller stays as it was."""
    request = Request.from_manifest(POD)
    review = engine(require=REQUIRE, label=LABEL).review(request)
    assert {"require": Status.PASS, "label": Status.PASS} == statuses(review)
    assert ({"team": "shop"}, None) == (review.resource["metadata"]["labels"], POD["metadata"].get("labels"))
    assert request.object is POD


def test_a_door_runs_only_its_phases():
    """The validating webhook mutates nothing."""
    made = engine(require=REQUIRE, label=LABEL)
    request = Request.from_manifest(POD)
    assert {"require": Status.FAIL} == statuses(made.review(request, VALIDATING))
    assert {"label": Status.PASS} == statuses(made.review(request, MUTATING))


def test_an_error_of_one_rule_leaves_the_others_alone():
    """An error is a result of its rule, and never the same as not matching."""
    review = engine(broken=BROKEN, require=REQUIRE).review(Request.from_manifest(POD))
    assert {"broken": Status.ERROR, "require": Status.FAIL} == statuses(review)
    assert (1, 0) == (review.count(Status.ERROR), review.count(Status.PASS))


def test_a_review_past_its_deadline_gives_errors_and_no_passes():
    """Rules that had no time to run cannot let a request through."""
    review = engine(label=LABEL, require=REQUIRE).review(Request.from_manifest(POD), deadline=0.0)
    assert {Status.ERROR} == set(statuses(review).values())
    assert not review.decision.allowed


def test_a_deleted_object_is_not_mutated():
    """A DELETE leaves nothing to change."""
    review = engine(label=LABEL).review(Request.from_manifest(POD, operation=Operation.DELETE))
    assert ((), None) == (review.results, review.resource)


def test_the_reasons_why_rules_do_not_match_are_explained():
    """Every rule of the phases is listed, with the reason where it does not match."""
    made = engine(require=REQUIRE)
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}}
    matched, unmatched = (made.explain(Request.from_manifest(each), VALIDATING).rules[0] for each in (POD, secret))
    assert (True, "", False, "kind Secret is not matched") == (
        matched.matched,
        matched.reason,
        unmatched.matched,
        unmatched.reason,
    )


def test_a_review_keeps_the_policies_that_it_began_with():
    """A store may swap the set at any time."""
    made = engine(require=REQUIRE)
    before = made.review(Request.from_manifest(POD))
    made.policies = PolicySet()
    assert (1, 0) == (len(before.results), len(made.review(Request.from_manifest(POD)).results))
