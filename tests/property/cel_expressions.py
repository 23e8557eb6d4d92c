"""Random CEL expressions, mostly well typed, with some that are not; the same for the same seed."""

from __future__ import annotations

from random import Random
from typing import Any

__all__ = ["VARIABLES", "Expressions", "bindings"]

VARIABLES = {"i": "int", "d": "double", "s": "string", "b": "bool", "l": "list", "m": "map", "x": "dyn"}
_TEXTS = ("''", "'a'", "'abc'", "'b'", "'A b'", "'é'", "'10'", "'-3'", "'true'", "'1.5'", "'^a.c$'", "'2s'")
_INTS = ("0", "1", "2", "-1", "7", "9223372036854775807", "-9223372036854775808", "3")
_DOUBLES = ("0.0", "1.5", "-2.0", "1e300", "3.0")
_KEYS = ("a", "b", "c", "n")


def bindings(random: Random) -> dict[str, Any]:
    """Return values for the variables of `VARIABLES`."""

    def scalar() -> Any:
        return random.choice([0, 1, -5, 2.5, "a", "abc", "", True, False, None])

    def value(depth: int) -> Any:
        kind = random.randrange(5)
        if depth == 0 or kind < 2:
            return scalar()
        if kind == 2:
            return [value(depth - 1) for _ in range(random.randrange(4))]
        return {key: value(depth - 1) for key in random.sample(_KEYS, random.randrange(4))}

    return {
        "i": random.choice([0, 1, 2, -3, 40]),
        "d": random.choice([0.0, 1.0, -2.5, 1e10]),
        "s": random.choice(["", "a", "abc", "a b", "Abé"]),
        "b": random.random() < 0.5,
        "l": [value(1) for _ in range(random.randrange(4))],
        "m": {key: value(2) for key in random.sample(_KEYS, random.randrange(4))},
        "x": {key: value(3) for key in _KEYS if random.random() < 0.8},
    }


class Expressions:
    """Makes expressions of a wanted type; now and then of another one."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._names: list[str] = []

    def make(self, kind: str = "bool", depth: int = 4) -> str:
        """Return an expression of a type: bool, int, double, string, list, map or dyn."""
        if self._random.random() < 0.02:
            kind = self._random.choice(("bool", "int", "double", "string", "list", "map", "dyn"))
        if depth <= 0:
            return self._leaf(kind)
        return str(getattr(self, f"_{kind}")(depth - 1))

    def _leaf(self, kind: str) -> str:
        choose = self._random.choice
        variable = next(name for name, type_ in VARIABLES.items() if type_ == kind)
        if self._names and self._random.random() < 0.4:
            return choose(self._names)
        if self._random.random() < 0.4:
            return variable
        return {
            "bool": lambda: choose(("true", "false")),
            "int": lambda: choose(_INTS),
            "double": lambda: choose(_DOUBLES),
            "string": lambda: choose(_TEXTS),
            "list": lambda: choose(("[]", "[1, 2, 3]", "['a', 'b']", "[1]")),
            "map": lambda: choose(("{}", "{'a': 1}", "{'a': 'x', 'b': 'y'}")),
            "dyn": lambda: f"x.{choose(_KEYS)}",
        }[kind]()

    def _bool(self, depth: int) -> str:
        make, choose = self.make, self._random.choice
        operand = choose(("int", "double", "string", "dyn"))
        forms = (
            lambda: f"({make('bool', depth)} && {make('bool', depth)})",
            lambda: f"({make('bool', depth)} || {make('bool', depth)})",
            lambda: f"!{self._parenthesised('bool', depth)}",
            lambda: f"({make(operand, depth)} {choose(('==', '!='))} {make(operand, depth)})",
            lambda: f"({make(operand, depth)} {choose(('<', '<=', '>', '>='))} {make(operand, depth)})",
            lambda: f"({make('dyn', depth)} == {make(operand, depth)})",
            lambda: f"({make(choose(('int', 'string', 'dyn')), depth)} in {make('list', depth)})",
            lambda: f"({make('string', depth)} in {make('map', depth)})",
            lambda: f"{self._parenthesised('string', depth)}.{self._text_test()}({make('string', depth)})",
            lambda: f"has({choose(('x', 'm'))}.{choose(_KEYS)})",
            lambda: f"has(x.{choose(_KEYS)}.{choose(_KEYS)})",
            lambda: self._loop(choose(("all", "exists", "exists_one")), depth, "bool"),
            lambda: self._ternary("bool", depth),
        )
        return str(choose(forms)())

    def _text_test(self) -> str:
        return self._random.choice(("startsWith", "endsWith", "contains"))

    def _int(self, depth: int) -> str:
        make, choose = self.make, self._random.choice
        forms = (
            lambda: f"({make('int', depth)} {choose('+-*/%')} {make('int', depth)})",
            lambda: f"-{self._parenthesised('int', depth)}",
            lambda: f"size({make(choose(('string', 'list', 'map')), depth)})",
            lambda: f"int({make(choose(('double', 'string', 'int')), depth)})",
            lambda: self._ternary("int", depth),
        )
        return str(choose(forms)())

    def _double(self, depth: int) -> str:
        make, choose = self.make, self._random.choice
        forms = (
            lambda: f"({make('double', depth)} {choose('+-*/')} {make('double', depth)})",
            lambda: f"double({make(choose(('int', 'string')), depth)})",
            lambda: self._ternary("double", depth),
        )
        return str(choose(forms)())

    def _string(self, depth: int) -> str:
        make, choose = self.make, self._random.choice
        forms = (
            lambda: f"({make('string', depth)} + {make('string', depth)})",
            lambda: f"string({make(choose(('int', 'bool')), depth)})",
            lambda: self._ternary("string", depth),
        )
        return str(choose(forms)())

    def _list(self, depth: int) -> str:
        make, choose = self.make, self._random.choice
        element = choose(("int", "string", "bool"))
        forms = (
            lambda: f"[{', '.join(make(element, depth) for _ in range(self._random.randrange(4)))}]",
            lambda: f"({make('list', depth)} + {make('list', depth)})",
            lambda: self._loop("filter", depth, "bool"),
            lambda: self._loop("map", depth, choose(("int", "string", "dyn"))),
        )
        return str(choose(forms)())

    def _map(self, depth: int) -> str:
        keys = self._random.sample(_KEYS, self._random.randrange(3))
        return "{" + ", ".join(f"'{key}': {self.make('int', depth)}" for key in keys) + "}"

    def _dyn(self, depth: int) -> str:
        make, choose = self.make, self._random.choice
        forms = (
            lambda: f"x.{choose(_KEYS)}.{choose(_KEYS)}",
            lambda: f"x['{choose(_KEYS)}']",
            lambda: f"l[{make('int', depth)}]",
            lambda: f"m.{choose(_KEYS)}",
            lambda: f"dyn({make(choose(('int', 'string', 'bool', 'double')), depth)})",
        )
        return str(choose(forms)())

    def _ternary(self, kind: str, depth: int) -> str:
        return f"({self.make('bool', depth)} ? {self.make(kind, depth)} : {self.make(kind, depth)})"

    def _parenthesised(self, kind: str, depth: int) -> str:
        return f"({self.make(kind, depth)})"

    def _loop(self, macro: str, depth: int, kind: str) -> str:
        items = self.make(self._random.choice(("list", "list", "map")), depth)
        name = f"v{len(self._names)}"
        self._names.append(name)
        body = self.make(kind, depth)
        self._names.pop()
        return f"{items}.{macro}({name}, {body})"
