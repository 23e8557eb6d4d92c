"""Strategies: differences between resources."""

from __future__ import annotations

import pytest

from kubesandbox.types import strategies
from kubesandbox.types.resources import builtin_table

KEYS = {item.key for item in builtin_table("1.35")}


@pytest.mark.parametrize(
    "resources",
    [
        strategies.CREATED_BY_UPDATE,
        strategies.RETURNED_WHEN_DELETED,
        strategies.UPDATED_BY_VERSION - {"mutatingadmissionpolicies.admissionregistration.k8s.io"},
    ],
)
def test_only_resources_that_exist_are_named(resources: frozenset[str]) -> None:
    """A wrong key would silently mean nothing."""
    assert set() == resources - KEYS


def test_generation_is_counted_where_something_is_wanted() -> None:
    """Custom resources always count their generation."""
    assert [True, True, True, False, False] == [
        strategies.has_generation(key)
        for key in ("pods", "deployments.apps", "widgets.example.com", "configmaps", "services")
    ]
