"""Lists with several items at once."""

from __future__ import annotations

from pyverno.compiler.equivalence.items import item_edits, list_of_all
from pyverno.compiler.equivalence.places import NOTHING, Site

PORTS = ("spec", "ports")
FIELDS = (Site((*PORTS, 0, "name"), ("web", "x")), Site((*PORTS, 0, "port"), (80, 81)))


def lists(*sites: Site) -> list[object]:
    """Return the lists that the sites get, in the order in which they come up."""
    return [value for is_on_base, changes in item_edits(sites) if not is_on_base for _, value in changes]


def test_a_list_holds_all_constants_at_once() -> None:
    """As items of the innermost list: scalars, or objects with the field; a wildcard is filled in."""
    assert (("spec", "add"), ["A", "B"]) == list_of_all(("spec", "add", 0), ("A", "B"))
    nested = ("rules", 0, "http", "paths", 0, "path")
    assert (nested[:4], [{"path": "/a"}, {"path": "/x"}]) == list_of_all(nested, ("/a", "/*"))


def test_items_differ_in_each_field_in_both_orders() -> None:
    """What looks at the first item alone, or at any instead of all, decides differently on one of them."""
    found = lists(*FIELDS)
    whole = {"name": "web", "port": 80}
    for items in ([whole, {}], [{"name": "web"}, {}], [{"port": 80}, whole], [whole, {"name": "x", "port": 81}]):
        assert items in found
        assert items[::-1] in found


def test_one_list_has_an_item_for_each_field() -> None:
    """Volumes are allowed by the field that they have: one object shows that all are."""
    assert [{"name": "web"}, {"port": 80}] in lists(*FIELDS)


def test_lists_in_lists_differ_too() -> None:
    """Each list on the path to a field, the outer one first."""
    edits = [*item_edits([Site(("rules", 0, "paths", 0, "path"), ("/a", "/b"))])]
    places = [place for _, changes in edits for place, _ in changes]
    assert [("rules",), ("rules", 0, "paths")] == [*dict.fromkeys(places)]
    assert (True, ((("rules", 0, "paths"), [{"path": "/a"}, {}]),)) in edits


def test_scalars_and_fields_outside_of_lists_have_no_items() -> None:
    """Their values are lists already; a list that is left out is none."""
    assert [] == lists(Site(("spec", "add", 0), ("A",)), Site(("spec", "type"), ("B", NOTHING)))
