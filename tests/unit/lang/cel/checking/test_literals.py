"""Literals that cannot be what their function needs do not compile."""

import pytest

from pyverno.compiler.cel.environment import environment_of_kind
from pyverno.lang.cel import STANDARD
from pyverno.lang.cel.presets import kyverno_environment
from pyverno.lang.cel.syntax.source import CompileError
from pyverno.lang.cel.types import DYN

ENVIRONMENT = kyverno_environment(()).with_variables({"x": DYN})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("duration('x') == x", "invalid duration argument"),
        ("timestamp('x') == x", "invalid timestamp argument"),
        ("'a'.matches('[')", "invalid matches argument"),
        ("'a'.find('[') == x", "invalid find argument"),
        ("'a'.findAll('(', 2) == x", "invalid findAll argument"),
        ("int('x') == x", "type conversion error from 'string' to 'int'"),
        ("double('1e400') == x", "type conversion error from 'string' to 'double'"),
        ("uint(-1) == x", "unsigned integer overflow"),
        ("bool('maybe') == x", "type conversion error from 'string' to 'bool'"),
    ],
)
def test_a_literal_that_cannot_be_converted_does_not_compile(text: str, expected: str) -> None:
    """A conversion that fails in every run is a compile error, as in cel-go."""
    with pytest.raises(CompileError) as error:
        ENVIRONMENT.compile(text)
    assert [issue.message for issue in error.value.issues] == [expected]


@pytest.mark.parametrize(
    ("text", "column", "expected"),
    [
        ("'%s'.format([]) == x", 12, "index 0 out of range"),
        ("'%s'.format(['a', 'b']) == x", 12, "too many arguments supplied to string.format (expected 1, got 2)"),
        ("'%'.format([]) == x", 11, "unexpected end of string"),
        ("'%5s'.format(['a']) == x", 13, 'could not parse formatting clause: unrecognized formatting clause "5"'),
        (
            "'%d'.format(['a']) == x",
            14,
            "error during formatting: decimal clause can only be used on integers, was given string",
        ),
        (
            "'%X'.format([duration('1s')]) == x",
            22,
            "error during formatting: only integers, byte buffers, and strings can be formatted as hex, was given "
            "google.protobuf.Duration",
        ),
        (
            "'%s'.format([[1, quantity('1')]]) == x",
            26,
            "error during formatting: string clause can only be used on strings, bools, bytes, ints, doubles, maps, "
            "lists, types, durations, and timestamps, was given kubernetes.Quantity",
        ),
    ],
)
@pytest.mark.parametrize("kind", ["ValidatingPolicy", "GeneratingPolicy"])
def test_a_format_call_that_cannot_succeed_does_not_compile(text: str, column: int, expected: str, kind: str) -> None:
    """Clauses are compared with the types of the values when both are literals, in every kind of policy."""
    with pytest.raises(CompileError) as error:
        environment_of_kind(kind).with_variables({"x": DYN}).compile(text)
    assert [(column - 1, expected)] == [(issue.offset, issue.message) for issue in error.value.issues]


@pytest.mark.parametrize("text", ["x.format([]) == ''", "'%s'.format(x) == ''", "'%d'.format([x]) == ''"])
def test_a_format_call_with_unknown_parts_compiles(text: str) -> None:
    """A text, list or value that only a run knows is checked in the run."""
    assert str(ENVIRONMENT.compile(text).type) == "bool"


@pytest.mark.parametrize("text", ["int(x) == 1", "double('1_0') == 10.0", "'a'.find(x) == ''", "int('7') == x"])
def test_what_may_be_converted_compiles(text: str) -> None:
    """Only literals are checked, and only those that fail are errors."""
    assert str(ENVIRONMENT.compile(text).type) == "bool"


def test_plain_cel_converts_when_it_runs() -> None:
    """The checks are Kubernetes' own: in plain CEL the error may be absorbed."""
    assert STANDARD.compile("true || int('x') == 1").evaluate({}) is True
