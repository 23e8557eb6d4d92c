"""Tests of `schema.places`."""

from __future__ import annotations

import pytest

from kubesandbox.schema.fieldpath import Place, place_text


@pytest.mark.parametrize(
    ("place", "text"),
    [(None, ""), ((None, "a"), "a"), (((None, "a"), 1), "a[1]"), ((((None, "a"), 1), "b"), "a[1].b")],
)
def test_a_place_is_written_as_kubernetes_does(place: Place, text: str) -> None:
    """Dots before names, brackets around indexes."""
    assert text == place_text(place)
