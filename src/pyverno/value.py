"""Dataclasses that cost next to nothing until their first instance.

The standard library compiles source for every dataclass at import, more than half of the command line's start-up. Here
a class gets its slots at once and its methods with the first instance: copies of functions of this module under the
names of the fields (`_SETTERS`, `_KEYS`). Meaning, names and arguments are those of `dataclasses`: mypy sees nothing
else, and `dataclasses.fields`, `replace` and `is_dataclass` know these classes.

Slots always, annotations as texts; no `InitVar`, no `KW_ONLY`. This module must never compile source or import much.
"""

from __future__ import annotations

import sys
from itertools import repeat
from operator import attrgetter, call, ge, gt, le, lt
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["dataclass", "field", "fields", "is_dataclass", "replace"]

_T = TypeVar("_T")
_MISSING: Final[Any] = type("Missing", (), {"__slots__": ()})()
_PLAN: Final = "__value_plan__"


class Field:
    """One field of a class: its name, type and options."""

    __slots__ = ("compare", "default", "default_factory", "init", "kw_only", "name", "repr", "type")

    def __init__(self, default: Any, default_factory: Any, init: bool, repr: bool, compare: bool) -> None:
        self.name = ""
        self.type = ""
        self.kw_only = False
        self.default = default
        self.default_factory = default_factory
        self.init = init
        self.repr = repr
        self.compare = compare

    @property
    def is_required(self) -> bool:
        """Return whether `__init__` requires a value."""
        return self.default is _MISSING and self.default_factory is _MISSING


class _Plan:
    """The fields and options of a class, and the makers of its methods."""

    __slots__ = ("_twin", "cls", "fields", "options", "provisional")

    def __init__(self, fields: dict[str, Field], options: dict[str, bool]) -> None:
        self.cls: type = object
        self.fields = fields
        self.options = options
        self.provisional: list[str] = []
        self._twin: type | None = None

    def method(self, name: str) -> Callable[..., Any]:
        """Return a placeholder that replaces itself with the method at the first call."""
        self.provisional.append(name)

        def method(*arguments: Any, **named: Any) -> Any:
            for each in self.provisional:
                setattr(self.cls, each, _METHODS[each](self))
            return self.cls.__dict__[name](*arguments, **named)

        return method

    @property
    def twin(self) -> type:
        """A dataclass of the standard library with the same fields, for attributes that only it computes."""
        if self._twin is None:
            import dataclasses

            def row(each: Field) -> tuple[str, Any, Any]:
                defaults: dict[str, Any] = {"default": each.default, "default_factory": each.default_factory}
                known = {key: value for key, value in defaults.items() if value is not _MISSING}
                flags = {name: getattr(each, name) for name in ("init", "repr", "compare", "kw_only")}
                return each.name, each.type, dataclasses.field(**known, **flags)

            rows = [row(each) for each in self.fields.values()]
            options: dict[str, Any] = {**self.options}
            self._twin = dataclasses.make_dataclass(self.cls.__name__, rows, **options)
        return self._twin


def _field(
    *,
    default: Any = _MISSING,
    default_factory: Any = _MISSING,
    init: bool = True,
    repr: bool = True,
    compare: bool = True,
) -> Any:
    """Return the options of a field beside its type."""
    return Field(default, default_factory, init, repr, compare)


def _dataclass(
    *, frozen: bool = False, slots: bool = False, eq: bool = True, order: bool = False, kw_only: bool = False
) -> Callable[[type[_T]], type[_T]]:
    """Return a decorator that turns a class into a dataclass with slots.

    Raises TypeError and ValueError for fields that the standard library refuses or this module does not support.

    >>> @dataclass(frozen=True, slots=True)
    ... class Point:
    ...     x: int
    ...     y: int = 0
    >>> Point(1), Point(1) == Point(1, 0), replace(Point(1), y=2)
    (Point(x=1, y=0), True, Point(x=1, y=2))
    """
    if not slots:
        raise TypeError("values have slots: set `slots=True`")

    def decorate(cls: type[_T]) -> type[_T]:
        plan = _Plan(_fields(cls, kw_only), {"frozen": frozen, "eq": eq, "order": order})
        namespace = _namespace(cls, plan)
        made: Any = type(cls)(cls.__name__, cls.__bases__, namespace)  # type: ignore[misc]  # the metaclass is called
        made.__qualname__ = cls.__qualname__
        plan.cls = made
        return made  # type: ignore[no-any-return]

    return decorate


def _fields(cls: type, kw_only: bool) -> dict[str, Field]:
    found: dict[str, Field] = {}
    for base in cls.__mro__[-2:0:-1]:
        plan = base.__dict__.get(_PLAN)
        if plan is not None:
            found.update(plan.fields)
    namespace = cls.__dict__
    for name, annotation in namespace.get("__annotations__", {}).items():
        if annotation.startswith(("ClassVar[", "typing.ClassVar[")):
            continue
        each = namespace.get(name, _MISSING)
        if each.__class__ is not Field:
            each = Field(each, _MISSING, True, True, True)
        each.name, each.type, each.kw_only = name, annotation, kw_only
        found[name] = each
        _check(each)
    optional = ""
    for each in found.values():
        if each.init and not each.kw_only:
            if optional and each.is_required:
                raise TypeError(f"non-default argument `{each.name}` follows default argument `{optional}`")
            optional = "" if each.is_required else each.name
    return found


def _check(field: Field) -> None:
    if field.default.__class__.__hash__ is None:
        raise ValueError(f"mutable default {type(field.default)} for field {field.name} is not allowed")
    if field.type.startswith(("InitVar", "KW_ONLY", "dataclasses.")) or not (field.init or field.is_required):
        raise TypeError(f"field `{field.name}`: `{field.type}` is not supported")


def _namespace(cls: type, plan: _Plan) -> dict[str, Any]:
    """Return the namespace of the class, which is created anew: an existing class cannot get slots."""
    names = tuple(plan.fields)
    taken = {name for base in cls.__mro__[1:-1] for name in base.__dict__.get("__slots__", ())}
    found = {name: item for name, item in cls.__dict__.items() if name not in plan.fields}
    found.pop("__dict__", None)
    found.pop("__weakref__", None)
    found["__slots__"] = tuple(name for name in names if name not in taken) if taken else names
    found[_PLAN] = plan
    found["__match_args__"] = tuple([each.name for each in plan.fields.values() if each.init and not each.kw_only])
    found.setdefault("__init__", plan.method("__init__"))
    found.setdefault("__repr__", _repr)
    if plan.options["eq"]:
        if found.get("__hash__") is None:
            found["__hash__"] = plan.method("__hash__") if plan.options["frozen"] else None
        found.setdefault("__eq__", plan.method("__eq__"))
    if plan.options["order"]:
        found.update({name: plan.method(name) for name in _ORDER})
    return found | _FROZEN | _STANDARD if plan.options["frozen"] else found | _STANDARD


# fmt: off
# `__init__` by the number of arguments: each of `s` sets one field and returns None, so that all are called
_FEW: Final[tuple[Callable[[list[Any]], Any], ...]] = (
    lambda s: lambda self, a: s[0](self, a),  # noqa: PLW0108  # the argument gets another name
    lambda s: lambda self, a, b: s[0](self, a) or s[1](self, b),
    lambda s: lambda self, a, b, c: s[0](self, a) or s[1](self, b) or s[2](self, c),
    lambda s: lambda self, a, b, c, d: s[0](self, a) or s[1](self, b) or s[2](self, c) or s[3](self, d),
    lambda s: lambda self, a, b, c, d, e: s[0](self, a) or s[1](self, b) or s[2](self, c)
    or s[3](self, d) or s[4](self, e),
    lambda s: lambda self, a, b, c, d, e, f: s[0](self, a) or s[1](self, b) or s[2](self, c)
    or s[3](self, d) or s[4](self, e) or s[5](self, f),
    lambda s: lambda self, a, b, c, d, e, f, g: s[0](self, a) or s[1](self, b) or s[2](self, c) or s[3](self, d)
    or s[4](self, e) or s[5](self, f) or s[6](self, g),
    lambda s: lambda self, a, b, c, d, e, f, g, h: s[0](self, a) or s[1](self, b) or s[2](self, c) or s[3](self, d)
    or s[4](self, e) or s[5](self, f) or s[6](self, g) or s[7](self, h),
    lambda s: lambda self, a, b, c, d, e, f, g, h, i: s[0](self, a) or s[1](self, b) or s[2](self, c) or s[3](self, d)
    or s[4](self, e) or s[5](self, f) or s[6](self, g) or s[7](self, h) or s[8](self, i),
    lambda s: lambda self, a, b, c, d, e, f, g, h, i, j: s[0](self, a) or s[1](self, b) or s[2](self, c)
    or s[3](self, d) or s[4](self, e) or s[5](self, f) or s[6](self, g) or s[7](self, h) or s[8](self, i)
    or s[9](self, j),
)
# 17 are those of `engine.request.Request`, which every review makes
_SETTERS: Final = dict(enumerate(_FEW, 1)) | {
    17: lambda s: lambda self, a, b, c, d, e, f, g, h, i, j, k, m, n, o, p, q, r: s[0](self, a) or s[1](self, b)
    or s[2](self, c) or s[3](self, d) or s[4](self, e) or s[5](self, f) or s[6](self, g) or s[7](self, h)
    or s[8](self, i) or s[9](self, j) or s[10](self, k) or s[11](self, m) or s[12](self, n) or s[13](self, o)
    or s[14](self, p) or s[15](self, q) or s[16](self, r),
}

# the tuple that equality, hash and order compare, by the number of fields
_KEYS: Final[tuple[Callable[[Any], Any], ...]] = (
    lambda self: (),
    lambda self: (self.a,),
    lambda self: (self.a, self.b),
    lambda self: (self.a, self.b, self.c),
    lambda self: (self.a, self.b, self.c, self.d),
    lambda self: (self.a, self.b, self.c, self.d, self.e),
    lambda self: (self.a, self.b, self.c, self.d, self.e, self.f),
    lambda self: (self.a, self.b, self.c, self.d, self.e, self.f, self.g),
    lambda self: (self.a, self.b, self.c, self.d, self.e, self.f, self.g, self.h),
    lambda self: (self.a, self.b, self.c, self.d, self.e, self.f, self.g, self.h, self.i),
    lambda self: (self.a, self.b, self.c, self.d, self.e, self.f, self.g, self.h, self.i, self.j),
)
# fmt: on


def _init(plan: _Plan) -> Callable[..., None]:
    """Return `__init__`: a row of `_SETTERS` whose arguments have the names of the fields."""
    arguments = sorted((each for each in plan.fields.values() if each.init), key=lambda each: each.kw_only)
    setters = [_setter(plan.cls, each) for each in arguments]
    has_post_init = hasattr(plan.cls, "__post_init__")
    row: Any = _SETTERS.get(len(arguments))
    if row is None:
        return _wide_init(plan, arguments, setters, has_post_init)
    if has_post_init:
        setters[-1] = _and_post_init(setters[-1])
    init = row(setters)
    positional = sum(not each.kw_only for each in arguments)
    init.__code__ = init.__code__.replace(
        co_varnames=("self", *(each.name for each in arguments)),
        co_argcount=1 + positional,
        co_kwonlyargcount=len(arguments) - positional,
        co_name="__init__",
        co_qualname=f"{plan.cls.__qualname__}.__init__",
    )
    init.__name__, init.__qualname__ = init.__code__.co_name, init.__code__.co_qualname
    optional = {each.name: each.default for each in arguments if not each.is_required}
    init.__defaults__ = tuple(optional[each.name] for each in arguments[:positional] if each.name in optional)
    init.__kwdefaults__ = {each.name: optional[each.name] for each in arguments[positional:] if each.name in optional}
    return init  # type: ignore[no-any-return]


def _wide_init(
    plan: _Plan, arguments: list[Field], setters: list[Callable[[Any, Any], None]], has_post_init: bool
) -> Callable[..., None]:
    """Return `__init__` for a number of fields that `_SETTERS` has no row for."""
    names = [each.name for each in arguments]
    known = {*names}
    positional = [each.name for each in arguments if not each.kw_only]
    defaults = {each.name: each.default for each in arguments if not each.is_required}

    def __init__(self: Any, /, *values: Any, **named: Any) -> None:  # noqa: N807  # it is the method
        given = dict(zip(positional, values, strict=False)) if values else {}
        values_of = {**defaults, **given, **named}
        if values_of.keys() != known or (values and (len(values) > len(positional) or given.keys() & named.keys())):
            raise TypeError(_argument_error(plan, arguments, given, named))
        # each setter returns None, so that all are called
        any(map(call, setters, repeat(self), map(values_of.__getitem__, names)))
        if has_post_init:
            self.__post_init__()

    return __init__


def _argument_error(plan: _Plan, arguments: list[Field], given: dict[str, Any], named: dict[str, Any]) -> str:
    known = {each.name for each in arguments}
    wrong = [name for name in named if name not in known or name in given]
    missing = [each.name for each in arguments if each.is_required and each.name not in given | named]
    reason = f"unexpected or repeated {wrong}" if wrong else f"missing {missing}" if missing else "too many values"
    return f"{plan.cls.__qualname__}.__init__() does not take these arguments: {reason}"


def _setter(cls: type, field: Field) -> Callable[[Any, Any], None]:
    """Return the setter of one field: that of the slot, which ignores that a class is frozen."""
    put: Callable[[Any, Any], None] = getattr(cls, field.name).__set__
    make = field.default_factory
    if make is _MISSING:
        return put

    def put_or_make(self: Any, value: Any) -> None:
        put(self, make() if value is _MISSING else value)

    return put_or_make


def _and_post_init(setter: Callable[[Any, Any], None]) -> Callable[[Any, Any], None]:
    def put_last(self: Any, value: Any) -> None:
        setter(self, value)
        self.__post_init__()

    return put_last


def _key(plan: _Plan) -> Callable[[Any], Any]:
    """Return a function from a value to the tuple of its compared fields."""
    names = tuple(each.name for each in plan.fields.values() if each.compare)
    if len(names) >= len(_KEYS):
        return attrgetter(*names)
    template: Any = _KEYS[len(names)]
    key: Callable[[Any], Any] = type(template)(template.__code__.replace(co_names=names), {})
    return key


def _eq(plan: _Plan) -> Callable[[Any, Any], bool]:
    key = _key(plan)

    def __eq__(self: Any, other: Any) -> bool:  # noqa: N807
        return key(self) == key(other) if other.__class__ is self.__class__ else NotImplemented

    return __eq__


def _hash(plan: _Plan) -> Callable[[Any], int]:
    key = _key(plan)
    return lambda self: hash(key(self))


def _ordering(compare: Callable[[Any, Any], bool]) -> Callable[[_Plan], Callable[[Any, Any], bool]]:
    def make(plan: _Plan) -> Callable[[Any, Any], bool]:
        key = _key(plan)
        return lambda self, other: (
            compare(key(self), key(other)) if other.__class__ is self.__class__ else NotImplemented
        )

    return make


_ORDER: Final = {f"__{each.__name__}__": _ordering(each) for each in (lt, le, gt, ge)}
_METHODS: Final[dict[str, Callable[[_Plan], Callable[..., Any]]]] = {
    "__init__": _init,
    "__eq__": _eq,
    "__hash__": _hash,
    **_ORDER,
}


@recursive_repr()
def _repr(self: Any) -> str:
    shown = [each.name for each in getattr(self, _PLAN).fields.values() if each.repr]
    return f"{type(self).__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in shown)})"


def _refuse_set(self: Any, name: str, value: object) -> None:
    _refuse(self, name, "assign to")
    object.__setattr__(self, name, value)


def _refuse_delete(self: Any, name: str) -> None:
    _refuse(self, name, "delete")
    object.__delattr__(self, name)


def _refuse(self: Any, name: str, action: str) -> None:
    if _PLAN in type(self).__dict__ or name in getattr(self, _PLAN).fields:
        from dataclasses import FrozenInstanceError

        raise FrozenInstanceError(f"cannot {action} field {name!r}")


def _get_state(self: Any) -> list[Any]:
    return [getattr(self, name) for name in getattr(self, _PLAN).fields]


def _set_state(self: Any, state: list[Any]) -> None:
    for name, value in zip(getattr(self, _PLAN).fields, state, strict=True):
        object.__setattr__(self, name, value)


class _TwinAttribute:
    """An attribute that the standard library reads from dataclasses, computed on first access."""

    __slots__ = ("_find",)

    def __init__(self, find: Callable[[type], Any]) -> None:
        self._find = find

    def __get__(self, instance: object, owner: type) -> Any:
        return self._find(getattr(owner, _PLAN).twin)


class _Signature(_TwinAttribute):
    """The signature of a class; its instances, which may be callable, have their own."""

    __slots__ = ()

    def __get__(self, instance: object, owner: type) -> Any:
        if instance is not None:
            raise AttributeError("__signature__")
        return super().__get__(instance, owner)


def _signature(twin: type) -> object:
    import inspect

    return inspect.signature(twin)


_FROZEN: Final[dict[str, Any]] = {
    "__setattr__": _refuse_set,
    "__delattr__": _refuse_delete,
    "__getstate__": _get_state,
    "__setstate__": _set_state,
}
_STANDARD: Final[dict[str, Any]] = {
    "__dataclass_fields__": _TwinAttribute(attrgetter("__dataclass_fields__")),
    "__dataclass_params__": _TwinAttribute(attrgetter("__dataclass_params__")),
    "__signature__": _Signature(_signature),
}


def _all_fields(value: Any) -> tuple[Field, ...]:
    """Return the fields of a class or an instance in order."""
    return tuple(getattr(value, _PLAN).fields.values())


def _is_dataclass(value: object) -> bool:
    """Return whether this is a dataclass of this module or an instance of one."""
    return hasattr(value, _PLAN)


def _replace(value: Any, /, **changes: Any) -> Any:
    """Return a copy with some fields changed; raises for a field that `__init__` does not take."""
    for each in getattr(value, _PLAN).fields.values():
        if not each.init:
            if (name := each.name) in changes:
                kind = TypeError if sys.version_info >= (3, 13) else ValueError  # as the standard library
                raise kind(f"field {name} is declared with init=False, it cannot be specified with replace()")
        elif each.name not in changes:
            changes[each.name] = getattr(value, each.name)
    return value.__class__(**changes)


if TYPE_CHECKING:
    # mypy sees the originals, so that it checks every class and every call
    from dataclasses import dataclass, field, fields, is_dataclass, replace
else:
    dataclass, field, fields, is_dataclass, replace = _dataclass, _field, _all_fields, _is_dataclass, _replace
