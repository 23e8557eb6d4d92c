"""Kinds that are on their way out."""

from __future__ import annotations

import pytest

from kubesandbox.discovery.deprecations import deprecation
from kubesandbox.types.resources import ResourceType, builtin_table

WIDGETS = ResourceType("example.com", "v1", "widgets", "Widget", "widget", True, crd="x", list_kind="WidgetList")


@pytest.mark.parametrize(("version", "is_old"), [("1.32", False), ("1.33", True), ("1.37.1", True)])
def test_built_in_kinds_are_deprecated_from_a_version_on(version: str, is_old: bool) -> None:
    """Endpoints are deprecated since 1.33."""
    endpoints = builtin_table("1.35").versions_of("endpoints")[0]
    assert is_old == ("use discovery.k8s.io/v1 EndpointSlice" in deprecation(endpoints, version))


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ({}, ""),
        ({"deprecated": True}, "example.com/v1 Widget is deprecated"),
        ({"deprecated": True, "deprecationWarning": "use v2"}, "use v2"),
    ],
)
def test_definitions_mark_old_versions(entry: dict[str, object], expected: str) -> None:
    """The definition also holds the text of the warning."""
    definition = {"spec": {"versions": [{"name": "v0", "deprecated": True}, {"name": "v1", **entry}]}}
    assert expected == deprecation(WIDGETS, "1.35", definition)
