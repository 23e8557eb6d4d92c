"""Cells that tables of many kinds share."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from kubesandbox.tables.cells import (
    age,
    count,
    human_duration,
    labels_text,
    moment,
    objects,
    part,
    quantity,
    selector_text,
    shortened,
    since,
    text,
)
from pyverno.kube.json import JSON

NOW = datetime(2026, 1, 10, tzinfo=UTC)
DAY, HOUR = 86_400, 3600


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (-1.5, "0s"),
        (-2, "<invalid>"),
        (0.9, "0s"),
        (119, "119s"),
        (120, "2m"),
        (599, "9m59s"),
        (600, "10m"),
        (179 * 60, "179m"),
        (3 * HOUR, "3h"),
        (7 * HOUR + 59 * 60, "7h59m"),
        (47 * HOUR, "47h"),
        (48 * HOUR, "2d"),
        (7 * DAY + 23 * HOUR, "7d23h"),
        (8 * DAY, "8d"),
        (729 * DAY, "729d"),
        (730 * DAY, "2y"),
        (731 * DAY, "2y1d"),
        (8 * 365 * DAY, "8y"),
        (5000 * DAY, "13y"),
    ],
)
def test_durations_have_two_or_three_figures(seconds: float, expected: str) -> None:
    """The units change where Kubernetes changes them."""
    assert expected == human_duration(timedelta(seconds=seconds))


def test_ages_count_from_the_creation() -> None:
    """An object without `creationTimestamp` has the age `<unknown>`."""
    assert "9d" == age({"metadata": {"creationTimestamp": "2026-01-01T00:00:00Z"}}, NOW)
    assert "<unknown>" == age({"metadata": {}}, NOW)
    assert "<unknown>" == since("nonsense", NOW)
    assert None is moment(5)
    assert NOW == moment("2026-01-10T00:00:00") == moment("2026-01-10T01:00:00+01:00")


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        (None, "<none>"),
        ({}, "<none>"),
        ({"matchLabels": {"b": "1", "a": "2"}}, "a=2,b=1"),
        ({"matchExpressions": [{"key": "k", "operator": "In", "values": ["y", "x"]}]}, "k in (x,y)"),
        ({"matchExpressions": [{"key": "k", "operator": "NotIn", "values": ["x"]}]}, "k notin (x)"),
        ({"matchExpressions": [{"key": "k", "operator": "Exists"}]}, "k"),
        ({"matchExpressions": [{"key": "k", "operator": "DoesNotExist"}]}, "!k"),
    ],
)
def test_selectors_read_as_on_the_command_line(selector: JSON, expected: str) -> None:
    """Terms are sorted by key."""
    assert expected == selector_text(selector)


def test_parts_that_are_not_there_are_nothing() -> None:
    """Missing parts, and parts of another type, give no value."""
    body = {"a": {"b": ["x", {"c": 1}]}, "n": 3, "t": True}
    assert (None, "", []) == (part(body, "a", "b", "c"), text(body, "n"), objects(body, "n"))
    assert [{"c": 1}] == objects(body, "a", "b")
    assert (2, 1, 3, 0, 0) == tuple(count(body, *path) for path in (("a", "b"), ("a",), ("n",), ("t",), ("x",)))


def test_lists_are_cut_short() -> None:
    """The cell ends with the number of omitted items."""
    assert ("<none>", "a,b", "a,b + 1 more...") == tuple(
        shortened(parts, 2) for parts in ([], ["a", "b"], ["a", "b", "c"])
    )
    assert ("<none>", "a=b") == (labels_text(None), labels_text({"a": "b"}))


def test_quantities_are_canonical() -> None:
    """As an API server stores them."""
    assert ("0", "1Gi", "500m", "odd") == tuple(quantity(value) for value in (None, "1024Mi", 0.5, "odd"))
