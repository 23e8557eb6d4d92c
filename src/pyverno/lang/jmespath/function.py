"""What a JMESPath function is: name, signature, note, implementation, and the check of its arguments.

Each function is one registration: a decorated Python function whose docstring explains it and shows examples, each a
line ``>>> expression`` followed by its result as JSON (or by ``error: text``). This module must never know a
particular function (see `functions`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from pyverno.errors import EvaluationError
from pyverno.kube.json import JSON, go_text, is_number
from pyverno.lang.jmespath.values import ExpRef, whole
from pyverno.lang.runtime import Runtime
from pyverno.value import dataclass

__all__ = [
    "ANY",
    "ARRAY",
    "ARRAY_OF_NUMBERS",
    "ARRAY_OF_STRINGS",
    "BOOL",
    "EXPREF",
    "NUMBER",
    "OBJECT",
    "STRING",
    "Function",
    "failure",
    "function",
]

NUMBER: Final = "number"
STRING: Final = "string"
ARRAY: Final = "array"
OBJECT: Final = "object"
ARRAY_OF_NUMBERS: Final = "array[number]"
ARRAY_OF_STRINGS: Final = "array[string]"
EXPREF: Final = "expref"
ANY: Final = "any"
BOOL: Final = "bool"

Parameter = tuple[str, ...]
"""The types that one argument may have."""

_IS_TYPE: Final[dict[str, Callable[[JSON], bool]]] = {
    NUMBER: is_number,
    STRING: lambda value: isinstance(value, str),
    ARRAY: lambda value: isinstance(value, list),
    OBJECT: lambda value: isinstance(value, dict),
    ARRAY_OF_NUMBERS: lambda value: isinstance(value, list) and all(map(is_number, value)),
    ARRAY_OF_STRINGS: lambda value: isinstance(value, list) and all(isinstance(item, str) for item in value),
    EXPREF: lambda value: isinstance(value, ExpRef),
    ANY: lambda value: not isinstance(value, ExpRef),
}

# How Kyverno's own checks name a type, where they differ from the type's name (Go's kinds).
_SHOWN: Final[dict[Parameter, str]] = {
    (STRING,): "string",
    (NUMBER,): "float64",
    (ARRAY,): "Array",
    (OBJECT,): "Object",
    (OBJECT, ARRAY): "Object or Array",
    (STRING, NUMBER): "String or Real",
}
_MAX_SHOWN: Final = 4096


@dataclass(frozen=True, slots=True, eq=False)
class Function:
    """One function of the dialect.

    `parameters` are the accepted types per argument; the last one repeats when `variadic`. `note` is the one line
    that `jp function` prints; `standard` tells JMESPath's own functions from Kyverno's. `implementation` takes the
    runtime and the checked arguments.
    """

    name: str
    parameters: tuple[Parameter, ...]
    returns: str
    note: str
    implementation: Callable[..., JSON]
    variadic: bool = False
    standard: bool = False

    @property
    def signature(self) -> str:
        """The signature as `jp function` prints it, such as ``split(string, string) array[string]``."""
        arguments = ", ".join("|".join(types) for types in self.parameters)
        return f"{self.name}({arguments}) {self.returns}"

    @property
    def documentation(self) -> str:
        """The docstring, without its indentation."""
        import inspect  # for references and help only

        return inspect.getdoc(self.implementation) or ""

    @property
    def examples(self) -> tuple[tuple[str, str], ...]:
        """The examples of the docstring: pairs of an expression and its result as JSON or ``error: text``."""
        lines = self.documentation.splitlines()
        return tuple(
            (line.removeprefix(">>> "), lines[number + 1])
            for number, line in enumerate(lines)
            if line.startswith(">>> ")
        )

    def check(self, arguments: list[JSON]) -> list[JSON]:
        """Return the arguments that the implementation takes; raises EvaluationError with the fork's texts.

        Functions without parameters ignore whatever they are given. A variadic function checks its arguments itself.
        """
        parameters = self.parameters
        if not parameters:
            return []
        if self.variadic:
            if len(arguments) < len(parameters):
                raise EvaluationError("Invalid arity.")
            parameters = parameters * len(arguments)
        elif len(arguments) != len(parameters):
            raise EvaluationError("incorrect number of args")
        is_lazy = False
        for types, argument in zip(parameters, arguments, strict=False):
            for name in types:
                if _IS_TYPE[name](argument):
                    break
            else:
                raise EvaluationError(_wrong_type(types, argument))
            is_lazy = is_lazy or (isinstance(argument, dict) and argument.__class__ is not dict)
        return [whole(argument) for argument in arguments] if is_lazy else arguments

    def apply(self, arguments: list[JSON], runtime: Runtime) -> JSON:
        """Call the function from outside of an expression; type errors name the function and the argument.

        Raises EvaluationError, and whatever the implementation asks of the runtime may raise.
        """
        for number, types in enumerate(self.parameters if not self.variadic else (), start=1):
            if number > len(arguments):
                raise failure(self.name, f"{number} argument is out of bounds ({len(arguments)})")
            if not any(_IS_TYPE[name](arguments[number - 1]) for name in types):
                raise failure(self.name, f"argument #{number} is not of type {_SHOWN.get(types, ' or '.join(types))}")
        return self.implementation(runtime, *self.check(arguments))


def function(
    name: str,
    *parameters: str | Parameter,
    returns: str,
    note: str = "",
    variadic: bool = False,
    standard: bool = False,
) -> Callable[[Callable[..., JSON]], Function]:
    """Make a `Function` of the Python function below, whose docstring documents it."""
    types = tuple((parameter,) if isinstance(parameter, str) else parameter for parameter in parameters)

    def register(implementation: Callable[..., Any]) -> Function:
        return Function(name, types, returns, note, implementation, variadic=variadic, standard=standard)

    return register


def failure(name: str, message: str) -> EvaluationError:
    """Return the error of a function of Kyverno's, with the prefix that all of them carry.

    >>> failure("sum", "Types mismatch").message
    "JMESPath function 'sum': Types mismatch"
    """
    return EvaluationError(f"JMESPath function '{name}': {message}")


def _wrong_type(types: Parameter, argument: JSON) -> str:
    if isinstance(argument, ExpRef):
        shown = "an expression reference"
    elif isinstance(argument, list | dict) and _is_large(argument):
        shown = "[...]" if isinstance(argument, list) else "map[...]"
    else:
        shown = go_text(argument)
    if len(shown) > _MAX_SHOWN:
        shown = shown[:_MAX_SHOWN] + "..."
    expected = ", ".join(f'"{name}"' for name in types)
    return f"Invalid type for: {shown}, expected: []jmespath.JpType{{{expected}}}"


def _is_large(value: JSON) -> bool:
    """Tell whether a value is too large to be shown in a message (values may share structure: stop early)."""
    todo, nodes = [value], 0
    while todo:
        current = todo.pop()
        nodes += 1
        if isinstance(current, list):
            todo.extend(current[:_MAX_SHOWN])
        elif isinstance(current, dict):
            todo.extend(list(current.values())[:_MAX_SHOWN])
        if nodes + len(todo) > _MAX_SHOWN:
            return True
    return False
