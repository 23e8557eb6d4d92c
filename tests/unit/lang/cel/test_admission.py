"""The types of admission variables."""

import pytest

from pyverno.errors import EvaluationError
from pyverno.lang.cel import CompileError
from pyverno.lang.cel.admission import ADMISSION_TYPES, NAMESPACE, REQUEST
from pyverno.lang.cel.presets import kubernetes_environment
from pyverno.lang.cel.structs import DeclaredTypes, StructTypes
from pyverno.lang.cel.types import INT, struct

ENVIRONMENT = (
    kubernetes_environment()
    .with_structs(StructTypes((ADMISSION_TYPES, DeclaredTypes({"variables": {"x": INT}}))))
    .with_variables({"request": REQUEST, "namespaceObject": NAMESPACE, "variables": struct("variables")})
)


def test_requests_have_their_fields() -> None:
    """Known fields compile with their types and read plain maps; unknown ones do not compile."""
    program = ENVIRONMENT.compile("request.userInfo.groups.exists(g, g == 'a') && request.operation == 'CREATE'")
    assert program.evaluate({"request": {"userInfo": {"groups": ["a"]}, "operation": "CREATE"}}) is True
    with pytest.raises(CompileError, match="undefined field 'user'"):
        ENVIRONMENT.compile("request.user == 'a'")


def test_variables_are_known_by_name() -> None:
    """A variable that is not declared is an undefined field."""
    assert str(ENVIRONMENT.check("variables.x").type) == "int"
    with pytest.raises(CompileError, match="undefined field 'y'"):
        ENVIRONMENT.check("variables.y")


@pytest.mark.parametrize(
    "text",
    [
        "namespaceObject.metadata.creationTimestamp.getFullYear() == 2020",
        "request.name.startsWith('a')",
        "request.userInfo.groups.join(',') == 'a'",
        "variables.x + 1 == 2",
        "variables.x < 2",
        "request.dryRun && true",
        "request.name + 'a' == 'a'",
    ],
)
def test_data_that_breaks_its_declared_type_is_a_clean_error(text: str) -> None:
    """Types of variables are promises; values that break them give EvaluationErrors, nothing else."""
    broken = {
        "request": {"name": 1, "userInfo": {"groups": {"a": 1}}, "dryRun": "x"},
        "namespaceObject": {"metadata": {"creationTimestamp": "2020-01-01T00:00:00Z"}},
        "variables": {"x": "text"},
    }
    with pytest.raises(EvaluationError):
        ENVIRONMENT.compile(text).evaluate(broken)
