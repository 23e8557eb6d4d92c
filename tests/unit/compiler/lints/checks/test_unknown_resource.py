"""Resources of policies in CEL that no API has."""

from __future__ import annotations

import pytest

from tests.support.linting import cel_policy, fixed, found

BODY = "validations: [{expression: 'true'}]"


@pytest.mark.parametrize(
    ("resource", "meant"),
    [
        ("Deployment", "deployments"),
        ("deployment", "deployments"),
        ("deploy", "deployments"),
        ("deploymnets", "deployments"),
    ],
)
def test_a_kind_in_place_of_a_resource_is_found(resource: str, meant: str) -> None:
    """Kinds, singular and short names, and misspelt resources match no request."""
    text = cel_policy(BODY, resource=resource)
    assert [f"7:80 no API has the resource `{resource}`: did you mean `{meant}`?"] == found(text, "PV102")


def test_a_resource_of_another_group_is_found() -> None:
    """The core group has no deployments."""
    text = cel_policy(BODY, group="")
    assert ["7:78 `deployments` is not in the API groups of this rule, but in `apps`"] == found(text, "PV102")


@pytest.mark.parametrize(
    ("group", "resource"),
    [
        ("apps", "deployments"),
        ("apps", "deployments/scale"),
        ("'*'", "deployments"),
        ("example.com", "widgets"),
        ("apps", "'*'"),
        ("apps", "'*/scale'"),
        ("example.com", "deployments"),
        ("apps, ''", "pods"),
    ],
)
def test_resources_that_may_exist_are_not_reported(group: str, resource: str) -> None:
    """Other groups may have resources of any name."""
    assert [] == found(cel_policy(BODY, group=group, resource=resource), "PV102")


def test_a_kind_becomes_its_resource() -> None:
    """Other fields stay unchanged."""
    text = cel_policy(BODY, resource='"Deployment"')
    assert text.replace('"Deployment"', '"deployments"') == fixed(text, "PV102")
