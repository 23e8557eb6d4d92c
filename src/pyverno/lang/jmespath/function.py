"""A JMESPath function: name, signature, note, implementation, and the check of its arguments.

Each function is one registration: a decorated Python function whose docstring explains it and shows examples, each a
line ``>>> expression`` followed by its result as JSON (or by ``error: text``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

from pyverno.errors import EvaluationError, NullArgumentError
from pyverno.kube.json import JSON, go_text, is_number
from pyverno.lang.jmespath.cost import ITEM, Cost
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
    "describe",
    "failure",
    "function",
    "unreadable",
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

Call: TypeAlias = Callable[[list[JSON], Runtime], JSON]
"""A function as expressions call it: arguments and runtime to the result."""

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

_PLAIN: Final[dict[str, frozenset[type]]] = {
    NUMBER: frozenset({int, float}),
    STRING: frozenset({str}),
    ARRAY: frozenset({list}),
    OBJECT: frozenset({dict}),
    ANY: frozenset({str, int, float, bool, type(None), list, dict}),
}
"""Classes whose values have a type for certain and load nothing lazily; other values need `Function.check`."""

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
    that `jp function` prints; `standard` marks JMESPath's own functions. `cost` is what a call is
    charged before anything looks at its arguments. `implementation` takes the runtime and the checked arguments.
    """

    name: str
    parameters: tuple[Parameter, ...]
    returns: str
    note: str
    implementation: Callable[..., JSON]
    cost: Cost
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

    def call(self, arguments: list[JSON], runtime: Runtime) -> JSON:
        """Charge the call, check its arguments, and make it."""
        self.cost.charge(self.name, arguments, runtime.budget)
        return self.implementation(runtime, *self.check(arguments))

    def caller(self, count: int) -> Call:
        """Return `call` for that many arguments; arguments of the usual classes are checked by one look-up each.

        >>> from pyverno.lang.runtime import Runtime
        >>> @function("shout", STRING, returns=STRING, cost=Cost())
        ... def shout(_runtime, text):
        ...     return text.upper()
        >>> shout.caller(1)(["a"], Runtime())
        'A'
        """
        if self.variadic or not count or count != len(self.parameters):
            return self.call
        plain = tuple(frozenset().union(*(_PLAIN.get(name, ()) for name in types)) for types in self.parameters)
        implementation, with_care = self.implementation, self.call
        per_step = 0 if self.cost.most or self.cost.copies else self.cost.per_step
        if not per_step:
            return with_care

        def call(arguments: list[JSON], runtime: Runtime) -> JSON:
            weight = 0
            for argument, classes in zip(arguments, plain, strict=True):
                kind = argument.__class__
                if kind not in classes:
                    return with_care(arguments, runtime)
                if kind is str:
                    weight += len(argument)
                elif kind is list or kind is dict:
                    weight += ITEM * len(argument)
            runtime.budget.charge_steps(1 + weight // per_step)
            return implementation(runtime, *arguments)

        return call

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
        for number, (types, argument) in enumerate(zip(parameters, arguments, strict=False), start=1):
            for name in types:
                if _IS_TYPE[name](argument):
                    break
            else:
                raise _wrong_type(self.name, number, types, argument)
            is_lazy = is_lazy or (isinstance(argument, dict) and argument.__class__ is not dict)
        return [whole(argument) for argument in arguments] if is_lazy else arguments

    def apply(self, arguments: list[JSON], runtime: Runtime) -> JSON:
        """Call the function from outside of an expression; type errors name the function and the argument.

        Raises EvaluationError, and the errors of what the implementation reads from the runtime.
        """
        for number, types in enumerate(self.parameters if not self.variadic else (), start=1):
            if number > len(arguments):
                raise failure(self.name, f"{number} argument is out of bounds ({len(arguments)})")
            if not any(_IS_TYPE[name](arguments[number - 1]) for name in types):
                raise failure(self.name, f"argument #{number} is not of type {_SHOWN.get(types, ' or '.join(types))}")
        return self.call(arguments, runtime)


def function(
    name: str,
    *parameters: str | Parameter,
    returns: str,
    cost: Cost,
    note: str = "",
    variadic: bool = False,
    standard: bool = False,
) -> Callable[[Callable[..., JSON]], Function]:
    """Make a `Function` of the Python function below, whose docstring documents it."""
    types = tuple((parameter,) if isinstance(parameter, str) else parameter for parameter in parameters)

    def register(implementation: Callable[..., Any]) -> Function:
        return Function(name, types, returns, note, implementation, cost, variadic=variadic, standard=standard)

    return register


def failure(name: str, message: str, *, detailed: str = "") -> EvaluationError:
    """Return the error of a function of Kyverno's, with the prefix that all of them carry.

    `message` must not hold an argument; `detailed` may (see `EvaluationError`).

    >>> failure("sum", "Types mismatch").message
    "JMESPath function 'sum': Types mismatch"
    """
    prefix = f"JMESPath function '{name}': "
    return EvaluationError(prefix + message, detailed=prefix + detailed if detailed else "")


def unreadable(name: str, number: int, argument: JSON, what: str, detailed: str = "") -> EvaluationError:
    """Return the error that an argument cannot be read as something, in words that do not show it.

    `detailed` is Kyverno's text, in full.

    >>> unreadable("time_utc", 1, "5 o'clock", "a time").message
    "JMESPath function 'time_utc': argument #1 (a string of 9 characters) is not a time"
    """
    text = f"JMESPath function '{name}': argument #{number} ({describe(argument)}) is not {what}"
    return EvaluationError(text, detailed=detailed)


def describe(value: JSON) -> str:
    """Return the type and size of a value, for errors that must not show the value itself.

    >>> describe("secret"), describe([1, 2]), describe(None)
    ('a string of 6 characters', 'an array of 2 items', 'null')
    """
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case str():
            return f"a string of {len(value)} characters"
        case list():
            return f"an array of {len(value)} items"
        case dict():
            return f"an object of {len(value)} keys"
        case ExpRef():
            return "an expression reference"
    return "a number"


def _wrong_type(function: str, number: int, types: Parameter, argument: JSON) -> EvaluationError:
    if isinstance(argument, ExpRef):
        shown = "an expression reference"
    elif isinstance(argument, list | dict) and _is_large(argument):
        shown = "[...]" if isinstance(argument, list) else "map[...]"
    else:
        shown = go_text(argument)
    if len(shown) > _MAX_SHOWN:
        shown = shown[:_MAX_SHOWN] + "..."
    expected = ", ".join(f'"{name}"' for name in types)
    if argument is None:
        return NullArgumentError(f"Invalid type for: <nil>, expected: []jmespath.JpType{{{expected}}}")
    tail = f", expected: []jmespath.JpType{{{expected}}}"
    return EvaluationError(
        f"Invalid type for: argument #{number} of '{function}' ({describe(argument)}){tail}",
        detailed=f"Invalid type for: {shown}{tail}",
    )


def _is_large(value: JSON) -> bool:
    """Return whether a value is too large to be shown in a message (values may share structure: stop early)."""
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
