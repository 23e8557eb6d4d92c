"""Closures of the loop macros, with the results and costs of cel-go's expansions of them.

`all` and `exists` absorb errors like `&&` and `||`; the others stop at the first error. Costs per visit: the loop
condition and the step of the expansion (for `all`: `@not_strictly_false(@result)` and `@result && predicate`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from pyverno.errors import EvaluationError
from pyverno.lang.cel.runtime.access import iterate, not_iterable
from pyverno.lang.cel.runtime.evaluation import EVALUATION, ITEM_BYTES, UNSET, Frame
from pyverno.lang.cel.runtime.steps import Run, Step
from pyverno.lang.cel.values import NONE, Optional, Value, map_items, new_map, no_such_overload, size_of

__all__ = ["bind_run", "collect_run", "exactly_one_run", "insert_run", "optional_map_run", "quantifier_run"]

FEW: Final = 4
"""Visits that take a step."""

ALL_CONDITION: Final = 2
EXISTS_CONDITION: Final = 3


def _pairs(value: Value) -> Iterable[tuple[Value, Value]]:
    if isinstance(value, (list, tuple)):
        return enumerate(value)
    if isinstance(value, dict):
        return map_items(value)
    raise not_iterable(value)


def quantifier_run(range_: Step, slots: tuple[int, ...], predicate: Step, *, decisive: bool) -> Run:
    """Return a closure for `all` (decided by false) or `exists` (decided by true)."""
    items_of, test = range_.run, predicate.run
    condition = EXISTS_CONDITION if decisive else ALL_CONDITION
    per_item = condition + 1 + predicate.cost
    opposite = not decisive
    if len(slots) == 2:
        return _two_variable_quantifier(items_of, slots, test, per_item, condition, decisive=decisive)
    (slot,) = slots

    def run(f: Frame) -> Value:
        items = items_of(f)
        if type(items) is not list:
            items = iterate(items)
        failed: EvaluationError | None = None
        left = len(items)
        for item in items:
            left -= 1
            f[slot] = item
            f[0] += per_item
            if f[0] > f[1]:
                f[EVALUATION].checkpoint(f)
            try:
                value = test(f)
            except EvaluationError as error:
                failed = failed or error.copied()
                continue
            if value is opposite:
                continue
            if value is decisive:
                if left:
                    f[0] += condition
                return decisive
            failed = failed or no_such_overload()
        if failed is not None:
            raise failed.copied()
        return opposite

    return run


def _two_variable_quantifier(
    items_of: Run, slots: tuple[int, ...], test: Run, per_item: int, condition: int, *, decisive: bool
) -> Run:
    first, second = slots
    opposite = not decisive

    def run(f: Frame) -> Value:
        failed: EvaluationError | None = None
        for f[first], f[second] in _pairs(items_of(f)):  # noqa: B020 - sets slots of the frame
            f[0] += per_item
            if f[0] > f[1]:
                f[EVALUATION].checkpoint(f)
            try:
                value = test(f)
            except EvaluationError as error:
                failed = failed or error.copied()
                continue
            if value is decisive:
                f[0] += condition
                return decisive
            if value is not opposite:
                failed = failed or no_such_overload()
        if failed is not None:
            raise failed.copied()
        return opposite

    return run


def _visits(items_of: Run, slots: tuple[int, ...], f: Frame) -> Iterable[Value]:
    """Set the loop's variables one visit after the other, and yield the first of them.

    cel-go charges nothing for a visit whose test is a constant: the budget of the review counts them all.
    """
    value = items_of(f)
    size = size_of(value)
    if size is not None and size > FEW:
        f[EVALUATION].runtime.budget.charge_steps(size // FEW)
    if len(slots) == 1:
        slot = slots[0]
        for item in iterate(value):
            f[slot] = item
            yield item
        return
    first, second = slots
    for one, two in _pairs(value):
        f[first] = one
        f[second] = two
        yield one


def exactly_one_run(range_: Step, slots: tuple[int, ...], predicate: Step) -> Run:
    """Return a closure for `existsOne`; an error anywhere is the result, and of several errors the last."""
    items_of, test, cost = range_.run, predicate.run, predicate.cost

    def run(f: Frame) -> Value:
        count = 0
        failed: EvaluationError | None = None
        for _ in _visits(items_of, slots, f):
            f[0] += cost
            if f[0] > f[1]:
                f[EVALUATION].checkpoint(f)
            try:
                value = test(f)
            except EvaluationError as error:
                failed = error.copied()  # cel-go: the result of a step replaces what was before, also an error
                continue
            if value is True:
                f[0] += 2
                count += 1
            elif value is not False:
                failed = no_such_overload()
        if failed is not None:
            raise failed.copied()  # no frame holds the error that it raises
        return count == 1

    return run


def collect_run(
    range_: Step, slots: tuple[int, ...], predicate: Step | None, body: Step | None, literal_cost: int
) -> Run:
    """Return a closure for `map`, `filter` and `transformList`.

    `body` is None for `filter`, which keeps the element; `literal_cost` is the cost of the one-element list that the
    expansion appends. Of several errors of the predicate the last is the result.
    """
    items_of = range_.run
    test, test_cost = (predicate.run, predicate.cost) if predicate is not None else (None, 0)
    transform = body.run if body is not None else None
    kept_cost = 2 + literal_cost + (body.cost if body is not None else 1)
    if test is None and transform is not None:
        return _mapping(items_of, slots, transform, kept_cost)

    def run(f: Frame) -> Value:
        result: list[Value] = []
        failed: EvaluationError | None = None
        for item in _visits(items_of, slots, f):
            f[0] += test_cost
            if f[0] > f[1]:
                f[EVALUATION].checkpoint(f)
            try:
                value = True if test is None else test(f)
            except EvaluationError as error:
                failed = error.copied()  # as in `existsOne`
                continue
            if value is not True:
                if value is not False:
                    failed = no_such_overload()
                continue
            f[0] += kept_cost
            if failed is not None:
                continue
            try:
                result.append(item if transform is None else transform(f))
            except EvaluationError as error:
                failed = error.copied()
        if failed is not None:
            raise failed.copied()  # no frame holds the error that it raises
        f[EVALUATION].produce(len(result) * ITEM_BYTES)
        return result

    return run


def _mapping(items_of: Run, slots: tuple[int, ...], transform: Run, cost: int) -> Run:
    def run(f: Frame) -> Value:
        result: list[Value] = []
        for _ in _visits(items_of, slots, f):
            f[0] += cost
            if f[0] > f[1]:
                f[EVALUATION].checkpoint(f)
            result.append(transform(f))
        f[EVALUATION].produce(len(result) * ITEM_BYTES)
        return result

    return run


def insert_run(range_: Step, slots: tuple[int, ...], predicate: Step | None, body: Step, *, entries: bool) -> Run:
    """Return a closure for `transformMap`, or `transformMapEntry` whose body is a map of new entries."""
    items_of, transform = range_.run, body.run
    test, test_cost = (predicate.run, predicate.cost) if predicate is not None else (None, 0)
    kept_cost = body.cost + (2 if entries else 3)

    def run(f: Frame) -> Value:
        pairs: list[tuple[Value, Value]] = []
        for key in _visits(items_of, slots, f):
            f[0] += test_cost
            value = True if test is None else test(f)
            if value is True:
                f[0] += kept_cost
                made = transform(f)
                if not entries:
                    pairs.append((key, made))
                elif isinstance(made, dict):
                    f[EVALUATION].produce(len(made) * ITEM_BYTES)
                    pairs.extend(map_items(made))
                else:
                    raise no_such_overload()
            elif value is not False:
                raise no_such_overload()
            if f[0] > f[1]:
                f[EVALUATION].checkpoint(f)
        f[EVALUATION].produce(len(pairs) * ITEM_BYTES)
        try:
            return new_map(pairs)
        except EvaluationError as error:
            raise EvaluationError(f"insert failed: {error.message}") from None

    return run


def bind_run(slot: int, body: Run) -> Run:
    """Return a closure for `cel.bind`: the name has no value until it is used."""

    def run(f: Frame) -> Value:
        f[slot] = UNSET
        return body(f)

    return run


def optional_map_run(target: Step, slot: int, body: Step, *, flat: bool, extra: int) -> Run:
    """Return a closure for `optMap` and `optFlatMap`.

    cel-go's expansion evaluates the target twice when it has a value; what that costs is charged, not done. `extra` is
    the cost of the expansion's empty range.
    """
    compute, transform = target.run, body.run
    kept_cost = target.cost + body.cost + extra + (1 if flat else 2)

    def run(f: Frame) -> Value:
        before = f[0]
        value = compute(f)
        if not isinstance(value, Optional):
            raise no_such_overload()
        if not value.present:
            f[0] += 1
            return NONE
        f[0] += f[0] - before + kept_cost
        f[slot] = value.value
        result = transform(f)
        if not flat:
            return Optional(result)
        if not isinstance(result, Optional):
            raise no_such_overload()
        return result

    return run
