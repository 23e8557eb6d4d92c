"""I9: the work of a JMESPath function call stays within its charge, however large its arguments are.

Work is counted, not timed: lines that Python executes while the call runs. `PYVERNO_NIGHTLY` also takes the time.
"""

from __future__ import annotations

import contextlib
import inspect
import os
import sys
import time
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import pytest

from pyverno.errors import BudgetExceededError, PyvernoError
from pyverno.kube.json import JSON
from pyverno.lang.jmespath import FUNCTIONS, compile_expression
from pyverno.lang.jmespath.cost import Cost
from pyverno.lang.jmespath.function import (
    ANY,
    ARRAY,
    ARRAY_OF_NUMBERS,
    ARRAY_OF_STRINGS,
    EXPREF,
    NUMBER,
    OBJECT,
    STRING,
    function,
)
from pyverno.lang.runtime import Budget, Runtime
from tests.security.test_error_texts import FixedHost

SIZE = 1 << 20
ITEMS = 100_000
LINES_PER_STEP = 24
"""A step is about a microsecond, in which Python executes so many lines at most."""

TEXTS: dict[str, Callable[[int], str]] = {
    "letters": lambda size: "a" * size,
    "no letters of ASCII": lambda size: "é" * size,
    "many letters": lambda size: "".join(map(chr, range(0x4E00, 0x9FFF))) * (size // 20_000),
    "slashes": lambda size: "/" * size,
    "dots": lambda size: "../" * (size // 3),
    "commas": lambda size: "a," * (size // 2),
    "lines": lambda size: "\n" * size,
    "digits": lambda size: "1" * size,
    "stars": lambda size: "a*" * (size // 2),
    "marks": lambda size: "?" * size,
    "brackets": lambda size: "[" * size,
    "JSON": lambda size: "[" + "0," * (size // 2 - 2) + "0]",
    "long numbers": lambda size: "[" + "12345678901234567890," * (size // 21) + "0]",
    "YAML": lambda size: "- a\n" * (size // 4),
    "base64": lambda size: "QUJD" * (size // 4 - 1) + "QQ=",
    "base64 in lines": lambda size: "QUJD\n" * (size // 5),
    "ranges": lambda size: ">=1.0.0 " * (size // 8),
    "durations": lambda size: "1h" * (size // 2),
    "PEM": lambda size: "-----BEGIN CERTIFICATE-----\nQQ==\n-----END CERTIFICATE-----\n" * (size // 59),
}
LISTS: dict[str, Callable[[int], list[JSON]]] = {
    "numbers": lambda items: list(range(items)),
    "fractions": lambda items: [0.1] * items,
    "texts": lambda items: [str(item) for item in range(items)],
    "one text": lambda items: ["x" * 1000] * items,
    "one large text": lambda items: ["x" * SIZE] * items,
    "nulls": lambda items: [None] * items,
    "objects": lambda items: [{"a": 1, "b": "x"}] * items,
    "one large list": lambda items: [list(range(1000))] * items,
    "lists in lists": lambda items: [[[[]]]] * items,
}
OTHERS: dict[str, JSON] = {STRING: "a", NUMBER: 3, ARRAY: ["a"], OBJECT: {"a": 1}, ANY: "a", EXPREF: None}


def values(types: tuple[str, ...], size: int, items: int) -> Iterator[tuple[str, JSON]]:
    """Yield large values of the types that a parameter takes."""
    if {STRING, ANY} & set(types):
        yield from ((shape, make(size)) for shape, make in TEXTS.items())
    if {ARRAY, ANY, ARRAY_OF_NUMBERS, ARRAY_OF_STRINGS} & set(types):
        yield from ((shape, make(items)) for shape, make in LISTS.items())
    if {OBJECT, ANY} & set(types):
        yield "object", {str(item): item for item in range(items)}
        yield "object of texts", dict.fromkeys(map(str, range(items)), "x" * 1000)


def arguments(name: str, size: int = SIZE, items: int = ITEMS) -> Iterator[tuple[str, str, dict[str, JSON]]]:
    """Yield expressions that call a function, with large values in every position, and in all positions at once."""
    parameters = FUNCTIONS[name].parameters
    places = [index for index, types in enumerate(parameters) if EXPREF not in types]
    texts = [f"a{index}" if index in places else "&@" for index in range(len(parameters))]
    call = f"{name}({', '.join(texts)})"
    for place in places:
        for shape, value in values(parameters[place], size, items):
            data = {f"a{index}": OTHERS[parameters[index][0].partition("[")[0]] for index in places}
            yield f"{shape} as argument {place + 1}", call, {**data, f"a{place}": value}
            if len(places) > 1:
                yield f"{shape} as every argument", call, {f"a{index}": value for index in places}


def lines_of(work: Callable[[], Any], enough: int) -> int:
    """Return how many lines Python executes meanwhile; gives up at `enough`."""
    count = 0

    class Enough(BaseException):
        pass

    def local(_frame: FrameType, event: str, _argument: object) -> Any:
        nonlocal count
        if event == "line":
            count += 1
            if count > enough:
                raise Enough
        return local

    before = sys.gettrace()
    sys.settrace(lambda frame, event, argument: local)
    try:
        work()
    except (PyvernoError, Enough):
        pass
    finally:
        sys.settrace(before)
    return count


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_work_of_a_call_is_within_its_price(name: str) -> None:
    """Texts of 64 KiB and lists of 6,000 items of many shapes: what Python executes was paid for, or refused."""
    over = []
    with contextlib.suppress(PyvernoError):
        FUNCTIONS[name].apply(
            ["é"] * len(FUNCTIONS[name].parameters), Runtime(FixedHost())
        )  # modules load on first use
    for shape, call, data in arguments(name, size=1 << 16, items=6_000):
        expression = compile_expression(call)
        budget = Budget()

        def evaluate(expression: Any = expression, data: Any = data, budget: Budget = budget) -> None:
            expression.evaluate(data, Runtime(FixedHost(), budget))

        lines = lines_of(evaluate, enough=2_000_000)
        steps = Budget().steps - max(budget.steps, 0)
        if lines > 3_000 + LINES_PER_STEP * steps:
            over.append((shape, lines, steps))
    assert [] == over


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_call_on_large_arguments_is_refused_or_charged(name: str) -> None:
    """Texts of 1 MiB and lists of 100,000 items cost steps, except where the work does not depend on the size."""
    if not FUNCTIONS[name].cost.per_step:
        return
    free = []
    for shape, call, data in arguments(name):
        if "as every" in shape or "long numbers" in shape:
            continue
        budget = Budget()
        try:
            compile_expression(call).evaluate(data, Runtime(FixedHost(), budget))
        except PyvernoError:
            continue
        if Budget().steps - budget.steps < 1000:
            free.append((shape, budget.steps))
    assert [] == free


@pytest.mark.skipif(not os.environ.get("PYVERNO_NIGHTLY"), reason="takes the time; the nightly run does")
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_call_on_large_arguments_ends_soon(name: str) -> None:
    """Every function on 1 MiB and 100,000 items: 200 ms of CPU, or refused."""
    slow = []
    for shape, call, data in arguments(name):
        expression, budget = compile_expression(call), Budget()
        began = time.process_time()
        with contextlib.suppress(PyvernoError):
            expression.evaluate(data, Runtime(FixedHost(), budget))
        took = time.process_time() - began
        if took > 0.2 + (Budget().steps - max(budget.steps, 0)) * 2e-6:
            slow.append((shape, round(took, 3)))
    assert [] == slow


def test_a_function_that_declares_no_cost_can_not_be_registered() -> None:
    """The parameter has no default."""
    assert inspect.Parameter.empty is inspect.signature(function).parameters["cost"].default
    assert all(isinstance(each.cost, Cost) for each in FUNCTIONS.values())


@pytest.mark.parametrize(
    ("text", "resource"),
    [
        ("join('', texts)", "bytes"),
        ("join(large, texts)", "bytes"),
        ("texts == others", "steps"),
        ("contains(shared, other)", "steps"),
        ("doubled == twin", "steps"),
        ("sort(texts)", "steps"),
        ("map(&join('', @), [[large], [large], [large]])[] | join('', @)", "bytes"),
        ("map(&reverse(@), texts)", "bytes"),
        ("map(&merge(@, @), objects)", "bytes"),
        ("to_string(doubled)", "bytes"),
    ],
)
def test_values_that_share_structure_are_refused_before_they_are_written_out(text: str, resource: str) -> None:
    """A text that occurs in a list 1,000 times joins to 1 GiB; comparing lists of shared lists would never end."""
    doubled, twin = ["x"], ["x"]
    for _ in range(40):
        doubled, twin = [doubled, doubled], [twin, twin]  # type: ignore[list-item]
    large = "x" * SIZE
    data = {
        "large": large,
        "texts": [large] * 5000,
        "others": ["x" * (SIZE - 1) + "x"] * 5000,
        "shared": [list(range(ITEMS))] * ITEMS,
        "other": [*range(ITEMS - 1), -1],
        "doubled": doubled,
        "twin": twin,
        "objects": [{str(item): item for item in range(30_000)}] * 1000,
    }
    with pytest.raises(BudgetExceededError) as caught:
        compile_expression(text).evaluate(data, Runtime(FixedHost(), Budget()))
    assert resource == caught.value.resource


@pytest.mark.parametrize(
    "text",
    [
        "join(',', names)",
        "length(large)",
        "sort(names)",
        "regex_match('^x+$', short)",
        "to_upper(short)",
        "names[] == names",
    ],
)
def test_ordinary_calls_are_nearly_free(text: str) -> None:
    """The harmless twin: a hundred names and a short text cost a few steps."""
    data = {"names": [f"name-{number}" for number in range(100)], "large": "x" * SIZE, "short": "x" * 50}
    budget = Budget()
    compile_expression(text).evaluate(data, Runtime(FixedHost(), budget))
    assert 250 > Budget().steps - budget.steps
