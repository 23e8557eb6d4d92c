"""Claims about generated source."""

import ast
from pathlib import Path

import pytest

import pyverno
from pyverno.lang import codegen
from pyverno.lang.codegen import MAX_INDENT, MAX_LINES, Source


def test_a_function_sees_its_constants() -> None:
    """Constants are values, never text; equal texts share an index, equal numbers do not."""
    source = Source(arguments=2)
    assert [source.constant("a"), source.constant("a"), source.constant(1), source.constant(True)] == [0, 0, 1, 2]
    fresh = source.variable()
    source.line(0, "v{} = c{} in v{}", fresh, 0, 1)
    source.line(0, "return v{} and v{}", fresh, 0)
    assert source.build()(7, ["a"]) == 7


@pytest.mark.parametrize("number", ["1", 1.0, True, None])
def test_nothing_but_integers_enters_a_line(number: object) -> None:
    """Text can not slip in as a number."""
    with pytest.raises(TypeError):
        Source(arguments=1).line(0, "return c{}", number)  # type: ignore[arg-type]  # the point of the test


@pytest.mark.parametrize("template", ["return 'a'", 'return "a"', "return v0\\", "return v0 # x", "a;b", "a@b", "é"])
def test_characters_that_no_template_needs_are_refused(template: str) -> None:
    """Quotes, comments and the like never reach the compiler."""
    source = Source(arguments=1)
    source.line(0, template)
    with pytest.raises(ValueError, match="no template needs"):
        source.build()


def test_a_function_can_not_grow_without_end() -> None:
    """Indentation and length have limits."""
    source = Source(arguments=1)
    with pytest.raises(ValueError, match="too large"):
        source.line(MAX_INDENT + 1, "return v0")
    for _ in range(MAX_LINES):
        source.line(0, "return v0")
    assert source.size == MAX_LINES
    with pytest.raises(ValueError, match="too large"):
        source.line(0, "return v0")


def test_generated_code_has_no_dangerous_builtins() -> None:
    """Neither imports nor files nor evaluation are within reach."""
    source = Source(arguments=1)
    source.line(0, "return open(v0)")
    with pytest.raises(NameError):
        source.build()("/dev/null")


def test_source_is_compiled_in_one_place_only() -> None:
    """The whole package has one exec and one compile, here."""
    root = Path(pyverno.__file__).parent
    found = []
    for path in sorted(root.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            is_call = isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
            if is_call and node.func.id in {"exec", "eval", "compile", "__import__"}:
                found.append((path, node.func.id))
    here = Path(codegen.__file__)
    assert sorted(found) == [(here, "compile"), (here, "exec")]


def test_a_number_may_become_known_after_it_was_written() -> None:
    """A constant that was kept as None gets its value before the function is built."""
    source = Source(arguments=0)
    number = source.constant(None)
    source.line(0, "return c{}", number)
    source.settle(number, 7)
    assert source.build()() == 7


def test_a_line_can_come_before_all_others() -> None:
    """It obeys the rules of every line."""
    source = Source(arguments=0)
    name = source.variable()
    source.line(0, "return v{}", name)
    source.first("v{} = c{}", name, source.constant("a"))
    assert source.build()() == "a"
    with pytest.raises(TypeError):
        source.first("v{} = 1", "x")  # type: ignore[arg-type]
