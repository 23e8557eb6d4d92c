"""Kinds in match and exclude that no API serves."""

from __future__ import annotations

import pytest

from tests.support.linting import fixed, found, policy, rule

BODY = "validate: {message: m, deny: {}}"


def kinds(*names: str) -> str:
    """Return a policy that matches kinds."""
    return policy(rule(BODY, match=f"{{any: [{{resources: {{kinds: [{', '.join(names)}]}}}}]}}"))


@pytest.mark.parametrize(
    ("name", "meant"),
    [("Deploymnet", "Deployment"), ("deployment", "Deployment"), ("pods", "Pod"), ("deploy", "Deployment")],
)
def test_a_misspelt_kind_or_the_name_of_a_resource_is_found(name: str, meant: str) -> None:
    """The message names the kind that was meant, at the place of the word."""
    assert [f"8:40 no API has the kind `{name}`: did you mean `{meant}`?"] == found(kinds(name), "PV101")


def test_a_group_of_kubernetes_is_known_to_lack_a_kind() -> None:
    """A group with built-in kinds has no others."""
    assert ["8:48 the API group `apps` has no kind `Rollout`"] == found(kinds("apps/v1/Rollout"), "PV101")


@pytest.mark.parametrize(
    "name",
    [
        "Pod",
        "*",
        "*/*",
        "Pod/exec",
        "apps/v1/Deployment",
        "Certificate",
        "argoproj.io/v1alpha1/Rollout",
        "VirtualService",
        "CronTab",
        "IngressRoute",
        "PodSecurityPolicy",
        "*Set",
        "extensions/v1beta1/Ingress",
        "Scale",
        "ClusterPolicy",
    ],
)
def test_kinds_that_may_exist_are_not_reported(name: str) -> None:
    """A cluster may serve kinds of other groups, and served other versions."""
    assert [] == found(kinds(f'"{name}"'), "PV101")


def test_only_the_case_of_a_kind_is_corrected() -> None:
    """Comments and all other text stay."""
    text = kinds("deployment", "Deploymnet") + "# end\n"
    assert text.replace("[deployment", "[Deployment") == fixed(text, "PV101")
