"""The Table around the rows."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from kubesandbox.tables import to_table
from kubesandbox.types.resources import ResourceType, builtin_table
from pyverno.kube.json import JSON
from pyverno.kube.status import StatusError

NOW = datetime(2026, 11, 22, 5, tzinfo=UTC)
WIDGETS = ResourceType("x.io", "v1", "widgets", "Widget", "widget", namespaced=True, crd="widgets.x.io")
MAPS = builtin_table("1.35").find("", "v1", "configmaps")
BODY = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "uid": "u"}, "data": {"k": "v"}}


@pytest.mark.parametrize(
    ("include", "expected"),
    [
        (
            "Metadata",
            {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": {"name": "a", "uid": "u"}},
        ),
        ("Object", BODY),
        ("None", None),
    ],
)
def test_a_row_carries_the_requested_object(include: str, expected: JSON) -> None:
    """`includeObject` selects the object, its metadata, or nothing."""
    assert MAPS is not None
    assert expected == to_table(MAPS, [BODY], now=NOW, include_object=include)["rows"][0]["object"]


def test_anything_else_can_not_be_included() -> None:
    """The answer is 400 with the API server's text."""
    assert MAPS is not None
    with pytest.raises(StatusError, match="must be 'Metadata', 'Object', 'None', or empty"):
        to_table(MAPS, [BODY], now=NOW, include_object="Foo")


def test_later_events_of_a_watch_come_without_columns() -> None:
    """They are null then; the metadata is that of the list."""
    assert MAPS is not None
    table = to_table(MAPS, [], now=NOW, with_columns=False, metadata={"resourceVersion": "7"})
    expected = {"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": {"resourceVersion": "7"}}
    assert {**expected, "columnDefinitions": None, "rows": []} == table


COLUMNS = [
    {"name": "Color", "type": "string", "jsonPath": ".spec.color"},
    {"name": "Replicas", "type": "integer", "jsonPath": ".spec.replicas", "description": "how many"},
    {"name": "Ready", "type": "string", "jsonPath": '.status.conditions[?(@.type=="Ready")].status'},
    {"name": "When", "type": "date", "jsonPath": ".spec.when"},
    {"name": "On", "type": "boolean", "jsonPath": ".spec.on"},
    {"name": "Ratio", "type": "number", "jsonPath": ".spec.ratio", "format": "float"},
    {"name": "Tags", "type": "string", "jsonPath": ".spec.tags", "priority": 1},
    {"name": "Tag", "type": "string", "jsonPath": ".spec.tags[*].a"},
    {"name": "Label", "type": "string", "jsonPath": ".metadata.labels['app\\.io/x']"},
    {"name": "Last", "type": "string", "jsonPath": ".spec.list[-1:]"},
    {"name": "Odd", "type": "integer", "jsonPath": ".spec.color"},
]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (
            {
                "metadata": {"name": "a", "labels": {"app.io/x": "hello"}},
                "spec": {
                    "color": "red",
                    "replicas": 3,
                    "when": "2026-11-20T05:00:00Z",
                    "on": True,
                    "ratio": 1.5,
                    "tags": [{"a": "x", "b": "y"}, {"a": "z"}],
                    "list": ["p", "q"],
                },
                "status": {"conditions": [{"type": "Other", "status": "False"}, {"type": "Ready", "status": "True"}]},
            },
            ["a", "red", 3, "True", "2d", True, 1.5, '[{"a":"x","b":"y"},{"a":"z"}]', "x", "hello", "q", None],
        ),
        (
            {"metadata": {"name": "b"}, "spec": {"when": "nope", "ratio": 2, "tags": [], "list": [], "on": "x"}},
            ["b", None, None, None, "<invalid>", None, 2, "[]", None, None, None, None],
        ),
        (
            {"metadata": {"name": "c"}, "spec": {"color": True, "replicas": 2.0, "list": "text"}},
            ["c", "true", 2, None, None, None, None, None, None, None, None, None],
        ),
    ],
)
def test_custom_resources_have_the_columns_of_their_definition(body: dict[str, JSON], expected: list[JSON]) -> None:
    """The first result of each path counts; what is missing or of another type is null."""
    table = to_table(WIDGETS, [body], now=NOW, columns=COLUMNS)
    assert expected == table["rows"][0]["cells"]


def test_columns_of_a_definition_are_described() -> None:
    """A column without a description is described by its path."""
    table = to_table(WIDGETS, [], now=NOW, columns=COLUMNS)
    found = {column["name"]: column for column in table["columnDefinitions"]}
    assert "Custom resource definition column (in JSONPath format): .spec.color" == found["Color"]["description"]
    assert ("how many", 1, "float") == (
        found["Replicas"]["description"],
        found["Tags"]["priority"],
        found["Ratio"]["format"],
    )


@pytest.mark.parametrize("columns", [None, []])
def test_without_columns_the_age_is_shown(columns: list[dict[str, JSON]] | None) -> None:
    """NAME and AGE, as for any object."""
    body = {"metadata": {"name": "a", "creationTimestamp": "2026-11-22T04:59:00Z"}}
    table = to_table(WIDGETS, [body], now=NOW, columns=columns)
    assert ["Name", "Age"] == [column["name"] for column in table["columnDefinitions"]]
    assert ["a", "60s"] == table["rows"][0]["cells"]
