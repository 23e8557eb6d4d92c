"""Claims about generated source."""

import ast
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

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
    """Text cannot slip in as a number."""
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
    """The whole package has one compile, here, and no exec: a module of generated source is never run."""
    root = Path(pyverno.__file__).parent
    found = []
    for path in sorted(root.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            is_call = isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
            if is_call and node.func.id in {"exec", "eval", "compile", "__import__"}:
                found.append((path, node.func.id))
    here = Path(codegen.__file__)
    assert sorted(found) == [(here, "compile")]


def _lookup(key: str, lines: int = 0) -> Callable[..., Any]:
    source = Source(arguments=1)
    for _ in range(lines):
        source.line(0, "v0")
    source.line(0, "return v{}[c{}]", 0, source.constant(key))
    return source.build()


@pytest.mark.parametrize("lines", [0, 10_000])
def test_functions_of_equal_source_share_their_code(lines: int) -> None:
    """Short source is compiled once; the constants stay those of each function."""
    first, second = _lookup("a", lines), _lookup("b", lines)
    found = first({"a": 1, "b": 2}), second({"a": 1, "b": 2})
    assert found == (1, 2)
    assert (first.__code__ is second.__code__) is (lines == 0)


def test_functions_share_the_cells_of_short_texts_only() -> None:
    """Equal values of different types, and long texts, have a cell of their own."""
    short, same, long, longer = _lookup("key"), _lookup("key"), _lookup("k" * 65), _lookup("k" * 65)
    cells = [(function.__closure__ or ())[0] for function in (short, same, long, longer)]
    assert cells[0] is cells[1]
    assert cells[2] is not cells[3]


@pytest.mark.parametrize("lines", range(40))
def test_an_exception_in_generated_code_has_a_line(lines: int) -> None:
    """Whatever the length of the function, its table of lines is whole."""
    function = _lookup("a", lines)
    with pytest.raises(KeyError) as raised:
        function({})
    assert raised.traceback[-1].lineno == 2
    code = function.__code__
    assert [(0, len(code.co_code))] == _merged(code.co_lines())


def _merged(ranges: Iterable[tuple[int, int, int | None]]) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for start, end, line in ranges:
        assert line == 3
        found[-1:] = [(found[-1][0], end)] if found and found[-1][1] == start else [*found[-1:], (start, end)]
    return found


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
