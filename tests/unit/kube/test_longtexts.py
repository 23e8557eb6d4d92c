"""Parsers of small values read a megabyte of anything in linear time."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pyverno.errors import PyvernoError
from pyverno.kube.imageref.reference import parse_reference
from pyverno.kube.quantity import try_quantity
from pyverno.kube.selector import parse_selector_text
from pyverno.kube.semver import parse_range, try_version
from pyverno.kube.time.cron import parse_standard
from pyverno.kube.time.duration import try_duration
from pyverno.kube.time.gotime import parse_rfc3339, unix_time
from pyverno.kube.time.ttl import parse_ttl
from pyverno.lang.pattern.leaf import compile_leaf

PARSERS: dict[str, Callable[[str], object]] = {
    "cron": parse_standard,
    "duration": try_duration,
    "float": compile_leaf(5.5),
    "image": parse_reference,
    "integer": compile_leaf(5),
    "leaf": compile_leaf,
    "quantity": try_quantity,
    "range": parse_range,
    "selector": parse_selector_text,
    "time": parse_rfc3339,
    "ttl": lambda text: parse_ttl(text, unix_time(0)),
    "version": try_version,
}
PIECES = (
    "0",
    "1",
    "1.",
    "\n",
    " ",
    "a-",
    "a/",
    "a.",
    "__",
    "1h",
    "-",
    "1-",
    "1,",
    "a=b,",
    "*/",
    ">=1.0.0 ",
    "x@",
    "||",
)


@pytest.mark.parametrize("name", PARSERS)
def test_long_texts_end_in_a_value_or_an_error(name: str) -> None:
    """No regular expression backtracks so much that the parser does not return."""
    parse = PARSERS[name]
    for piece in PIECES:
        for end in ("", "x", "!"):
            try:
                parse(piece * (65_536 // len(piece)) + end)
            except PyvernoError:
                continue
