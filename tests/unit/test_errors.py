"""Places that are computed lazily, and errors that hold several errors."""

from __future__ import annotations

import pickle

import pytest

from pyverno.errors import CombinedError, Location, PolicyError, UsageError, raise_all


def test_a_late_place_is_searched_once_and_only_on_use() -> None:
    """Line and column come from one search; the file needs none."""
    searches: list[int] = []

    def find() -> tuple[int, int]:
        searches.append(1)
        return 3, 5

    place = Location.later("a.yaml", find)
    assert "a.yaml" == place.file
    assert [] == searches
    assert (3, 5, "a.yaml:3:5") == (place.line, place.column, str(place))
    assert [1] == searches


def test_a_late_place_is_a_place_like_any_other() -> None:
    """It is equal, ordered, hashed, pickled and shown in errors as if it were known at once."""
    known = Location("a.yaml", 3, 5)

    def late() -> Location:
        return Location.later("a.yaml", lambda: (3, 5))

    assert known == late()
    assert hash(known) == hash(late())
    assert sorted([Location("a.yaml", 4), late()]) == [known, Location("a.yaml", 4)]
    assert known == pickle.loads(pickle.dumps(late()))  # noqa: S301  # our own bytes
    assert repr(known) == repr(late())
    assert "a.yaml:3:5: wrong" == str(PolicyError("wrong", location=late()))


def test_a_place_has_no_other_parts() -> None:
    """A misspelt attribute is an error."""
    with pytest.raises(AttributeError):
        Location("a").colunm  # type: ignore[attr-defined]  # noqa: B018


def test_several_errors_are_raised_as_one_and_a_single_one_as_itself() -> None:
    """An empty list raises nothing."""
    first, second = UsageError("a"), PolicyError("b", location=Location("f.yaml", 1, 2))
    raise_all([])
    with pytest.raises(UsageError) as alone:
        raise_all([first])
    assert alone.value is first
    with pytest.raises(CombinedError) as both:
        raise_all([first, second])
    assert ((first, second), "a\nf.yaml:1:2: b") == (both.value.parts, str(both.value))
    again = pickle.loads(pickle.dumps(both.value))  # noqa: S301  # our own bytes
    assert ["a", "f.yaml:1:2: b"] == [str(each) for each in again.parts]
