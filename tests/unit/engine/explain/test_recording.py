"""Recorded copies of policies: made once, lent to one explanation at a time, empty in between."""

import gc
import json

import pyverno
from pyverno.engine.explain.nodes import ExpressionNode, RuleTrace
from pyverno.engine.explain.recording import recorded_policies
from pyverno.offline.host import OfflineHost

POLICY = """
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: p}
spec:
  rules:
  - name: r
    match: {any: [{resources: {kinds: [ConfigMap, Secret]}}]}
    validate: {cel: {expressions: [{expression: "object.data.a == 'x'"}]}}
"""
CONFIG_MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"a": "seen-77af"}}


def traces(engine: pyverno.Engine, request: pyverno.Request) -> tuple[RuleTrace, ...]:
    """The traces of one explanation."""
    return engine.explain(request).rules


def test_explanations_of_one_set_share_their_copies():
    """Copying the rules costs more than a review."""
    policies = pyverno.load_policies(POLICY)
    engine, request = pyverno.Engine(policies, OfflineHost()), pyverno.Request.from_manifest(CONFIG_MAP)
    explanation = engine.explain(request)
    (first,) = policies.recorded
    (result,) = explanation.review.results
    assert (True, [True]) == (
        explanation.change(result) is not None and engine.explain(request).rules == explanation.rules,
        [each is first for each in policies.recorded],
    )


def test_copies_that_are_in_use_are_not_lent_again():
    """Two threads that explain by one set record apart."""
    policies = pyverno.load_policies(POLICY)
    with recorded_policies(policies) as one, recorded_policies(policies) as other:
        assert one is not other
    assert 1 == len(policies.recorded)


def test_kept_copies_hold_nothing_of_the_object():
    """They live as long as the policies: an object that is explained goes with its explanation."""
    policies = pyverno.load_policies(POLICY.replace("'x'", "'kept-41c0'"))
    engine = pyverno.Engine(policies, OfflineHost())
    engine.explain(pyverno.Request.from_manifest(CONFIG_MAP))
    gc.collect()
    held = [each for each in gc.get_objects() if isinstance(each, ExpressionNode) and "kept-41c0" in each.text]
    assert ([], 1) == (held, len(policies.recorded))


def test_the_copies_for_objects_never_serve_a_secret():
    """What they record of a Secret would be shown."""
    policies = pyverno.load_policies(POLICY)
    engine = pyverno.Engine(policies, OfflineHost())
    engine.explain(pyverno.Request.from_manifest(CONFIG_MAP))
    secret = engine.explain(pyverno.Request.from_manifest({**CONFIG_MAP, "kind": "Secret"}))
    again = engine.explain(pyverno.Request.from_manifest(CONFIG_MAP))
    assert (0, True) == (json.dumps(secret.to_json()).count("seen-77af"), "seen-77af" in json.dumps(again.to_json()))


def test_an_update_leaves_no_mark_on_the_next_explanation():
    """A rule that judged the object before an update begins anew for the next request."""
    policies = pyverno.load_policies(
        POLICY[: POLICY.index("validate:")] + "validate: {failureAction: Enforce, message: m, pattern: {data: {a: x}}}"
    )
    engine = pyverno.Engine(policies, OfflineHost())
    create = pyverno.Request.from_manifest(CONFIG_MAP)
    fresh = traces(engine, create)
    update = pyverno.Request.from_manifest(CONFIG_MAP, operation=pyverno.Operation.UPDATE, old=CONFIG_MAP)
    assert [False, True, True] == sorted(each.is_old for each in traces(engine, update))
    assert fresh == traces(engine, create)
