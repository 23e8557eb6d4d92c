"""The compiled engine judges pods as the naive interpreter does that the benchmarks compare it with."""

from __future__ import annotations

from tests.bench.engine import differing_pods
from tests.bench.inputs import mutated_pods
from tests.property.profile import examples

PODS = 2_000 if examples(1) > 1 else 10
SEED = 20_261_124


def test_pods_that_were_changed_at_random_get_the_same_results_with_the_same_texts() -> None:
    """The Pod Security policies: patterns, alternatives, denials and foreach."""
    assert [] == differing_pods(mutated_pods(SEED, PODS))


def test_a_condition_that_cannot_be_resolved_is_an_error_in_both() -> None:
    """A text among the volumes has no keys."""
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {"containers": [], "volumes": ["x"]}}
    assert [] == differing_pods([pod])
