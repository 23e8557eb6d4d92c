"""Literals that cannot be what their function needs do not compile."""

import pytest

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


@pytest.mark.parametrize("text", ["int(x) == 1", "double('1_0') == 10.0", "'a'.find(x) == ''", "int('7') == x"])
def test_what_may_be_converted_compiles(text: str) -> None:
    """Only literals are checked, and only those that fail are errors."""
    assert str(ENVIRONMENT.compile(text).type) == "bool"


def test_plain_cel_converts_when_it_runs() -> None:
    """The checks are Kubernetes' own: in plain CEL the error may be absorbed."""
    assert STANDARD.compile("true || int('x') == 1").evaluate({}) is True
