"""Rules that do the same as another one."""

from __future__ import annotations

from tests.support.linting import cel_policy, found, policy, rule

SAME = "validate: {message: m, pattern: {metadata: {name: '?*'}}}"


def test_a_rule_that_repeats_another_is_found() -> None:
    """In one policy, and in another one; messages are not compared."""
    text = policy(rule(SAME, name="a"), rule(SAME.replace(": m", ": other"), name="b"))
    assert ["10:5 rule `b` does the same as rule `a`"] == found(text, "PV403")
    text = policy(rule(SAME, name="a")) + "---\n" + policy(rule(SAME, name="c"), name="q")
    assert ["17:5 rule `c` does the same as rule `a` of ClusterPolicy/p"] == found(text, "PV403")


def test_rules_that_differ_are_not_reported() -> None:
    """In what they match, or in what they ask for."""
    other = rule(SAME, name="b", match="{any: [{resources: {kinds: [Job]}}]}")
    assert [] == found(policy(rule(SAME, name="a"), other), "PV403")
    assert [] == found(policy(rule(SAME, name="a"), rule(SAME.replace("?*", "a*"), name="b")), "PV403")


def test_two_versions_of_one_policy_are_not_compared() -> None:
    """They are never in a cluster at the same time."""
    assert [] == found(policy(rule(SAME)) + "---\n" + policy(rule(SAME)), "PV403")


def test_a_validation_in_cel_that_repeats_another_is_found() -> None:
    """Blanks do not count."""
    text = cel_policy(
        "validations:\n- expression: object.spec.paused == true\n- expression: object.spec.paused  ==  true"
    )
    assert ["10:5 validation 2 does the same as validation 1"] == found(text, "PV403")
