"""Facets of properties and labels."""

from __future__ import annotations

import pytest

from pyverno.errors import UsageError
from pyverno.ui.store.filters import NO_FILTER, read_filter
from pyverno.ui.store.reader import Reader
from pyverno.ui.store.writer import Writer
from tests.unit.ui.store.samples import report, result


@pytest.fixture
def filled(writer: Writer, reader: Reader) -> Reader:
    """A store with results of two teams."""
    writer.write(
        [
            report(
                result("a", properties={"owner": "ann", "a,b": "1"}),
                result("b", properties={"owner": "bob"}),
                result("c", status="pass", properties={"owner": "ann", "extra": "x"}),
                labels={"team": "blue"},
            ),
            report(result("d"), name="two", labels={"team": "red", "area": "web"}),
        ],
        1,
    )
    return reader


def test_keys_are_those_that_selected_results_have(filled: Reader) -> None:
    """The most frequent first; a key with a comma has no facet."""
    assert ["property.owner", "property.extra", "label.team", "label.area"] == filled.facet_keys(NO_FILTER)
    assert ["property.owner", "label.team"] == filled.facet_keys(read_filter([("property.owner", "bob")], 0))


def test_values_of_properties_and_labels_are_counted(filled: Reader) -> None:
    """Beside columns; the filter of a facet does not narrow its own values."""
    found = filled.facets(read_filter([("label.team", "blue")], 0), ("status", "property.owner", "label.team"))
    assert {
        "status": [("fail", 2), ("pass", 1)],
        "property.owner": [("ann", 2), ("bob", 1)],
        "label.team": [("blue", 3), ("red", 1)],
    } == {name: [(each["value"], each["count"]) for each in values] for name, values in found.items()}


def test_results_out_of_scope_have_no_keys(filled: Reader) -> None:
    """Neither keys nor values."""
    filled.scope = frozenset({"elsewhere"})
    assert [] == filled.facet_keys(NO_FILTER)
    assert {"label.team": []} == filled.facets(NO_FILTER, ("label.team",))


def test_an_unknown_facet_names_those_there_are(filled: Reader) -> None:
    """With the forms of keys."""
    with pytest.raises(UsageError, match=r"unknown facet `nope`: expected .*property\.KEY, label\.KEY"):
        filled.facets(NO_FILTER, ("nope",))
