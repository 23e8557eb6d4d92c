"""The functions of CEL under the doubling law: every overload of every library, its arguments of every shape.

An overload that calls the host is priced by its calls; it is named in `ASKS_HOST`. A type that no request holds is
made by an expression (`MAKERS`): a new one needs a row there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from random import Random
from typing import Any

from pyverno.compiler.cel.environment import environment_of_kind
from pyverno.lang.cel import types
from pyverno.lang.cel.declarations import Library, Overload
from pyverno.lang.cel.environment import Environment
from pyverno.lang.cel.presets import (
    STANDARD,
    authz_environment,
    kubernetes_environment,
)
from pyverno.lang.cel.scalars import Duration, Timestamp, Uint
from pyverno.lang.cel.types import Type
from pyverno.lang.runtime import Runtime
from pyverno.policy.kinds import POLICY_KINDS, Family
from tests.property.growth import Call, Shape, Subject
from tests.property.growth_inputs import text, text_names, value_shapes

__all__ = ["ASKS_HOST", "MAKERS", "cel_subjects", "macro_names", "overloads"]

ASKS_HOST = frozenset({
    "kyverno.generator", "kyverno.globalcontext", "kyverno.http", "kyverno.imagedata", "kyverno.imageverify",
    "kyverno.resource", "kubernetes.authz", "kubernetes.authzSelectors", "kyverno.random", "kyverno.time",
})  # fmt: skip
"""Libraries whose functions ask the Host: each call is counted and limited."""

MAKERS: Mapping[str, str] = {
    "kubernetes.Semver": "semver({})",
    "kubernetes.Quantity": "quantity({})",
    "kubernetes.URL": "url({})",
    "kubernetes.NamedFormat": "format.dns1123Subdomain()",
    "net.IP": "ip({})",
    "net.CIDR": "cidr({})",
    "kyverno.image": "image({})",
    "json.Json": "json",
    "yaml.Yaml": "yaml",
    "envoy.config.core.v3.HeaderValueOption": "envoy.Header('a', {})",
    "envoy.config.core.v3.QueryParameter": "envoy.QueryParam('a', {})",
    "envoy.service.auth.v3.DeniedHttpResponse": "envoy.Denied(403).WithBody({})",
    "envoy.service.auth.v3.OkHttpResponse": "envoy.Allowed().WithHeader('a', {})",
    "envoy.service.auth.v3.CheckResponse": "envoy.Allowed().Response().WithMessage({})",
    "http.CheckResponseDenied": "http.Denied({})",
    "http.CheckResponseOk": "http.Allowed()",
    "http.CheckRequestAttributes": "object.attributes",
    "object": "object",
    "jwks.Set": "jwks.Fetch({})",
}
"""Expressions that make a value of an opaque type from a text."""

MACROS: Mapping[str, str] = {
    "has": "has(m.k1)",
    "all": "l.all(x, x != 'b')",
    "exists": "l.exists(x, x == 'b')",
    "exists_one": "l.exists_one(x, x == 'b')",
    "existsOne": "l.existsOne(i, x, x == 'b')",
    "map": "l.map(x, [x]).size() > 0",
    "filter": "l.filter(x, x != 'b').size() > 0",
    "transformList": "l.transformList(i, x, [x]).size() > 0",
    "transformMap": "m.transformMap(k, v, [v]).size() > 0",
    "transformMapEntry": "m.transformMapEntry(k, v, {k + 'x': v}).size() > 0",
    "bind": "cel.bind(y, l, y.size() > 0)",
    "optMap": "m[?'k1'].optMap(x, [x]).hasValue()",
    "optFlatMap": "m[?'k1'].optFlatMap(x, optional.of(x)).hasValue()",
    "sortBy": "l.sortBy(x, string(x)).size() > 0",
    "least": "math.least(l.map(x, 1)) > 0",
    "greatest": "math.greatest(l.map(x, 1)) > 0",
    "orValue": "m.k1.orValue('x') == ''",
}
"""An expression for every macro; `l` is a list, `m` a map."""

_OPERATORS = {"_[_]": "{}[{}]", "_[?_]": "{}[?{}]", "@in": "{} in {}", "!_": "!{}", "-_": "-{}"}


def environments() -> tuple[Environment, ...]:
    """Return every environment that a policy may be compiled with, in its newest version."""
    rows = [row for row in POLICY_KINDS if row.family is Family.CEL and not row.namespaced]
    kinds = tuple(environment_of_kind(row.kind) for row in rows)
    others = (kubernetes_environment(mutation=True), authz_environment("Envoy"), authz_environment("HTTP"), STANDARD)
    return (*kinds, *others)


def overloads() -> Iterator[tuple[Environment, Library, str, Overload]]:
    """Yield every overload of every library once, with an environment that has it."""
    seen: set[tuple[str, str, str]] = set()
    for environment in environments():
        for library in environment.libraries:
            for declaration in library.declarations:
                for overload in declaration.overloads:
                    key = (library.name, declaration.name, str(overload.signature))
                    if key not in seen:
                        seen.add(key)
                        yield environment, library, declaration.name, overload


def macro_names() -> frozenset[str]:
    """Return the names of all macros of all environments."""
    return frozenset(key[0] for environment in environments() for key in environment.macros)


def cel_subjects(*, samples: int, seed: int = 11) -> Iterator[Subject]:
    """Yield every overload that does not call the host, and the macros."""
    for environment, library, name, overload in overloads():
        if library.name in ASKS_HOST:
            continue
        title = f"cel {name} {overload.signature}"
        chance = Random(f"{seed}{title}")  # noqa: S311 - shapes, no secret
        yield Subject(title, _shapes(environment, name, overload, samples, chance))
    environment = environments()[0].with_variables(
        {"l": types.list_of(types.DYN), "m": types.map_of(types.STRING, types.DYN)}
    )
    for name, written in MACROS.items():
        yield Subject(f"cel {name}()", dict(_macro_shapes(environment, written)))


def _macro_shapes(environment: Environment, written: str) -> Iterator[tuple[str, Shape]]:
    program = environment.compile(written)
    for (name, make), (other, make_map) in zip(value_shapes("list"), (*value_shapes("map"),) * 5, strict=False):

        def shape(size: int, make: Any = make, make_map: Any = make_map) -> Call:
            bound = {"l": make(size), "m": make_map(size)}
            return lambda budget: program.evaluate(bound, Runtime(budget=budget))

        yield f"{name}, {other}", shape


def _shapes(environment: Environment, name: str, overload: Overload, samples: int, chance: Random) -> dict[str, Shape]:
    signature = overload.signature
    choices = [list(_values(type_)) for type_ in signature.params]
    combinations = []
    for place, options in enumerate(choices):
        for option in options:
            combinations.append(tuple(option if at == place else _short(other) for at, other in enumerate(choices)))
    if len(choices) > 1:
        names = [{each for each, _ in options} for options in choices]
        for each in sorted(set.intersection(*names)):
            combinations.append(tuple(next(o for o in options if o[0] == each) for options in choices))
        combinations += [tuple(chance.choice(options) for options in choices) for _ in range(samples)]
    letters = [f"v{number}" for number in range(len(choices))]
    declared = {letter: _declared(type_) for letter, type_ in zip(letters, signature.params, strict=True)}
    arguments = [_argument(letter, type_) for letter, type_ in zip(letters, signature.params, strict=True)]
    program = environment.with_variables(declared).compile(
        _written(name, arguments, member=signature.member), lenient=True
    )

    def shape_of(makes: list[Callable[[int], Any]]) -> Shape:
        def shape(size: int) -> Call:
            bound = {letter: make(size) for letter, make in zip(letters, makes, strict=True)}
            return lambda budget: program.evaluate(bound, Runtime(budget=budget))

        return shape

    if not combinations:
        return {"nothing": shape_of([])}
    return {", ".join(n for n, _ in each): shape_of([make for _, make in each]) for each in combinations}


def _written(name: str, arguments: list[str], *, member: bool) -> str:
    if name in _OPERATORS:
        return _OPERATORS[name].format(*arguments)
    if name.startswith("_") and name.endswith("_") and not name.startswith("__"):
        return f"{arguments[0]} {name.strip('_')} {arguments[1]}"
    if name in ("math.@max", "math.@min"):
        name = {"math.@max": "math.greatest", "math.@min": "math.least"}[name]
    if name == "@sortByAssociatedKeys":
        return f"{arguments[0]}.sortBy(x, x)"
    if name == "__orValueCompat__":
        return f"{arguments[0]}.orValue({arguments[1]})"
    if member:
        return f"{arguments[0]}.{name}({', '.join(arguments[1:])})"
    return f"{name}({', '.join(arguments)})"


def _short(options: list[tuple[str, Callable[[int], Any]]]) -> tuple[str, Callable[[int], Any]]:
    name, make = options[0]
    return f"short {name}", lambda _: make(16)


def _declared(type_: Type) -> Type:
    if type_.kind in ("opaque", "struct") and type_.name != "optional_type":
        return types.STRING
    return types.DYN if type_.kind in ("param", "any", "list", "map", "opaque") else type_


def _argument(letter: str, type_: Type) -> str:
    if type_.kind in ("opaque", "struct"):
        if type_.name == "optional_type":
            return f"optional.of({letter})"
        return MAKERS[type_.name].format(letter)
    if type_.kind == "list" and type_.params[0].name == "optional_type":
        return f"{letter}.map(e, optional.of(e))"
    return letter


def _values(type_: Type) -> Iterator[tuple[str, Callable[[int], Any]]]:
    match type_.kind:
        case "string" | "opaque" | "struct":
            yield from value_shapes("text")
        case "bytes":
            for name in text_names():
                yield f"text {name}", lambda size, name=name: text(name, size).encode()  # type: ignore[misc]
            yield "zeros", bytes
        case "list":
            yield from _lists(type_.params[0])
        case "map":
            yield from value_shapes("map")
        case "int":
            yield "small number", lambda _: 3
            yield "number", lambda size: size
            yield "negative number", lambda size: -size
        case "uint":
            yield "number", Uint
        case "double":
            yield "number", float
        case "bool":
            yield "true", lambda _: True
        case "duration":
            yield "duration", Duration
        case "timestamp":
            yield "timestamp", Timestamp
        case "type":
            yield "number", lambda size: size
        case _:
            yield from value_shapes("any")


_ITEMS: Mapping[str, Callable[[int], Any]] = {
    "int": lambda number: number * 7919 % 10_007,
    "uint": lambda number: Uint(number * 7919 % 10_007),
    "double": lambda number: number * 0.37,
    "string": lambda number: f"t{number * 7919 % 100_003}",
    "bytes": lambda number: b"t%d" % number,
    "bool": lambda number: number % 2 == 0,
    "duration": lambda number: Duration(number * 7919 % 10_007),
    "timestamp": lambda number: Timestamp(number * 7919 % 10_007),
}


def _lists(element: Type) -> Iterator[tuple[str, Callable[[int], Any]]]:
    item = _ITEMS.get(element.kind)
    if item is None:
        yield from value_shapes("list")
        return
    yield "different", lambda size: [item(number) for number in range(size // 8)]
    yield "equal", lambda size: [item(1)] * (size // 8)
    yield "sorted", lambda size: sorted(item(number) for number in range(size // 8))
    if element.kind == "string":
        yield "long", lambda size: ["a" * (size // 2), "a" * (size // 2) + "b"]
        yield "questions", lambda size: ["?" * 60 + "*" for _ in range(size // 65)]
