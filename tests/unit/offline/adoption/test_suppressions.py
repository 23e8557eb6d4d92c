"""Comments that accept failures: the field that each belongs to, and what finding them costs."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pyverno.kube.yaml.documents import expand_lists, load_documents
from pyverno.offline.adoption.suppressions import SuppressionReader
from tests.support.operations import MOST_GROWTH, growth

COMMENT = "# pyverno: ignore[p/r] because\n"
ITEM = "- kind: ConfigMap\n  metadata: {name: a}\n"
LIST = "kind: List\nitems:\n"


def _of_list(count: int) -> str:
    return LIST + (COMMENT + ITEM) * count


def _above_the_first_field(count: int) -> str:
    return COMMENT * count + "kind: ConfigMap\n"


def _above_fields(count: int) -> str:
    return "kind: ConfigMap\ndata:\n" + "".join(f"  {COMMENT}  k{number}: v\n" for number in range(count))


def _at_the_end(count: int) -> str:
    return "kind: ConfigMap\n" + COMMENT * count


SHAPES = (_of_list, _above_the_first_field, _above_fields, _at_the_end)


def _read(make: Callable[[int], str], count: int) -> Callable[[], object]:
    documents = expand_lists(load_documents(make(count)))
    for each in documents:
        each.location(()).line  # noqa: B018 - positions are computed at their first use
    reader = SuppressionReader()
    return lambda: [reader.read(each) for each in documents]


@pytest.mark.parametrize("make", SHAPES)
def test_twice_the_comments_cost_about_twice(make: Callable[[int], str]) -> None:
    """In a document as in the items of a list, which share their text."""
    assert growth(lambda size: _read(make, size), 60) < MOST_GROWTH


def test_each_item_of_a_list_has_its_own_comments() -> None:
    """Above the item, above one of its fields, and at the end of a line."""
    item = f"- kind: ConfigMap # pyverno: ignore[p/x]\n  {COMMENT}  metadata: {{name: a}}\n"
    text = LIST + COMMENT + ITEM + item
    reader = SuppressionReader()
    found = [reader.read(each)[0] for each in expand_lists(load_documents(text))]
    paths = [[(each.names[0], each.path, each.location.line) for each in own] for own in found]
    assert [[("p/r", (), 3)], [("p/x", (), 6), ("p/r", ("metadata",), 7)]] == paths


def test_the_documents_of_a_stream_are_not_taken_for_each_other() -> None:
    """A comment above the first field holds for its own document alone."""
    first, second = load_documents(f"{COMMENT}kind: A\n---\nkind: B\ndata:\n  {COMMENT}  k: v\n")
    reader = SuppressionReader()
    paths = [[each.path for each in reader.read(document)[0]] for document in (first, second, first)]
    assert [[()], [("data", "k")], [()]] == paths
