"""Policy sets: immutable, ordered by name, and indexed by what requests have in common."""

from __future__ import annotations

import gc
from functools import partial
from types import FunctionType

from pyverno.compiler import compile_documents
from pyverno.engine.engine import Engine
from pyverno.engine.match import IndexKey
from pyverno.engine.phases import MUTATING, VALIDATING
from pyverno.engine.policyset import PolicySet
from pyverno.engine.request import Request
from pyverno.engine.timeslice import CompileSlice
from pyverno.kube.gvk import GVK
from pyverno.kube.json import encode
from pyverno.kube.yaml.documents import load_documents
from pyverno.value import replace
from tests.support.operations import MOST_GROWTH, growth

POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "namespace": "shop"}, "spec": {}}


def compiled(name, *, kind="ConfigMap", message="no", **spec):
    """Compile a ClusterPolicy that refuses every object of a kind."""
    rule = {
        "name": "refuse",
        "match": {"any": [{"resources": {"kinds": [kind]}}]},
        "validate": {"message": message, "deny": {}},
    }
    document = {
        "apiVersion": "kyverno.io/v1",
        "kind": "ClusterPolicy",
        "metadata": {"name": name},
        "spec": {**spec, "rules": [rule]},
    }
    [policy] = compile_documents(load_documents(encode(document))).policies
    return policy


def key(kind, operation="CREATE", *, background=False):
    """Return the index key of requests for a kind of the core group."""
    return IndexKey(GVK("", "v1", kind), "", operation, "shop", background)


def test_policies_stand_in_order_of_name():
    """Results do not depend on the order in which files were read."""
    assert ["a", "b"] == [policy.info.name for policy in PolicySet([compiled("b"), compiled("a")]).policies]


def test_a_changed_policy_replaces_the_one_of_its_name():
    """The old set still answers as before, so that a running review is not disturbed."""
    old = PolicySet([compiled("a", message="old", kind="Pod")])
    new = old.with_policy(compiled("a", message="new", kind="Pod"))
    request = Request.from_manifest(POD)
    assert ["old"] == [result.message for result in Engine(old).review(request).results]
    assert ["new"] == [result.message for result in Engine(new).review(request).results]


def test_a_policy_is_removed_by_kind_and_key():
    """A policy of the same name and another kind stays."""
    policies = PolicySet([compiled("a")])
    assert (0, 1, 1) == (
        len(policies.without_policy("ClusterPolicy", "a")),
        len(policies.without_policy("ValidatingPolicy", "a")),
        len(policies),
    )


def test_a_plan_has_only_rules_of_its_phases_and_kind():
    """A request for another kind, or at another stage, costs nothing."""
    policies = PolicySet([compiled("a", kind="Pod")])
    assert ((), ()) == (policies.plan(VALIDATING, key("Secret")), policies.plan(MUTATING, key("Pod")))
    assert 1 == len(policies.plan(VALIDATING, key("Pod")))


def test_a_plan_is_made_once_for_equal_keys():
    """Selection costs the same for ten policies and for ten thousand."""
    policies = PolicySet([compiled("a", kind="Pod")])
    assert policies.plan(VALIDATING, key("Pod")) is policies.plan(VALIDATING, key("Pod"))


def test_a_plan_for_an_overlong_key_is_not_kept():
    """Names that no API server accepts cannot fill the memory."""
    policies = PolicySet([compiled("a", kind="K*")])
    long = key("K" * 1000)
    assert policies.plan(VALIDATING, long) is not policies.plan(VALIDATING, long)


def test_background_scans_leave_out_policies_of_admission_and_the_other_way_round():
    """`background: false` and `admission: false` hold for every door; `asks_all` lifts the second."""
    only_scans, only_admission = (
        compiled("scans", kind="Pod", admission=False),
        compiled("admission", kind="Pod", background=False),
    )
    policies = PolicySet([only_scans, only_admission])
    scan, admission = Request.from_live(POD), Request.from_manifest(POD)
    assert ["scans"] == [each.rule.policy.name for each in Engine(policies).review(scan).results]
    assert ["admission"] == [each.rule.policy.name for each in Engine(policies).review(admission).results]
    everything = PolicySet([only_scans, only_admission], asks_all=True)
    assert 2 == len(Engine(everything).review(admission).results)


class Clock:
    """A clock that advances with each compilation."""

    def __init__(self):
        self.now = 0.0
        self.made = 0

    def __call__(self):
        return self.now

    def compile(self, tier, memo, seconds=1 / 128):
        """Compile `tier` into `memo`; only the first call advances the clock."""
        if not memo:
            self.now += seconds
            self.made += 1
            memo.append(tier())
        return memo[0]


def slowly_compiled(clock, count):
    """Return policies whose fast tiers take eight milliseconds each to compile."""
    policies = []
    for number in range(count):
        policy = compiled(f"p{number:03}", kind="Pod")
        rules = tuple(
            replace(rule, fast_tier=partial(clock.compile, rule.fast_tier, [])) if rule.fast_tier else rule
            for rule in policy.rules
        )
        policies.append(replace(policy, rules=rules))
    return PolicySet(policies)


def test_a_review_with_a_deadline_compiles_for_a_moment_only(monkeypatch):
    """Later reviews compile the rest and give the same results; without a deadline everything is compiled at once."""
    clock = Clock()
    monkeypatch.setattr("pyverno.engine.policyset.CompileSlice", partial(CompileSlice, clock=clock))
    policies, request = slowly_compiled(clock, 39), Request.from_manifest(POD)
    made, said = [], []
    for _ in range(14):
        before = clock.made
        review = Engine(policies).review(request, VALIDATING, deadline=float("inf"))
        made.append(clock.made - before)
        said.append(sorted((result.rule.policy.name, result.status, result.message) for result in review.results))
    assert [3] * 13 + [0] == made
    assert [said[0]] * 14 == said
    whole = slowly_compiled(clock, 39)
    before = clock.made
    Engine(whole).review(request, VALIDATING)
    assert 39 == clock.made - before


def test_a_plan_is_remembered_once_its_fast_tiers_are_compiled():
    """A slice that is always over still brings the work forward by one piece."""
    policies = PolicySet([compiled(f"p{number}", kind="Pod") for number in range(3)])
    plans = [policies.plan(VALIDATING, key("Pod"), float("inf")) for _ in range(20)]
    assert plans[-1] is plans[-2]
    assert [type(step) for step in plans[-1]] == [type(step) for step in policies.plan(VALIDATING, key("Pod"))]


def patterned(name, labels):
    """Compile a ClusterPolicy that requires labels of pods."""
    rule = {
        "name": "labelled",
        "match": {"any": [{"resources": {"kinds": ["Pod"]}}]},
        "validate": {"message": "no", "pattern": {"metadata": {"labels": labels}}},
    }
    document = {
        "apiVersion": "kyverno.io/v1",
        "kind": "ClusterPolicy",
        "metadata": {"name": name, "annotations": {"pod-policies.kyverno.io/autogen-controllers": "none"}},
        "spec": {"rules": [rule]},
    }
    [policy] = compile_documents(load_documents(encode(document))).policies
    return policy


def generated_functions():
    """Return how many generated functions are alive."""
    gc.collect()
    return sum(
        each.__code__.co_filename == "<generated>" for each in gc.get_objects() if isinstance(each, FunctionType)
    )


def test_rules_that_wait_for_their_fast_tier_compile_nothing_besides_it(monkeypatch):
    """Each pattern keeps the one function that finds the path, and all of them share one pass-check."""
    monkeypatch.setattr("pyverno.engine.policyset.CompileSlice", partial(CompileSlice, seconds=0))
    before = generated_functions()
    policies = PolicySet([patterned(f"p{number}", {f"k{number}": "?*"}) for number in range(9)])
    request = Request.from_manifest({**POD, "metadata": {**POD["metadata"], "labels": {"k0": "x"}}})
    results = [review_at_once(policies, request) for _ in range(20)]
    assert policies.plan(VALIDATING, key("Pod"), float("inf")) is policies.plan(VALIDATING, key("Pod"))
    assert [results[0]] * 20 == results
    assert 9 + 1 == generated_functions() - before


def review_at_once(policies, request):
    """Review with a deadline; return name of policy, status and message of each result."""
    found = Engine(policies).review(request, VALIDATING, deadline=float("inf")).results
    return sorted((result.rule.policy.name, result.status, result.message) for result in found)


def exceptions_for(names):
    """Compile an exception for each policy name, one for a policy of a namespace and one in CEL."""
    match = {"any": [{"resources": {"kinds": ["ConfigMap"]}}]}
    found = [
        {
            "apiVersion": "kyverno.io/v2",
            "kind": "PolicyException",
            "metadata": {"name": f"for-{name}".replace("/", "-"), "namespace": "shop"},
            "spec": {"exceptions": [{"policyName": name, "ruleNames": ["refuse", "other"]}], "match": match},
        }
        for name in names
    ]
    cel = {
        "apiVersion": "policies.kyverno.io/v1",
        "kind": "PolicyException",
        "metadata": {"name": "in-cel", "namespace": "shop"},
        "spec": {"policyRefs": [{"name": "p1", "kind": "ValidatingPolicy"}]},
    }
    return compile_documents(load_documents("\n---\n".join(map(encode, [*found, cel])))).exceptions


def test_a_rule_has_the_exceptions_that_name_it_in_their_order():
    """The index finds what going through all of them would."""
    policies = [compiled(f"p{number}") for number in range(4)]
    found = PolicySet(policies, exceptions_for(["p1", "p0", "shop/p1", "p1", "p3", "missing"]))
    for policy in policies:
        for rule in policy.rules:
            expected = tuple(each for each in found.exceptions if each.names_rule(rule.info))
            assert expected == found.exceptions_for(rule.info)
    assert ["shop/for-p1", "shop/for-p1"] == [each.key for each in found.exceptions_for(policies[1].rules[0].info)]


def test_a_plan_for_twice_the_policies_and_exceptions_costs_about_twice():
    """Each rule looks at the exceptions of its policy only; the first request after each change waits for the plan."""

    def plan(count):
        names = [f"p{number}" for number in range(count)]
        found = PolicySet(map(compiled, names), exceptions_for(names))
        return lambda: found.plan(VALIDATING, key("ConfigMap"))

    assert growth(plan, 20) < MOST_GROWTH
