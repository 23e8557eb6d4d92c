"""Between CEL values and JSON: what a library sends out, and what it reads.

Whole numbers that come out of text are doubles, as Go's decoder gives them to CEL.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Callable
from typing import Final

from pyverno.errors import EvaluationError
from pyverno.kube.json import JSON
from pyverno.kube.meter import UNMETERED, Meter
from pyverno.kube.quantity import Quantity
from pyverno.kube.semver import Version
from pyverno.lang.cel.scalars import Duration, Timestamp, TypeValue, Uint
from pyverno.lang.cel.times import duration_text, timestamp_text
from pyverno.lang.cel.values import Optional, StructValue, Value, map_items, type_name

__all__ = ["to_json", "with_doubles"]

PARTS_PER_STEP: Final = 8


def to_json(value: Value, durations: Callable[[Duration], JSON] = duration_text) -> JSON:
    """Return the JSON of a CEL value; raises EvaluationError for what JSON cannot hold.

    Quantities, versions, addresses and images are their texts, and `durations` gives the JSON of a duration.

    >>> to_json({"a": Uint(1), "b": b"hi"})
    {'a': 1, 'b': 'aGk='}
    """
    if value is None or type(value) in (bool, int, float, str):
        return value
    if isinstance(value, Uint):
        return int(value)
    if isinstance(value, (list, tuple)):
        return [to_json(item, durations) for item in value]
    if isinstance(value, dict):
        return {_key(key): to_json(item, durations) for key, item in map_items(value)}
    if isinstance(value, StructValue):
        return {name: to_json(item, durations) for name, item in value.fields.items()}
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, Timestamp):
        return timestamp_text(value)
    if isinstance(value, Duration):
        return durations(value)
    if isinstance(value, Optional):
        return to_json(value.value, durations) if value.present else None
    if isinstance(value, TypeValue):
        return value.name
    text = _text_of(value)
    if text is not None:
        return text
    raise EvaluationError(f"unsupported type conversion from '{type_name(value)}' to JSON")


def _text_of(value: Value) -> str | None:
    """Return the text of a value of a library's own type; None if it has none."""
    if isinstance(value, Quantity):
        return value.canonical()
    return str(value) if isinstance(value, Version) else getattr(value, "json_text", None)


def _key(key: Value) -> str:
    if isinstance(key, bool):
        raise EvaluationError("type conversion error from bool to 'string'")
    if not isinstance(key, str):
        raise EvaluationError(f"unsupported type conversion from '{type_name(key)}' to string")
    return key


def with_doubles(value: JSON, meter: Meter = UNMETERED) -> JSON:
    """Return a JSON value with every number as double, infinite ones for integers beyond all doubles.

    >>> with_doubles({"a": [1, True]})
    {'a': [1.0, True]}
    """
    if type(value) is int:
        return _double(value)
    if isinstance(value, list):
        meter.charge_steps(1 + len(value) // PARTS_PER_STEP)
        return [with_doubles(item, meter) for item in value]
    if isinstance(value, dict):
        meter.charge_steps(1)
        return {key: with_doubles(item, meter) for key, item in value.items()}
    return value


def _double(value: int) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
