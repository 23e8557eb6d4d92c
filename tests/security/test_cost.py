"""I9: the cost of a review grows linearly with its input; superlinear work is counted and ends as an error."""

from __future__ import annotations

import pytest

from pyverno.engine.engine import Engine
from pyverno.engine.phases import ADMISSION
from pyverno.engine.request import Request
from pyverno.engine.result import Status
from pyverno.kube.json import JSONObject
from pyverno.lang.runtime import MAX_STEPS, Budget
from pyverno.offline.host import OfflineHost
from tests.security.asking import CONFIG_MAP, POD, ask, compiled, only, policy
from tests.support.operations import MOST_GROWTH, operations

OVERLAY = """
mutate:
  patchStrategicMerge:
    spec:
      containers:
      - (name): "*"
        imagePullPolicy: Always
"""
EACH_MERGED = """
mutate:
  foreach:
  - list: request.object.spec.containers
    patchStrategicMerge:
      spec:
        containers:
        - name: "{{ element.name }}"
          imagePullPolicy: Always
"""
EACH_ANCHORED = EACH_MERGED.replace("- name:", "- (name):")
EACH_PATCHED = """
mutate:
  foreach:
  - list: request.object.spec.containers
    patchesJson6902: |-
      - op: add
        path: /spec/containers/{{ elementIndex }}/imagePullPolicy
        value: Always
"""
EXISTENCE = """
validate:
  failureAction: Audit
  pattern:
    spec:
      ^(containers):
      - name: none
"""


def pod(containers: int) -> JSONObject:
    return {**POD, "spec": {"containers": [{"name": f"c{at}", "image": f"nginx:{at}"} for at in range(containers)]}}


def cost(rule: str, containers: int) -> int:
    engine = Engine(compiled(policy(rule, on="Pod")).policy_set(), OfflineHost())
    request = Request.from_manifest(pod(containers))
    engine.review(Request.from_manifest(pod(1)), ADMISSION)  # what is made once is not counted
    return operations(lambda: engine.review(request, ADMISSION))


@pytest.mark.parametrize("rule", [OVERLAY, EACH_PATCHED, EXISTENCE], ids=["overlay", "patch for each", "existence"])
def test_twice_the_containers_cost_about_twice(rule: str) -> None:
    """Merging, patching and matching go over a list once."""
    assert cost(rule, 200) / cost(rule, 100) < MOST_GROWTH


def test_a_merge_for_each_element_executes_about_as_much_for_each() -> None:
    """Parts that an element's patch does not touch are not walked: only names are compared, by functions in C."""
    assert cost(EACH_MERGED, 80) / cost(EACH_MERGED, 40) < MOST_GROWTH


@pytest.mark.parametrize(
    ("rule", "containers", "most"),
    [(OVERLAY, 1000, 50_000), (EACH_MERGED, 200, 50_000), (EACH_MERGED, 1000, 500_000), (EACH_ANCHORED, 200, 600_000)],
    ids=["overlay", "merge for each of 200", "merge for each of 1000", "anchors for each of 200"],
)
def test_large_pods_are_changed_within_the_budget(rule: str, containers: int, most: int) -> None:
    """A pod of a thousand containers is no reason to refuse it."""
    budget = Budget()
    assert Status.PASS == only(ask(policy(rule, on="Pod"), pod(containers), budget=budget))[0]
    assert MAX_STEPS - budget.steps < most


def test_anchors_for_each_element_of_a_long_list_use_up_the_budget() -> None:
    """Anchors are evaluated again for each element, and the budget counts this quadratic work."""
    status, message = only(ask(policy(EACH_ANCHORED, on="Pod"), pod(1000)))
    assert (Status.ERROR, "the expression steps of this review are used up") == (status, message)


def test_wildcards_of_a_request_against_its_own_texts_are_counted() -> None:
    """A pattern from the request costs by its length and by that of the text."""
    rule = (
        "validate:\n  deny:\n    conditions:\n      all:\n"
        '      - {key: "{{ request.object.data.a }}", operator: Equals, value: "{{ request.object.data.b }}"}'
    )
    budget = Budget()
    resource = {**CONFIG_MAP, "data": {"a": "a" * 16_000, "b": "*" + "a?" * 4_000 + "b*"}}
    assert Status.PASS == only(ask(policy(rule), resource, budget=budget))[0]
    assert 4_000 < MAX_STEPS - budget.steps < 20_000
