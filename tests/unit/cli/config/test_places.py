"""Places of keys in TOML files: tables, dotted keys, inline tables, and texts that look like either."""

from __future__ import annotations

import pytest

from pyverno.cli.config.places import toml_place
from pyverno.errors import Location

_KEY = ("tool", "pyverno", "apply", "set")


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("[tool.pyverno.apply]\nquiet = true\n  set = []\n", (3, 3)),
        ("[tool.pyverno]\napply.set = []\n", (2, 1)),
        ("[tool]\npyverno = {apply = {set = []}}\n", (2, 1)),
        ('["tool" . pyverno]\n[tool.pyverno.apply]\n"set" = [\n  "a=b",\n]\n', (3, 1)),
        ('[a]\nx = """\n[tool.pyverno.apply]\nset = 1\n"""\n# set = 2\n[tool.pyverno.apply]\nset = []\n', (8, 1)),
        ("[[a]]\nset = 1\n[[a]]\n[tool.pyverno.apply]\r\nset = []\r\n", (5, 1)),
        ("[tool.pyverno.apply.set]\na = 1\n", (1, 1)),
        ("[tool.pyverno.test]\nset = []\n", (0, 0)),
    ],
)
def test_a_key_has_the_place_of_its_statement(text: str, place: tuple[int, int]) -> None:
    """However its table is written."""
    assert Location("a.toml", *place) == toml_place("a.toml", text, _KEY)


def test_a_long_statement_has_no_place() -> None:
    """It is not worth the time."""
    text = "a = [\n" + "1,\n" * 500 + "]\n[tool.pyverno.apply]\nset = []\n"
    assert Location("a.toml") == toml_place("a.toml", text, _KEY)
