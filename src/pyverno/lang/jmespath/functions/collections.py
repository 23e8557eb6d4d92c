"""Functions on lists and objects."""

from __future__ import annotations

from typing import Final

from pyverno.kube.json import JSON, JSONObject, go_text, is_number
from pyverno.lang.jmespath.cost import FLAT, ITEM, Cost, charge_texts
from pyverno.lang.jmespath.function import ANY, ARRAY, NUMBER, OBJECT, STRING, describe, failure, function
from pyverno.lang.jmespath.functions.text import scalar_text
from pyverno.lang.runtime import Runtime

__all__ = ["FUNCTIONS"]

_PAIR: Final = 20


@function(
    "lookup",
    (OBJECT, ARRAY),
    (STRING, NUMBER),
    returns=ANY,
    cost=FLAT,
    note="gives the value at a key of an object or list",
)
def lookup(_runtime: Runtime, value: JSONObject | list[JSON], key: JSON) -> JSON:
    """Return the value at a key or index; null when there is none. A negative index never exists.

    >>> lookup(`{"a": 1}`, 'a')
    1
    >>> lookup(`[7]`, `-1`)
    null
    >>> lookup(`[7]`, `0.5`)
    error: JMESPath function 'lookup': argument #2: expected an integer number but got: a number
    """
    if isinstance(value, dict):
        if not isinstance(key, str):
            raise failure("lookup", "argument #2 is not of type String")
        return value.get(key)
    if not is_number(key):
        raise failure("lookup", "argument #2 is not of type Number")
    if key != key // 1:
        wanted = "argument #2: expected an integer number but got: "
        raise failure("lookup", wanted + describe(key), detailed=wanted + go_text(key))
    return value[int(key)] if 0 <= key < len(value) else None


@function(
    "items",
    (OBJECT, ARRAY),
    STRING,
    STRING,
    returns=ARRAY,
    cost=Cost(per_step=ITEM, copies=True),
    note="turns an object or list into a list of pairs",
)
def items(runtime: Runtime, value: JSONObject | list[JSON], key_name: str, value_name: str) -> JSON:
    """Turn an object (by sorted keys) or a list (by index) into a list of objects with a key and a value.

    Upstream's result is a list of a special type that some functions refuse; here it is an ordinary list.

    >>> items(`{"b": 1, "a": 2}`, 'k', 'v')
    [{"k": "a", "v": 2}, {"k": "b", "v": 1}]
    """
    runtime.budget.produce(_PAIR * len(value))
    pairs = sorted(value.items(), key=lambda pair: pair[0]) if isinstance(value, dict) else list(enumerate(value))
    return [{key_name: key, value_name: item} for key, item in pairs]


@function(
    "object_from_lists",
    ARRAY,
    ARRAY,
    returns=OBJECT,
    cost=Cost(per_step=ITEM // 4, most=30_000 * ITEM, copies=True),
    note="makes an object of a list of keys and one of values",
)
def object_from_lists(runtime: Runtime, keys: list[JSON], values: list[JSON]) -> JSON:
    """Make an object of keys and values; missing values are null, surplus ones ignored, the last of equal keys wins.

    >>> object_from_lists(`["a", "b", "a"]`, `[1, 2, 3]`)
    {"a": 3, "b": 2}
    """
    charge_texts([key for key in keys if isinstance(key, str)], runtime.budget)
    result: JSONObject = {}
    for index, key in enumerate(keys):
        if key is None or isinstance(key, list | dict):
            raise failure("object_from_lists", "argument #1 is not of type StringArray")
        result[scalar_text(key)] = values[index] if index < len(values) else None
    return result


FUNCTIONS: Final = (lookup, items, object_from_lists)
