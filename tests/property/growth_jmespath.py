"""The functions of JMESPath under the doubling law: each called by an expression, its arguments of every shape."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from pyverno.kube.json import JSON
from pyverno.lang.jmespath import FUNCTIONS, compile_expression
from pyverno.lang.jmespath.function import Function
from pyverno.lang.runtime import Runtime
from tests.property.growth import Call, Shape, Subject
from tests.property.growth_inputs import value_shapes

__all__ = ["jmespath_subjects"]

_KINDS = {
    "string": "text", "number": "number", "array": "list", "object": "map", "array[number]": "list",
    "array[string]": "list", "any": "any", "bool": "bool",
}  # fmt: skip
_EXPRESSIONS = ("&@", "&name", "&to_string(@)", "&length(to_string(@))")
_OPERATORS = {
    "flatten": "a[].b", "flatten twice": "a[][]", "wildcard": "a.*", "list wildcard": "a[*].name", "slice": "a[::2]",
    "reverse slice": "a[::-1]", "filter": "a[?name=='n1']", "filter text": "a[?contains(@, 'b')]", "equal": "a == a",
    "not equal": "a != b", "equal to a copy": "a == b", "less": "a < b", "or": "a || b", "pipe": "a | [*] | [*] | @",
    "multi": "{x: a, y: b}", "list": "[a, b]", "index": "a[-1]", "projection in projection": "a[*].[@, @]",
    "deep compare": "a[?@ == `1`]", "compare all": "a[?@ != 'x']", "map": "map(&[@], a)",
}  # fmt: skip


class _FixedHost:
    def now(self) -> int:
        return 1_700_000_000_000_000_000

    def random_bits(self, bits: int) -> int:
        return (1 << bits) // 3

    def lookup_host(self, name: str) -> tuple[str, ...]:
        return ("192.0.2.1",)


_HOST = _FixedHost()


def jmespath_subjects(*, samples: int, seed: int = 11) -> Iterator[Subject]:
    """Yield every function of the registry with so many combinations of shapes, and the operators."""
    for name in FUNCTIONS:
        chance = Random(f"{seed}{name}")  # noqa: S311 - shapes, no secret
        yield Subject(f"jmespath {name}()", _shapes(FUNCTIONS[name], samples, chance))
    values = list(value_shapes("any"))
    for name, written in _OPERATORS.items():
        yield Subject(f"jmespath {name}", {value: _call(written, (make, make)) for value, make in values})


def _shapes(function: Function, samples: int, chance: Random) -> dict[str, Shape]:
    parameters = function.parameters * (2 if function.variadic else 1)
    letters = "abcdef"[: len(parameters)]
    choices = []
    for types in parameters:
        if types == ("expref",):
            choices.append([(text, None) for text in _EXPRESSIONS])
        else:
            choices.append([shape for type_ in types for shape in value_shapes(_KINDS[type_])])
    # equal shapes of all arguments and one that grows among short ones come first, then what chance gives
    combinations = []
    for place, options in enumerate(choices):
        for option in options:
            combinations.append(tuple(option if at == place else _short(other) for at, other in enumerate(choices)))
    if len(choices) > 1:
        shared = set.intersection(*({name for name, _ in options} for options in choices))
        combinations += [
            tuple(next(o for o in options if o[0] == name) for options in choices) for name in sorted(shared)
        ]
        combinations += [tuple(chance.choice(options) for options in choices) for _ in range(samples)]
    found: dict[str, Shape] = {}
    for combination in combinations:
        names = [f"@.{letter}" if make else name for letter, (name, make) in zip(letters, combination, strict=True)]
        written = f"{function.name}({', '.join(names)})"
        found[", ".join(name for name, _ in combination)] = _call(written, [make for _, make in combination])
    if not combinations:
        found["nothing"] = _call(f"{function.name}()", [])
    return found


def _short(options):
    name, make = options[0]
    return (name, None) if make is None else (f"short {name}", lambda _: make(16))


def _call(written: str, makes) -> Shape:
    expression = compile_expression(written)

    def shape(size: int) -> Call:
        data: JSON = {letter: make(size) for letter, make in zip("abcdef", makes, strict=False) if make}
        return lambda budget: expression.evaluate(data, Runtime(_HOST, budget))

    return shape
