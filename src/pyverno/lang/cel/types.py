"""CEL types: scalars, parameterised types, type variables, structs and opaque library types.

A type prints as cel-go prints it in messages. Declarations are written as text (`list(A).(A) -> int`) and read by
`parse_signature`.
"""

from __future__ import annotations

from typing import Final

from pyverno.lazyregex import regex
from pyverno.value import dataclass, field

__all__ = [
    "ANY",
    "BOOL",
    "BYTES",
    "DOUBLE",
    "DURATION",
    "DYN",
    "ERROR",
    "INT",
    "NULL",
    "STRING",
    "TIMESTAMP",
    "UINT",
    "Signature",
    "Type",
    "list_of",
    "map_of",
    "opaque",
    "optional_of",
    "parse_signature",
    "parse_type",
    "struct",
    "type_of",
    "wrapper_of",
]


@dataclass(frozen=True, slots=True)
class Type:
    """One type: a kind (`int`, `list`, `opaque`, ...), a name for structs, opaque types and variables, parameters.

    `nullable` marks protobuf's wrapper types, which also take null.
    """

    kind: str
    name: str = ""
    params: tuple[Type, ...] = ()
    nullable: bool = False

    def __hash__(self) -> int:
        # not of all fields that equality compares: types are often keys and seldom differ in the others alone
        return hash((self.kind, self.name))

    def __str__(self) -> str:
        if self.kind == "error":
            return "!error!"
        if self.nullable:
            return f"wrapper({self.kind})"
        text = self.name or self.kind
        if self.kind == "type" and not self.params:
            return "type"
        return f"{text}({', '.join(map(str, self.params))})" if self.params else text


DYN: Final = Type("dyn")
ANY: Final = Type("any")
ERROR: Final = Type("error")
NULL: Final = Type("null")
BOOL: Final = Type("bool")
INT: Final = Type("int")
UINT: Final = Type("uint")
DOUBLE: Final = Type("double")
STRING: Final = Type("string")
BYTES: Final = Type("bytes")
TIMESTAMP: Final = Type("timestamp")
DURATION: Final = Type("duration")
_SIMPLE: Final = {
    type_.kind: type_ for type_ in (DYN, ANY, NULL, BOOL, INT, UINT, DOUBLE, STRING, BYTES, TIMESTAMP, DURATION)
}


def list_of(element: Type) -> Type:
    """Return the type of lists of an element type."""
    return Type("list", params=(element,))


def map_of(key: Type, value: Type) -> Type:
    """Return the type of maps."""
    return Type("map", params=(key, value))


def opaque(name: str, *params: Type) -> Type:
    """Return a library's own type."""
    return Type("opaque", name, params)


def optional_of(element: Type) -> Type:
    """Return the type of optional values."""
    return Type("opaque", "optional_type", (element,))


def struct(name: str) -> Type:
    """Return a declared object type; its fields come from the type provider."""
    return Type("struct", name)


def type_of(inner: Type) -> Type:
    """Return the type of a type."""
    return Type("type", params=(inner,))


def wrapper_of(inner: Type) -> Type:
    """Return a scalar type that also takes null."""
    return Type(inner.kind, nullable=True)


def variable(name: str) -> Type:
    """Return a type variable."""
    return Type("param", name)


@dataclass(frozen=True, slots=True)
class Signature:
    """The types of one overload; a member overload's first parameter is its receiver.

    `is_generic` is set where some type has parameters or is a variable; `kinds` are the kinds of the parameters.
    """

    params: tuple[Type, ...]
    result: Type
    member: bool
    is_generic: bool = field(init=False, repr=False, compare=False)
    kinds: tuple[str, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        types = (self.result, *self.params)
        object.__setattr__(self, "is_generic", any(type_.params or type_.kind == "param" for type_ in types))
        object.__setattr__(self, "kinds", tuple([type_.kind for type_ in self.params]))

    def __str__(self) -> str:
        names = [str(param) for param in self.params]
        head = f"{names.pop(0)}." if self.member else ""
        return f"{head}({', '.join(names)}) -> {self.result}"


_WORD: Final = regex(r"\s*([A-Za-z_][\w.]*|->|[().,])")


def parse_type(text: str) -> Type:
    """Return a type written as text; single capital letters are type variables, unknown names opaque types.

    A declared object type is written `object(name)`.

    >>> str(parse_type("map(string, list(A))"))
    'map(string, list(A))'
    """
    type_, rest = _read_type(_words(text))
    if rest:
        raise ValueError(f"unreadable type {text!r}")
    return type_


def parse_signature(text: str) -> Signature:
    """Return a signature written as `(A, int) -> bool`, or `list(A).(A) -> int` for a member.

    >>> parse_signature("list(A).(A) -> int").member
    True
    """
    words = _words(text)
    params: list[Type] = []
    member = words[0] != "("
    if member:
        # "x.(" is read as the receiver's name with its trailing dot
        receiver, words = _read_type(words)
        params.append(receiver)
        if words[0] == ".":
            words = words[1:]
    words = words[1:]
    while words[0] != ")":
        type_, words = _read_type(words)
        params.append(type_)
        if words[0] == ",":
            words = words[1:]
    result, rest = _read_type(words[2:])
    if rest or words[1] != "->":
        raise ValueError(f"unreadable signature {text!r}")
    return Signature(tuple(params), result, member)


def _words(text: str) -> list[str]:
    words: list[str] = []
    for word in _WORD.findall(text):
        if len(word) > 1 and word.endswith("."):
            words += [word[:-1], "."]
        else:
            words.append(word)
    return words


def _read_type(words: list[str]) -> tuple[Type, list[str]]:
    name, words = words[0], words[1:]
    params: list[Type] = []
    if words and words[0] == "(":
        words = words[1:]
        while words[0] != ")":
            param, words = _read_type(words)
            params.append(param)
            if words[0] == ",":
                words = words[1:]
        words = words[1:]
    if name == "optional":
        return optional_of(params[0]), words
    if name in ("list", "map", "type"):
        return Type(name, params=tuple(params)), words
    if name == "object":
        return struct(params[0].name), words
    if name == "wrapper":
        return wrapper_of(params[0]), words
    if len(name) == 1 and name.isupper():
        return variable(name), words
    return _SIMPLE.get(name) or opaque(name, *params), words
