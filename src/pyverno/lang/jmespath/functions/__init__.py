"""The functions of Kyverno's JMESPath: one registration each, one module per topic.

A function takes checked JSON values and gives a JSON value. It must never change an argument, and must ask the
runtime before it produces something large or needs something impure.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from pyverno.lang.jmespath.function import Function
from pyverno.lang.jmespath.functions import (
    collections,
    encoding,
    images,
    network,
    numbers,
    randomness,
    regex,
    standard,
    strings,
    times,
    x509,
)

__all__ = ["FUNCTIONS"]

_TOPICS: Final = (
    standard,
    strings,
    regex,
    numbers,
    collections,
    encoding,
    times,
    randomness,
    x509,
    images,
    network,
)

FUNCTIONS: Final[Mapping[str, Function]] = MappingProxyType(
    {function.name: function for topic in _TOPICS for function in topic.FUNCTIONS}
)
"""Every function by name, JMESPath's own first; Kyverno's `sum` stands in for the standard one."""
