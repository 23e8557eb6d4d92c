"""Translation of the names of JMESPath to CEL: `request.object`, `element`, entries of the context."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pyverno.compiler.migration.expressions.value import TEXT, Value, declared, of_reference
from pyverno.compiler.migration.outcome import Note, UnconvertibleError
from pyverno.compiler.migration.schema import Presence, Schema, SchemaBook, Shape
from pyverno.compiler.migration.text import Cel, CelType, Reference, compare, literal
from pyverno.kube.json import JSON
from pyverno.value import dataclass, field, replace

__all__ = ["Names", "names_of"]

Path = tuple[str, ...]
Refusal = tuple[str, str, str]
"""Code, reason and advice."""

_REFUSED: Final[Mapping[Path, Refusal]] = {
    ("request", "roles"): ("roles", "CEL has no list of the user's roles", "match users or groups instead"),
    ("request", "clusterRoles"): ("roles", "CEL has no list of the user's roles", "match users or groups instead"),
    ("images",): (
        "images-variable",
        "parts of images differ in CEL: `image()` does not parse everything that Kyverno does",
        "compare the text of the image, or write the condition by hand with image()",
    ),
    ("target",): ("target", "the rule has no `target` here", "write the expression by hand"),
}
_OBJECT_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
_OPTIONAL_TEXT: Final = Schema(Shape.STRING, Presence.NONZERO)
_TEXT_LISTS: Final = Schema(Shape.LIST, Presence.NONZERO)


@dataclass(frozen=True, slots=True, eq=False)
class Names:
    """The names that an expression may use, each with its value; the longest path that fits counts.

    `taken` are the variables of macros around the expression. `notes` collects notes for readers; all names derived
    from each other share it. `errors` is why a test of an element must not fail, None where it may. `home` is the
    namespace of a policy that reads the objects of its namespace only, "" for others.
    """

    values: Mapping[Path, Value]
    refused: Mapping[Path, Refusal] = field(default_factory=lambda: _REFUSED)
    errors: Refusal | None = None
    taken: frozenset[str] = frozenset()
    book: SchemaBook = field(default_factory=SchemaBook)
    notes: list[Note] = field(default_factory=list)
    home: str = ""

    def find(self, path: Path, where: str) -> tuple[Value, int] | None:
        """Return the value of the longest beginning of a path that has one, and how many names that takes.

        Raises UnconvertibleError for names that CEL has nothing for; `where` is the field for its report.
        """
        for size in range(len(path), 0, -1):
            refusal = self.refused.get(path[:size])
            if refusal is not None:
                raise UnconvertibleError(refusal[0], where, refusal[1], refusal[2])
            value = self.values.get(path[:size])
            if value is not None:
                return value, size
        return None

    def with_values(self, values: Mapping[Path, Value]) -> Names:
        """Return these names and others, which hide those of the same path."""
        hidden = {path[:1] for path in values if len(path) == 1}
        kept = {path: value for path, value in self.values.items() if path[:1] not in hidden}
        return replace(self, values={**kept, **values})

    def with_variable(self, name: str, value: Value) -> Names:
        """Return these names and an entry of the context.

        >>> names_of(Reference("object")).with_variable("a", Value(Cel("variables.a"))).find(("a",), "")[0].cel.text
        'variables.a'
        """
        return self.with_values({(name,): value})

    def with_element(self, element: Value, index: Value | None, depth: int, taken: str) -> Names:
        """Return the names inside of a loop: `element`, `elementIndex` and their numbered twins."""
        values: dict[Path, Value] = {("element",): element, (f"element{depth}",): element}
        names = self
        if index is not None:
            values |= {("elementIndex",): index, (f"elementIndex{depth}",): index}
        else:
            reason = ("element-index", "the number of the element has no form in this loop", "write the loop by hand")
            names = replace(
                self, refused={**self.refused, ("elementIndex",): reason, (f"elementIndex{depth}",): reason}
            )
        return replace(names.with_values(values), taken=self.taken | {taken})

    def note(self, code: str, path: str, text: str) -> None:
        """Remember something that the reader of the conversion should know, once."""
        found = Note(code, path, text)
        if found not in self.notes:
            self.notes.append(found)


def names_of(
    object_: Reference | None,
    old: Reference | None = None,
    extra: Mapping[Path, Value] | None = None,
    *,
    book: SchemaBook | None = None,
) -> Names:
    """Return the names of a rule: its object, the old object, the request, and others.

    `extra` are paths that are read elsewhere, for example `request.object.spec` as a variable that holds the pod's.

    >>> found = names_of(Reference("object")).find(("request", "object", "kind"), "")
    >>> found[0].cel.text, found[1]
    ('object', 2)
    """
    book = book or SchemaBook()
    values: dict[Path, Value] = {
        ("request", "operation"): _request("operation", TEXT),
        ("request", "namespace"): _request("namespace", _OPTIONAL_TEXT),
        ("request", "name"): _request("name", _OPTIONAL_TEXT),
        ("request", "subResource"): _request("subResource", _OPTIONAL_TEXT),
        ("request", "dryRun"): _request("dryRun", Schema(Shape.BOOL, Presence.NONZERO)),
        ("request", "uid"): _request("uid", TEXT),
        ("request", "userInfo", "username"): _request("userInfo.username", _OPTIONAL_TEXT),
        ("request", "userInfo", "uid"): _request("userInfo.uid", _OPTIONAL_TEXT),
        ("request", "userInfo", "groups"): _request("userInfo.groups", _TEXT_LISTS),
        ("request", "kind", "kind"): _request("kind.kind", TEXT),
        ("request", "kind", "group"): _request("kind.group", TEXT),
        ("request", "kind", "version"): _request("kind.version", TEXT),
        ("request", "resource", "resource"): _request("resource.resource", TEXT),
        ("request", "resource", "group"): _request("resource.group", TEXT),
        ("request", "resource", "version"): _request("resource.version", TEXT),
    }
    if object_ is not None:
        values["request", "object"] = of_reference(object_)
        if not object_.schema.is_known:
            metadata = declared(object_, "metadata", book.definition(_OBJECT_META))
            values["request", "object", "metadata"] = of_reference(metadata)
    if old is not None:
        values["request", "oldObject"] = _old(old)
    return Names({**values, **(extra or {})}, book=book)


def _request(path: str, schema: Schema) -> Value:
    """Return a field of the request; a text that the API server leaves out is empty in JMESPath."""
    if schema.presence is Presence.REQUIRED:
        return Value(Cel(f"request.{path}", CelType.STRING, schema=schema), schema)
    *holders, name = path.split(".")
    found = of_reference(declared(Reference(".".join(("request", *holders))), name, schema))
    empty: JSON = {Shape.STRING: "", Shape.BOOL: False}.get(schema.shape)
    if empty is None:
        return found
    return Value(found.or_value(literal(empty)), schema, default=(found, empty))


_RELATION: Final = compare(literal(1), "==", literal(1)).level


def _old(old: Reference) -> Value:
    """Return the old object, which is null on CREATE in JMESPath, and null or empty in CEL."""
    return of_reference(old, Cel("request.operation != 'CREATE'", CelType.BOOL, _RELATION))
