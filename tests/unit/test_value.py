"""Value classes behave as the dataclasses of the standard library do."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, ClassVar, Generic, TypeVar

import pytest

from pyverno import value
from pyverno.engine.request import Request

T = TypeVar("T")


def plain(make: Any) -> type:
    """A class with required and optional fields, a constant, and what comes from a factory."""

    @make(frozen=True, slots=True)
    class Plain:
        """Documented."""

        kind: ClassVar[str] = "plain"
        a: int
        b: str = "b"
        c: list[int] = (dataclasses if make is dataclasses.dataclass else value).field(default_factory=list)

        @property
        def twice(self) -> int:
            return 2 * self.a

    return Plain


def keyword(make: Any) -> type:
    """A class whose arguments have names only, and one field that is neither compared nor shown."""
    field = (dataclasses if make is dataclasses.dataclass else value).field

    @make(frozen=True, slots=True, kw_only=True)
    class Keyword:
        """Documented."""

        a: int = 1
        b: str
        c: int = field(default=0, compare=False, repr=False)

    return Keyword


def derived(make: Any) -> type:
    """A class that adds a field to one whose fields have names only, and lets one be given by its place."""

    @make(frozen=True, slots=True)
    class Derived(keyword(make)):
        """Documented."""

        b: str
        d: int = 0

    return Derived


def ordered(make: Any) -> type:
    """A class with an order."""

    @make(frozen=True, slots=True, order=True)
    class Ordered:
        """Documented."""

        a: int
        b: str = ""

    return Ordered


def identical(make: Any) -> type:
    """A class whose values are equal to themselves only."""

    @make(frozen=True, slots=True, eq=False)
    class Identical:
        """Documented."""

        a: int
        b: int = 0

    return Identical


def changing(make: Any) -> type:
    """A class that is not frozen, and works something out after it was made."""
    field = (dataclasses if make is dataclasses.dataclass else value).field

    @make(slots=True)
    class Changing:
        """Documented."""

        a: int
        b: int = 2
        total: int = field(init=False, repr=False)

        def __post_init__(self) -> None:
            self.total = self.a + self.b

    return Changing


def generic(make: Any) -> type:
    """A class with a type parameter and its own text."""

    @make(frozen=True, slots=True)
    class Box(Generic[T]):
        """Documented."""

        a: T

        def __repr__(self) -> str:
            return f"<{self.a}>"

    return Box


def wide(make: Any) -> type:
    """A class with more fields than there are templates for."""
    field = (dataclasses if make is dataclasses.dataclass else value).field

    @make(frozen=True, slots=True)
    class Wide:
        """Documented."""

        a: int
        b: int
        c: int = 3
        d: int = 4
        e: int = 5
        f: int = 6
        g: int = 7
        h: int = 8
        i: int = 9
        j: int = 10
        k: int = 11
        m: dict[str, int] = field(default_factory=dict)

    return Wide


def empty(make: Any) -> type:
    """A class without fields."""

    @make(frozen=True, slots=True)
    class Empty:
        """Documented."""

    return Empty


MAKERS: tuple[Callable[[Any], type], ...] = (
    plain,
    keyword,
    derived,
    ordered,
    identical,
    changing,
    generic,
    wide,
    empty,
)
CALLS: tuple[tuple[tuple[Any, ...], dict[str, Any]], ...] = (
    ((), {}),
    ((1,), {}),
    ((2,), {}),
    ((1, "x"), {}),
    ((1, "x", [3]), {}),
    ((1, "x", [3], 4), {}),
    ((1,), {"a": 1}),
    ((1,), {"b": "x"}),
    ((), {"a": 1, "b": "x"}),
    ((), {"b": "x", "c": 7}),
    ((1,), {"other": 1}),
    ((), {"b": 1, "other": 1}),
    ((5,), {"b": "x", "a": 3}),
    (tuple(range(12)), {}),
    (tuple(range(13)), {}),
    (tuple(range(5)), {"k": 1, "m": {}}),
    ((1,), {"d": 1, "b": 2}),
)


def outcome(call: Callable[[], Any]) -> Any:
    """Return the result of a call, or the type of its error."""
    try:
        return call()
    except (TypeError, ValueError, AttributeError) as error:
        return type(error)


def built(cls: type) -> Iterator[Any]:
    """Every value that some call makes."""
    for arguments, named in CALLS:
        made = outcome(partial(cls, *arguments, **named))
        if isinstance(made, cls):
            yield made


@pytest.mark.parametrize("make", MAKERS)
def test_the_same_calls_make_the_same_values(make: Callable[[Any], type]) -> None:
    """Arguments, defaults, factories and refusals are those of the standard library."""
    standard, own = make(dataclasses.dataclass), make(value.dataclass)
    for arguments, named in CALLS:
        expected = outcome(lambda: repr(standard(*arguments, **named)))  # noqa: B023  # called at once
        # twice: the first call makes the method
        for _ in range(2):
            assert expected == outcome(lambda: repr(own(*arguments, **named))), (arguments, named)  # noqa: B023


@pytest.mark.parametrize("make", MAKERS)
def test_comparison_and_hash_agree(make: Callable[[Any], type]) -> None:
    """Values are equal, ordered and hashable exactly where those of the standard library are."""
    standard, own = make(dataclasses.dataclass), make(value.dataclass)
    pairs = list(zip(built(standard), built(own), strict=True))
    assert pairs
    for first, mine in pairs:
        for second, other in pairs:
            assert (first == second) == (mine == other)
            for compare in ("__lt__", "__le__", "__gt__", "__ge__"):
                assert outcome(lambda: getattr(first, compare)(second)) == outcome(  # noqa: B023
                    lambda: getattr(mine, compare)(other)  # noqa: B023
                )
        assert mine != first
        assert (mine == 1) is False
        expected = outcome(lambda: type(hash(first)))  # noqa: B023
        assert expected == outcome(lambda: type(hash(mine)))  # noqa: B023
        if expected is int:
            assert hash(mine) == hash(copy.copy(mine)) or make is identical


@pytest.mark.parametrize("make", MAKERS)
def test_classes_have_the_same_parts(make: Callable[[Any], type]) -> None:
    """Slots, match arguments, signature, documentation, and the questions of `dataclasses`."""
    standard, own = make(dataclasses.dataclass), make(value.dataclass)
    assert standard.__slots__ == own.__slots__
    assert standard.__match_args__ == own.__match_args__
    assert str(inspect.signature(standard)).replace("<factory>", "") == str(inspect.signature(own)).replace(
        "<factory>", ""
    )
    assert standard.__doc__ == own.__doc__
    assert (standard.__name__, standard.__qualname__) == (own.__name__, own.__qualname__)
    assert dataclasses.is_dataclass(own)
    assert value.is_dataclass(own)
    assert [each.name for each in dataclasses.fields(standard)] == [each.name for each in dataclasses.fields(own)]
    assert [each.name for each in dataclasses.fields(standard)] == [each.name for each in value.fields(own)]


@pytest.mark.parametrize("make", MAKERS)
def test_frozen_values_do_not_change(make: Callable[[Any], type]) -> None:
    """Setting and deleting raise what the standard library raises; there are no other attributes."""
    standard, own = make(dataclasses.dataclass), make(value.dataclass)
    for first, mine in zip(built(standard), built(own), strict=True):
        for name in own.__slots__:
            assert outcome(lambda: setattr(first, name, 1)) == outcome(lambda: setattr(mine, name, 1))  # noqa: B023
            assert outcome(lambda: delattr(first, name)) == outcome(lambda: delattr(mine, name))  # noqa: B023
        with pytest.raises(AttributeError):
            mine.other = 1
        with pytest.raises(AttributeError):
            del mine.other


@pytest.mark.parametrize("replace", [value.replace, dataclasses.replace])
@pytest.mark.parametrize("make", MAKERS)
def test_replace_makes_another_value(make: Callable[[Any], type], replace: Callable[..., Any]) -> None:
    """Both functions take our values; a field that is not in `__init__` cannot be replaced."""
    standard, own = make(dataclasses.dataclass), make(value.dataclass)
    for first, mine in zip(built(standard), built(own), strict=True):
        for changes in ({}, {"a": 9}, {"b": "z"}, {"total": 1}, {"other": 1}):
            expected = outcome(lambda: repr(dataclasses.replace(first, **changes)))  # noqa: B023
            assert expected == outcome(lambda: repr(replace(mine, **changes)))  # noqa: B023


@value.dataclass(frozen=True, slots=True)
class Sent:
    """A value that travels between processes."""

    name: str
    items: tuple[int, ...] = ()


def test_values_survive_pickling_and_copying() -> None:
    """Pickled, copied and deeply copied values are equal, also when the class never made one itself."""
    sent = Sent("x", (1,))
    assert sent == pickle.loads(pickle.dumps(sent))  # noqa: S301  # our own bytes
    assert sent == copy.copy(sent)
    assert sent == copy.deepcopy(sent)


def test_patterns_take_values_apart() -> None:
    """`match` knows the fields by place and by name."""
    match Sent("x", (1,)):
        case Sent("x", items=(one,)):
            assert 1 == one
        case _:
            pytest.fail("no case fits")


def test_requests_are_made_by_a_row() -> None:
    """Every review makes a Request; without a template for its number of fields this takes three times as long."""
    assert len(value.fields(Request)) in value._SETTERS


def test_a_value_may_hold_itself() -> None:
    """The text of a value that holds itself ends."""
    items: list[Any] = []
    sent = Sent("x", items)
    items.append(sent)
    assert "Sent(name='x', items=[...])" == repr(sent)


def test_each_value_has_its_own_from_a_factory() -> None:
    """Factories are called for every value."""
    cls = plain(value.dataclass)
    assert cls(1).c is not cls(1).c


def _without_slots() -> None:
    value.dataclass(frozen=True)  # type: ignore[call-overload]


def _mutable_default() -> None:
    @value.dataclass(slots=True)
    class Wrong:
        a: list[int] = []  # noqa: RUF012  # that is the mistake


def _wrong_order() -> None:
    @value.dataclass(slots=True)
    class Wrong:
        a: int = 1
        b: int


def _init_only() -> None:
    @value.dataclass(slots=True)
    class Wrong:
        a: InitVar[int]  # noqa: F821


@pytest.mark.parametrize("declare", [_without_slots, _mutable_default, _wrong_order, _init_only])
def test_what_values_do_not_know_is_refused(declare: Callable[[], None]) -> None:
    """A class definition that value classes do not support raises an error."""
    with pytest.raises((TypeError, ValueError)):
        declare()


def test_wrong_arguments_are_named() -> None:
    """The error names the function and the argument, for narrow and for wide classes."""
    with pytest.raises(TypeError, match=r"Plain.__init__\(\).*'a'"):
        plain(value.dataclass)()
    with pytest.raises(TypeError, match=r"Wide.__init__\(\).*'b'"):
        wide(value.dataclass)(1)
    with pytest.raises(TypeError, match=r"Wide.__init__\(\).*'z'"):
        wide(value.dataclass)(1, 2, z=1)
