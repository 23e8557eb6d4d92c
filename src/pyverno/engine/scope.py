"""Variables that expressions see: an immutable chain of lazy, memoised bindings.

`scope.bind(name, thunk)` returns a child; nothing is ever changed or restored. A scope is a dict whose missing keys are
computed on first use, so that compiled expressions read it with plain `scope[name]`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from pyverno.errors import ContextEntryError, EvaluationError, ExpressionError, PyvernoError
from pyverno.kube.json import JSON, JSONObject

__all__ = ["Scope", "Thunk", "UnboundNameError", "VariableFaultError"]

Thunk = Callable[[], JSON]


class UnboundNameError(KeyError):
    """A thunk found that its name has no value to be bound to; expressions read that as an unknown key."""


class VariableFaultError(Exception):
    """A thunk ran into a bug, which is the cause of this.

    Expressions take a KeyError or TypeError for a part that is not there; a variable that cannot be computed is not
    one that is missing.
    """


class Scope(dict[str, JSON]):
    """Names bound to values or to thunks; a thunk runs at most once, and an error it raised is raised again.

    What is kept of an error is a copy that is never raised itself: a traceback would refer to this scope and keep the
    objects of a request until the next garbage collection.

    >>> root = Scope({"a": 1})
    >>> child = root.bind("b", lambda: root["a"] + 1)
    >>> child["b"], child["a"], "b" in root
    (2, 1, False)
    """

    __slots__ = ("_failures", "_parent", "_thunks")

    def __init__(
        self, values: JSONObject | None = None, *, parent: Scope | None = None, thunks: dict[str, Thunk] | None = None
    ) -> None:
        super().__init__(values or ())
        self._parent = parent
        self._thunks = thunks
        self._failures: dict[str, PyvernoError] | None = None

    def __missing__(self, name: str) -> JSON:
        # a loop, and kept in this scope alone: a rule may bind thousands of names, each of them in a scope of its own
        scope = self
        while (thunks := scope._thunks) is None or name not in thunks:
            parent = scope._parent
            if parent is None:
                raise KeyError(name)
            scope = parent
            if name in scope:
                value = self[name] = dict.__getitem__(scope, name)
                return value
        value = self[name] = scope._force(name, thunks[name])
        return value

    def _force(self, name: str, thunk: Thunk) -> JSON:
        if self._failures is not None and name in self._failures:
            raise self._failures[name].copied()
        try:
            value = thunk()
        except (UnboundNameError, VariableFaultError, RecursionError, MemoryError):
            raise
        except PyvernoError as error:
            if self._failures is None:
                self._failures = {}
            self._failures[name] = _load_failure(error)
            raise self._failures[name].copied() from error
        except Exception as error:
            raise VariableFaultError from error
        self[name] = value
        return value

    def bind(self, name: str, thunk: Thunk) -> Scope:
        """Return a child in which `name` is computed by `thunk` on first use."""
        return Scope(parent=self, thunks={name: thunk})

    def with_values(self, **values: JSON) -> Scope:
        """Return a child in which these names have these values."""
        return Scope(values, parent=self)

    def with_mapping(self, values: JSONObject) -> Scope:
        """Return a child in which the names of a mapping have its values."""
        return Scope(values, parent=self)

    def names(self) -> Iterator[str]:
        """Yield every bound name once, innermost first, without computing anything."""
        seen: set[str] = set()
        scope: Scope | None = self
        while scope is not None:
            for name in (*dict.keys(scope), *(scope._thunks or ())):
                if name not in seen:
                    seen.add(name)
                    yield name
            scope = scope._parent

    def has(self, name: str) -> bool:
        """Return whether a name is bound, without computing it."""
        return any(bound == name for bound in self.names())

    def materialise(self) -> JSONObject:
        """Compute every variable and return them as a plain object; used when an expression looks at `@` as a whole."""
        found: JSONObject = {}
        for name in self.names():
            try:
                found[name] = self[name]
            except UnboundNameError:
                # a thunk that finds nothing to bind (`images` of an object without images) leaves the name unbound
                continue
        return found


def _load_failure(error: PyvernoError) -> PyvernoError:
    """Return the error that readers of a variable see.

    Errors of the expressions that compute it become a ContextEntryError: an expression that reads the variable absorbs
    some of its own errors.
    """
    if isinstance(error, ContextEntryError) or not isinstance(error, ExpressionError):
        return error.copied()
    reason = f"JMESPath query failed: {error.message}" if isinstance(error, EvaluationError) else error.message
    return ContextEntryError(reason, is_missing=error.is_missing)
