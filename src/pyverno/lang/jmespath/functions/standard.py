"""The functions that JMESPath itself defines, with the behaviour of the fork that Kyverno uses.

`sum` is Kyverno's own (see `numbers`). Maps have no order upstream; here `keys` and `values` follow the sorted keys,
so that they correspond. Those that order (`max`, `sort`, ...) are in `ordering`.
"""

from __future__ import annotations

import math
from typing import Final

from pyverno.kube.gofloat import parse_float
from pyverno.kube.json import JSON, JSONObject, encode, equal, is_number
from pyverno.lang.jmespath.cost import COPY, FLAT, ITEM, READ, Cost, charge_search, charge_texts, same
from pyverno.lang.jmespath.function import (
    ANY,
    ARRAY,
    ARRAY_OF_NUMBERS,
    ARRAY_OF_STRINGS,
    BOOL,
    EXPREF,
    NUMBER,
    OBJECT,
    STRING,
    function,
)
from pyverno.lang.jmespath.values import ExpRef, check_size
from pyverno.lang.runtime import BYTES_PER_STEP, Runtime

__all__ = ["FUNCTIONS", "keys"]

_LONG_TEXT: Final = 4096


@function("abs", NUMBER, returns=NUMBER, cost=FLAT, note="gives the distance of a number from zero", standard=True)
def absolute(_runtime: Runtime, value: float) -> JSON:
    """Return the absolute value.

    >>> abs(`-2.5`)
    2.5
    """
    return abs(value)


@function(
    "avg",
    ARRAY_OF_NUMBERS,
    returns=NUMBER,
    cost=Cost(per_step=2 * ITEM),
    note="gives the mean of a list of numbers",
    standard=True,
)
def average(_runtime: Runtime, items: list[float]) -> JSON:
    """Return the mean; an empty list gives NaN, as upstream.

    >>> avg(`[1, 2, 6]`)
    3
    """
    return math.fsum(items) / len(items) if items else math.nan


@function("ceil", NUMBER, returns=NUMBER, cost=FLAT, note="rounds a number up", standard=True)
def ceil(_runtime: Runtime, value: float) -> JSON:
    """Return the smallest whole number that is not below.

    >>> ceil(`1.001`)
    2
    """
    return math.ceil(value) if math.isfinite(value) else value


@function(
    "contains",
    (ARRAY, STRING),
    ANY,
    returns=BOOL,
    cost=Cost(per_step=2 * ITEM),
    note="checks whether a list or text has a part",
    standard=True,
)
def contains(runtime: Runtime, whole: JSON, part: JSON) -> JSON:
    """Return whether a list has an equal item, or a text the other text inside; a text never contains a non-text.

    >>> contains(`["a", {"b": 1}]`, `{"b": 1}`)
    true
    >>> contains('abc', 'bc')
    true
    """
    if isinstance(whole, str):
        if not isinstance(part, str):
            return False
        charge_search(whole, part, runtime.budget)
        return part in whole
    is_text = isinstance(part, str)
    if isinstance(part, list | dict) or (is_text and len(part) > _LONG_TEXT):
        return any(same(item, part, runtime.budget) for item in whole)
    if is_text:
        return part in whole
    return any(equal(item, part) for item in whole)


@function(
    "ends_with", STRING, STRING, returns=BOOL, cost=READ, note="checks whether a text ends with another", standard=True
)
def ends_with(_runtime: Runtime, text: str, suffix: str) -> JSON:
    """Return whether a text ends with another.

    >>> ends_with('nginx:latest', ':latest')
    true
    """
    return text.endswith(suffix)


@function("floor", NUMBER, returns=NUMBER, cost=FLAT, note="rounds a number down", standard=True)
def floor(_runtime: Runtime, value: float) -> JSON:
    """Return the largest whole number that is not above.

    >>> floor(`-1.5`)
    -2
    """
    return math.floor(value) if math.isfinite(value) else value


@function(
    "join",
    STRING,
    ARRAY_OF_STRINGS,
    returns=STRING,
    cost=Cost(per_step=4 * ITEM),
    note="joins texts with a separator",
    standard=True,
)
def join(runtime: Runtime, separator: str, items: list[str]) -> JSON:
    """Join a list of texts.

    >>> join('-', ['a', 'b'])
    "a-b"
    """
    size = sum(map(len, items)) + len(separator) * max(len(items) - 1, 0)
    runtime.budget.produce(size)
    runtime.budget.charge_bytes(size)
    return separator.join(items)


@function(
    "keys", OBJECT, returns=ARRAY, cost=Cost(per_step=2 * ITEM), note="lists the keys of an object", standard=True
)
def keys(runtime: Runtime, value: JSONObject) -> JSON:
    """List the keys, sorted.

    >>> keys(`{"b": 1, "a": 2}`)
    ["a", "b"]
    """
    charge_texts(list(value), runtime.budget)
    return sorted(value)


@function(
    "length", (STRING, ARRAY, OBJECT), returns=NUMBER, cost=FLAT, note="counts characters, items or keys", standard=True
)
def length(_runtime: Runtime, value: str | list[JSON] | JSONObject) -> JSON:
    """Count the characters (code points) of a text, the items of a list or the keys of an object.

    >>> length('héllo')
    5
    """
    return len(value)


@function(
    "map",
    EXPREF,
    ARRAY,
    returns=ARRAY,
    cost=Cost(per_step=ITEM),
    note="applies an expression to every item",
    standard=True,
)
def apply_to_all(_runtime: Runtime, expression: ExpRef, items: list[JSON]) -> JSON:
    """Apply an expression to every item; nulls stay in the list.

    >>> map(&a, `[{"a": 1}, {"b": 2}]`)
    [1, null]
    """
    return [expression(item) for item in items]


@function(
    "merge",
    OBJECT,
    returns=OBJECT,
    cost=Cost(per_step=4 * ITEM, copies=True),
    note="joins objects, later keys win",
    variadic=True,
    standard=True,
)
def merge(_runtime: Runtime, *objects: JSONObject) -> JSON:
    """Join objects; of equal keys the last one wins.

    >>> merge(`{"a": 1, "b": 1}`, `{"b": 2}`)
    {"a": 1, "b": 2}
    """
    result: JSONObject = {}
    for one in objects:
        result.update(one)
    return result


@function(
    "not_null",
    ANY,
    returns=ANY,
    cost=FLAT,
    note="gives the first argument that is not null",
    variadic=True,
    standard=True,
)
def not_null(_runtime: Runtime, *values: JSON) -> JSON:
    """Return the first argument that is not null; a missing key counts as null.

    >>> not_null(missing, 'default')
    "default"
    """
    return next((value for value in values if value is not None), None)


@function("reverse", (ARRAY, STRING), returns=ANY, cost=COPY, note="turns a list or text around", standard=True)
def reverse(_runtime: Runtime, value: list[JSON] | str) -> JSON:
    """Turn the order of a list or of the characters of a text around.

    >>> reverse('abc')
    "cba"
    """
    return value[::-1]


@function(
    "starts_with",
    STRING,
    STRING,
    returns=BOOL,
    cost=READ,
    note="checks whether a text starts with another",
    standard=True,
)
def starts_with(_runtime: Runtime, text: str, prefix: str) -> JSON:
    """Return whether a text starts with another.

    >>> starts_with('kube-system', 'kube-')
    true
    """
    return text.startswith(prefix)


@function("to_array", ANY, returns=ARRAY, cost=FLAT, note="wraps a value in a list unless it is one", standard=True)
def to_array(_runtime: Runtime, value: JSON) -> JSON:
    """Return a list as it is, anything else as a list of one.

    >>> to_array('a')
    ["a"]
    """
    return value if isinstance(value, list) else [value]


@function(
    "to_number",
    ANY,
    returns=NUMBER,
    cost=Cost(per_step=BYTES_PER_STEP, most=4096),
    note="reads a number from a text",
    standard=True,
)
def to_number(_runtime: Runtime, value: JSON) -> JSON:
    """Read a number from a text; null when it is not a number or too large, and for anything but texts and numbers.

    >>> to_number('1.5e3')
    1500
    >>> to_number('abc')
    null
    """
    if is_number(value):
        return value
    number = parse_float(value) if isinstance(value, str) else None
    if number is None or not math.isfinite(number):
        return None
    return int(number) if number.is_integer() and abs(number) < 2**53 else number


@function(
    "to_string", ANY, returns=STRING, cost=FLAT, note="writes a value as JSON, texts stay as they are", standard=True
)
def to_string(runtime: Runtime, value: JSON) -> JSON:
    r"""Return a text as it is, anything else as compact JSON with sorted keys and `<`, `>`, `&` escaped.

    >>> to_string(`{"b": 1.0, "a": [true, null]}`)
    "{\"a\":[true,null],\"b\":1}"
    """
    if isinstance(value, str):
        return value
    runtime.budget.charge_steps(check_size(value, runtime.budget))
    return encode(value)


@function("type", ANY, returns=STRING, cost=FLAT, note="names the type of a value", standard=True)
def type_name(_runtime: Runtime, value: JSON) -> JSON:
    """Name the type: number, string, boolean, array, object or null.

    >>> type(`true`)
    "boolean"
    """
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if is_number(value):
        return "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object"


@function(
    "values", OBJECT, returns=ARRAY, cost=Cost(per_step=2 * ITEM), note="lists the values of an object", standard=True
)
def values(runtime: Runtime, value: JSONObject) -> JSON:
    """List the values in the order of the sorted keys.

    >>> values(`{"b": 1, "a": 2}`)
    [2, 1]
    """
    charge_texts(list(value), runtime.budget)
    return [value[key] for key in sorted(value)]


FUNCTIONS: Final = (
    absolute,
    average,
    ceil,
    contains,
    ends_with,
    floor,
    join,
    keys,
    length,
    apply_to_all,
    merge,
    not_null,
    reverse,
    starts_with,
    to_array,
    to_number,
    to_string,
    type_name,
    values,
)
