"""What a client of the sandbox sends costs about twice as much when there is twice as much of it."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from kubesandbox.attributes import Notes
from kubesandbox.http.warnings import warning_headers
from kubesandbox.parsing.bodies import read_json, read_yaml
from tests.property.growth import Call, Shape, doubling


def _fields(size: int) -> bytes:
    """Return a JSON object of as many fields, of which the first is named twice."""
    return b"{%s}" % b",".join(b'"k%d": 1' % (number % size) for number in range(size + 1))


def _json(size: int) -> Call:
    body = _fields(size)
    return lambda _: read_json(body)


def _yaml(size: int) -> Call:
    body = b"".join(b"k%d: 1\n" % (number % size) for number in range(size + 1))
    return lambda _: read_yaml(body)


def _warnings(size: int) -> Call:
    texts = [f'unknown field "k{number}"' for number in range(size)]

    def call(_: object) -> list[str]:
        notes = Notes()
        for text in texts:
            notes.warn(text)
        return warning_headers(notes.warnings)

    return call


SHAPES: Mapping[str, Shape] = {"fields named twice": _json, "keys named twice": _yaml, "unknown fields": _warnings}


@pytest.mark.parametrize("name", SHAPES)
def test_twice_the_body_costs_about_twice_as_much(name: str) -> None:
    """A request of three megabytes must not hold up the server for minutes."""
    found = doubling(name, SHAPES[name], largest=1 << 17)
    assert found.holds, str(found)
