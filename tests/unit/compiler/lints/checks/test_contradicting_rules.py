"""Rules that ask for different values of one field."""

from __future__ import annotations

import pytest

from tests.support.linting import found, policy, rule


def demand(value: str, name: str, verb: str = "pattern") -> str:
    """Return a rule that wants or sets a label."""
    document = f"{{metadata: {{labels: {{team: {value}}}}}}}"
    body = (
        f"validate: {{message: m, pattern: {document}}}"
        if verb == "pattern"
        else f"mutate: {{patchStrategicMerge: {document}}}"
    )
    return rule(body, name=name)


def test_patterns_that_no_object_passes_are_found() -> None:
    """Both rules match the same objects."""
    text = policy(demand("red", "a"), demand("blue | green", "b"))
    assert ["12:64 rule `a` asks for `red` with the same match"] == found(text, "PV404")


def test_patches_of_which_one_wins_are_found() -> None:
    """Over policies, too."""
    text = policy(demand("red", "a", "patch")) + "---\n" + policy(demand("blue", "b", "patch"), name="q")
    [line] = found(text, "PV404")
    assert "rule `a` of ClusterPolicy/p sets it to `red` with the same match" in line


@pytest.mark.parametrize("value", ["red", "red | blue", '"?*"', '"!blue"', '"{{ request.namespace }}"'])
def test_demands_that_can_hold_together_are_not_reported(value: str) -> None:
    """Alternatives, wildcards, operators and variables."""
    assert [] == found(policy(demand("red", "a"), demand(value, "b")), "PV404")
