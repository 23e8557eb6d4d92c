"""The samplers of generated inputs: they keep to the requested range and reach all of it."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from tests.property import inputs as st
from tests.property import profile

LEAVES = st.integers(0, 9)
TREES = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=3) | st.tuples(inner, inner), max_leaves=5)


def _drawn(kind: st.Inputs[Any], count: int = 2000) -> list[Any]:
    random = Random(20_261_122)  # noqa: S311 - the same on every run
    return [kind.sample(random) for _ in range(count)]


def test_scalars_stay_within_their_limits_and_meet_them() -> None:
    """Both the limits and values between them are drawn."""
    assert set(_drawn(st.integers(-2, 2))) == {-2, -1, 0, 1, 2}
    wide = _drawn(st.integers(-(2**63), 2**63 - 1))
    assert {min(wide), max(wide)} == {-(2**63), 2**63 - 1}
    assert any(-100 < number < 100 for number in wide)
    assert all(value - value == 0 for value in _drawn(st.floats()))
    texts = _drawn(st.text(max_size=3))
    assert {len(text) for text in texts} == {0, 1, 2, 3}
    assert not any("\ud800" <= character <= "\udfff" for text in texts for character in text)
    assert {*"".join(_drawn(st.text(alphabet="ab", max_size=2)))} == {"a", "b"}


def test_compounds_have_the_requested_size_and_keys() -> None:
    """Unique items are unique, optional keys are sometimes there, filters hold."""
    assert {len(items) for items in _drawn(st.lists(LEAVES, min_size=1, max_size=3))} == {1, 2, 3}
    assert all(len({*items}) == len(items) for items in _drawn(st.lists(LEAVES, unique=True)))
    maps = _drawn(st.fixed_dictionaries({"a": LEAVES}, optional={"b": LEAVES}))
    assert {tuple(found) for found in maps} == {("a",), ("a", "b")}
    assert {len(found) for found in _drawn(st.dictionaries(st.sampled_from("abc"), LEAVES, max_size=2))} == {0, 1, 2}
    assert {*_drawn(LEAVES.filter(lambda number: number > 7))} == {8, 9}
    with pytest.raises(ValueError, match="hardly any"):
        _drawn(LEAVES.filter(lambda number: number > 9), 1)


def test_trees_have_a_limited_number_of_leaves() -> None:
    """From a single leaf to the most, some levels deep."""
    found = {_leaves(tree) for tree in _drawn(TREES)}
    assert {1, 5} <= found
    assert max(found) == 5


def _leaves(tree: Any) -> int:
    return sum(map(_leaves, tree)) if isinstance(tree, (list, tuple)) else 1


def test_a_law_tries_the_number_of_inputs_it_declares(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few by hypothesis, and by night as many more as the profile sets; the failure names the broken input."""
    monkeypatch.setenv("PYVERNO_NIGHTLY", "1")
    monkeypatch.setenv("PYVERNO_SEED", "1")
    seen: list[int] = []

    @st.law(LEAVES, few=5, each=4)
    def remembers(number: int) -> None:
        seen.append(number)

    @st.law(LEAVES, few=5)
    def breaks(number: int) -> None:
        seen.append(number)
        assert len(seen) < 1000

    remembers()
    assert len(seen) >= profile.NIGHTLY_EXAMPLES // 4
    seen.clear()
    with pytest.raises(AssertionError) as raised:
        breaks()
    assert "of PYVERNO_SEED=1: (" in raised.value.__notes__[0]
