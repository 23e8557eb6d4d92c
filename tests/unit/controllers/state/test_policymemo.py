"""Values that are computed for a policy are computed again only when the policy changes."""

from __future__ import annotations

import pytest

from pyverno.controllers.state.policymemo import PolicyMemo
from pyverno.controllers.webhooks import configurations as webhookconfigurations
from pyverno.controllers.webhooks.configurations import plan
from pyverno.controllers.webhooks.rules import Entry, legacy_entries
from pyverno.controllers.webhooks.sources import Sources
from pyverno.kube.kinds import BUILTIN_KINDS, KindTable
from pyverno.policy.clusterpolicy import ClusterPolicy
from pyverno.webhook.routes import WebhookType
from tests.unit.controllers.webhooks.test_configurations import cel, legacy, rule


def test_a_value_lasts_as_long_as_its_policy() -> None:
    """The cache compares the policy object, and the object that was given."""
    memo, one, other = PolicyMemo(), legacy("a", rule(["Pod"])), legacy("a", rule(["Pod"]))
    given, computed = object(), []

    def value() -> int:
        computed.append(1)
        return len(computed)

    assert [1, 1] == [memo.get("x", one, value, given=given) for _ in range(2)]
    assert 2 == memo.get("x", one, value, given=object())
    assert 3 == memo.get("y", one, value)
    assert 4 == memo.get("x", other, value, given=given)
    assert 5 == memo.get("x", one, value, given=given)
    memo.keep([cel("a")])
    assert 0 == len(memo)


def test_a_plan_looks_at_the_policies_that_changed_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """The plan equals one without a cache; a change of the served kinds invalidates all policies."""
    asked: list[str] = []

    def noted(policy: ClusterPolicy, webhook_type: WebhookType, kinds: KindTable) -> frozenset[Entry]:
        asked.append(policy.name)
        return legacy_entries(policy, webhook_type, kinds)

    monkeypatch.setattr(webhookconfigurations, "legacy_entries", noted)
    policies, memo = (
        (legacy("a", rule(["Pod"])), legacy("b", rule(["Secret"])), cel("c", resources="pods")),
        PolicyMemo(),
    )
    first = plan(Sources(legacy=policies[:2], cel=policies[2:], kinds=BUILTIN_KINDS, memo=memo))
    assert {"a", "b"} == set(asked)
    asked.clear()
    assert first == plan(Sources(legacy=policies[:2], cel=policies[2:], kinds=BUILTIN_KINDS, memo=memo))
    assert [] == asked
    changed = (policies[0], legacy("b", rule(["ConfigMap"])))
    second = plan(Sources(legacy=changed, cel=policies[2:], kinds=BUILTIN_KINDS, memo=memo))
    assert {"b"} == set(asked)
    assert second == plan(Sources(legacy=changed, cel=policies[2:], kinds=BUILTIN_KINDS))
    asked.clear()
    plan(Sources(legacy=changed, cel=policies[2:], kinds=KindTable(tuple(BUILTIN_KINDS)), memo=memo))
    assert {"a", "b"} == set(asked)
