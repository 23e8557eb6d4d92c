"""Generated inputs: each is a strategy of hypothesis, which shrinks what fails, and a fast sampler for volume.

The functions have the names and arguments of `hypothesis.strategies`, so that a test reads as any other; `law` runs it
both ways. Drawing through hypothesis costs milliseconds for a document, more than most laws cost to check; a sampler
takes microseconds. This module must never know what is tested.
"""

from __future__ import annotations

import os
import string
import struct
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from random import Random
from typing import Any, Generic, TypeVar

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.property.profile import NIGHTLY_EXAMPLES, examples

__all__ = [
    "Inputs",
    "booleans",
    "builds",
    "composite",
    "dictionaries",
    "fixed_dictionaries",
    "floats",
    "integers",
    "just",
    "law",
    "lists",
    "none",
    "one_of",
    "recursive",
    "sampled_from",
    "text",
    "tuples",
]

T = TypeVar("T")
U = TypeVar("U")
Draw = Callable[["Inputs[Any]"], Any]
Sampler = Callable[[Random], T]

_TRIES = 1000


@dataclass(frozen=True, slots=True)
class Inputs(Generic[T]):
    """One kind of input: how hypothesis draws it, and how a random number generator gives it."""

    strategy: st.SearchStrategy[T]
    sample: Sampler[T]

    def map(self, change: Callable[[T], U]) -> Inputs[U]:
        """Return inputs that are made of these."""
        sample = self.sample
        return Inputs(self.strategy.map(change), lambda random: change(sample(random)))

    def filter(self, fits: Callable[[T], bool]) -> Inputs[T]:
        """Return those of them that fit; it must not be rare that one does."""
        sample = self.sample

        def fitting(random: Random) -> T:
            for _ in range(_TRIES):
                value = sample(random)
                if fits(value):
                    return value
            raise ValueError("hardly any input fits")

        return Inputs(self.strategy.filter(fits), fitting)

    def __or__(self, other: Inputs[Any]) -> Inputs[Any]:
        return one_of(self, other)


# ------------------------------------------------------------------------------------------------------------- scalars


def just(value: T) -> Inputs[T]:
    """Return one value."""
    return Inputs(st.just(value), lambda _: value)


def none() -> Inputs[None]:
    """Return null."""
    return just(None)


def booleans() -> Inputs[bool]:
    """Return true or false."""
    return Inputs(st.booleans(), lambda random: random.random() < 0.5)


def integers(low: int, high: int) -> Inputs[int]:
    """Return whole numbers of all sizes within the limits, often the limits themselves."""

    def sample(random: Random) -> int:
        if high - low < 256 or random.random() < 0.2:
            return random.randint(low, high)
        if random.random() < 0.2:
            return random.choice((low, high))
        near = random.getrandbits(random.randrange(1, 65)) * random.choice((1, -1))
        return min(max(near, low), high)

    return Inputs(st.integers(low, high), sample)


def floats() -> Inputs[float]:
    """Return finite floating point numbers: common ones, and any bits."""

    def sample(random: Random) -> float:
        if random.random() < 0.5:
            return random.choice((0.0, -0.0, 1.0, 0.5, -1.5, 1e-7, 1e21, 5e-324, 1.7976931348623157e308, 0.1, 100.0))
        while True:
            (value,) = struct.unpack("d", random.randbytes(8))
            if value - value == 0:
                return float(value)

    return Inputs(st.floats(allow_nan=False, allow_infinity=False), sample)


def sampled_from(values: Sequence[T]) -> Inputs[T]:
    """Return one of these values."""
    return Inputs(st.sampled_from(values), lambda random: random.choice(values))


_ODD = "\0\t\n\r\x7f\x85\xa0\u2028\ufeff\ufffd\ue000éßİµ\u0301中😀\U0010ffff"


def text(*, alphabet: str | None = None, max_size: int) -> Inputs[str]:
    """Return texts of these characters, or of any that Unicode has."""
    strategy = st.text(max_size=max_size) if alphabet is None else st.text(alphabet=alphabet, max_size=max_size)

    def character(random: Random) -> str:
        chance = random.random()
        if chance < 0.5:
            return random.choice(string.printable)
        if chance < 0.8:
            return random.choice(_ODD)
        code = random.randrange(0x110000 - 0x800)
        return chr(code if code < 0xD800 else code + 0x800)

    def sample(random: Random) -> str:
        size = random.randint(0, max_size)
        if alphabet is not None:
            return "".join(random.choices(alphabet, k=size))
        return "".join([character(random) for _ in range(size)])

    return Inputs(strategy, sample)


# ------------------------------------------------------------------------------------------------------------ compounds


def one_of(*kinds: Inputs[Any]) -> Inputs[Any]:
    """Return an input of one of these kinds."""
    samplers = [kind.sample for kind in kinds]
    return Inputs(st.one_of([kind.strategy for kind in kinds]), lambda random: random.choice(samplers)(random))


def tuples(*parts: Inputs[Any]) -> Inputs[tuple[Any, ...]]:
    """Return tuples with one input of each kind."""
    samplers = [part.sample for part in parts]
    strategy = st.tuples(*(part.strategy for part in parts))
    return Inputs(strategy, lambda random: tuple([sample(random) for sample in samplers]))


def builds(make: Callable[..., T], *parts: Inputs[Any]) -> Inputs[T]:
    """Return inputs that a function builds from one input of each kind."""
    return tuples(*parts).map(lambda drawn: make(*drawn))


def _size(random: Random, low: int, high: int | None) -> int:
    return random.randint(low, high if high is not None else low + 4)


def lists(
    item: Inputs[T],
    *,
    min_size: int = 0,
    max_size: int | None = None,
    unique: bool = False,
    unique_by: Callable[[T], Hashable] | None = None,
) -> Inputs[list[T]]:
    """Return lists of such items, without a limit of at most four more than the least size."""
    strategy = st.lists(item.strategy, min_size=min_size, max_size=max_size, unique_by=_key(unique, unique_by))
    key, one = _key(unique, unique_by), item.sample

    def sample(random: Random) -> list[T]:
        found = [one(random) for _ in range(_size(random, min_size, max_size))]
        if key is not None:
            found = [*{key(each): each for each in found}.values()]
        return found

    return Inputs(strategy, sample)


def _key(unique: bool, unique_by: Callable[[Any], Hashable] | None) -> Callable[[Any], Hashable] | None:
    return (lambda item: item) if unique else unique_by


def dictionaries(
    keys: Inputs[Any], values: Inputs[Any], *, min_size: int = 0, max_size: int | None = None
) -> Inputs[dict[Any, Any]]:
    """Return maps of such keys and values; fewer where keys fall together."""
    strategy = st.dictionaries(keys.strategy, values.strategy, min_size=min_size, max_size=max_size)
    key, value = keys.sample, values.sample

    def sample(random: Random) -> dict[Any, Any]:
        return {key(random): value(random) for _ in range(_size(random, min_size, max_size))}

    return Inputs(strategy, sample)


def fixed_dictionaries(
    required: Mapping[str, Inputs[Any]], *, optional: Mapping[str, Inputs[Any]] | None = None
) -> Inputs[dict[str, Any]]:
    """Return maps with all of these keys, and any of the optional ones."""
    more = optional or {}
    strategy = st.fixed_dictionaries(
        {key: kind.strategy for key, kind in required.items()},
        optional={key: kind.strategy for key, kind in more.items()},
    )

    def sample(random: Random) -> dict[str, Any]:
        found = {key: kind.sample(random) for key, kind in required.items()}
        found |= {key: kind.sample(random) for key, kind in more.items() if random.random() < 0.5}
        return found

    return Inputs(strategy, sample)


class _TooManyLeavesError(Exception):
    pass


def recursive(leaf: Inputs[Any], grow: Callable[[Inputs[Any]], Inputs[Any]], *, max_leaves: int) -> Inputs[Any]:
    """Return leaves, and what grows around them, with at most so many leaves."""
    strategy = st.recursive(
        leaf.strategy, lambda inner: grow(Inputs(inner, leaf.sample)).strategy, max_leaves=max_leaves
    )
    levels = [leaf.sample]
    left = 0

    def counted(random: Random) -> Any:
        nonlocal left
        left -= 1
        if left < 0:
            raise _TooManyLeavesError
        return leaf.sample(random)

    inner: Inputs[Any] = Inputs(leaf.strategy, counted)
    for _ in range(4):
        grown = grow(inner)
        levels.append(grown.sample)
        inner = Inputs(leaf.strategy, _either(counted, grown.sample))

    def sample(random: Random) -> Any:
        nonlocal left
        outer = left
        while True:
            left = max_leaves
            try:
                return random.choice(levels)(random)
            except _TooManyLeavesError:
                continue
            finally:
                left = outer

    return Inputs(strategy, sample)


def _either(leaf: Sampler[Any], grown: Sampler[Any]) -> Sampler[Any]:
    return lambda random: (leaf if random.random() < 0.4 else grown)(random)


def composite(make: Callable[[Draw], T]) -> Inputs[T]:
    """Return the inputs that a function makes from the values that it draws."""
    strategy = st.composite(lambda draw: make(lambda kind: draw(kind.strategy)))()
    return Inputs(strategy, lambda random: make(lambda kind: kind.sample(random)))


# ----------------------------------------------------------------------------------------------------------------- laws


def law(*kinds: Inputs[Any], few: int, each: int = 1) -> Callable[[Callable[..., None]], Callable[[], None]]:
    """Check a law on a few inputs by hypothesis, and in the nightly run on at least 100,000 more by samplers.

    `each` is the number of inputs that one call of the test covers, if more than one (a policy with many objects). A
    failure of the nightly run names the seed; PYVERNO_SEED repeats it.
    """

    def decorate(test: Callable[..., None]) -> Callable[[], None]:
        quick = settings(max_examples=few, deadline=None, suppress_health_check=[HealthCheck.too_slow])
        by_hypothesis = quick(given(*(kind.strategy for kind in kinds))(test))
        drawn = tuples(*kinds).sample

        @wraps(test)
        def check() -> None:
            by_hypothesis()
            calls = -(-examples(0) // each)
            seed = os.environ.get("PYVERNO_SEED") or os.urandom(8).hex()
            random = Random(f"{seed} {test.__qualname__}")  # noqa: S311 - reproducible, not secret
            looked_at = 0
            for call in range(calls):
                values = drawn(random)
                try:
                    test(*values)
                except BaseException as error:
                    error.add_note(f"input {call} of PYVERNO_SEED={seed}: {values!r}")
                    raise
                looked_at += each
            assert looked_at >= examples(0)
            assert examples(0) in (0, NIGHTLY_EXAMPLES)

        del check.__wrapped__  # pytest would ask for fixtures by the names of the arguments
        return check

    return decorate
