"""Entries of a rule's context: variables of the policy in CEL, or written where they are used inside of loops.

A variable is evaluated when it is first used, on both sides. A value that ends as null is an error in the old dialect;
in CEL the missing field is one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from pyverno.compiler.migration.expressions import Names, Value, is_static, translate, translate_query
from pyverno.compiler.migration.expressions.concatenation import as_text
from pyverno.compiler.migration.expressions.value import of_reference
from pyverno.compiler.migration.outcome import UnconvertibleError, join_path
from pyverno.compiler.migration.reads import read_call
from pyverno.compiler.migration.schema import Presence, Schema, Shape
from pyverno.compiler.migration.text import Cel, Reference, all_of, call, literal
from pyverno.kube.json import JSON, JSONObject
from pyverno.policy.kinds import KNOWN_KINDS
from pyverno.value import dataclass, replace

__all__ = ["Variable", "inlined", "variables_of"]

_IDENTIFIER: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_UNKNOWN: Final = Schema(Shape.ANY, Presence.REQUIRED)
_API_PATH: Final = re.compile(
    r"/(?:api/(?P<core>[^/]+)|apis/(?P<group>[^/]+)/(?P<version>[^/]+))"
    r"(?:/namespaces/(?P<namespace>[^/]+))?/(?P<plural>[^/?]+)(?:/(?P<name>[^/?]+))?"
)


@dataclass(frozen=True, slots=True, eq=False)
class Variable:
    """A variable of the policy in CEL: its name and expression."""

    name: str
    expression: Cel


def variables_of(entries: Sequence[JSONObject], names: Names, path: str) -> tuple[Names, tuple[Variable, ...]]:
    """Return the names with all entries of a context, and the variables that hold them.

    >>> from pyverno.compiler.migration.expressions import names_of
    >>> entries = [{"name": "a", "variable": {"value": "x"}}]
    >>> names, found = variables_of(entries, names_of(Reference("object")), "context")
    >>> found[0].expression.text, names.find(("a",), "")[0].cel.text
    ("'x'", 'variables.a')
    """
    made: list[Variable] = []
    for index, entry in enumerate(entries):
        name = _name(entry, f"{path}[{index}]")
        value = _value(entry, names, f"{path}[{index}]")
        variable = _identifier(name, {each.name for each in made})
        made.append(Variable(variable, value.cel))
        cel = Cel(f"variables.{variable}", value.cel.type, schema=value.schema)
        held = replace(_as_variable(value, cel), is_data=value.is_data)
        names = names.with_variable(name, held)
    return names, tuple(made)


def inlined(entries: Sequence[JSONObject], names: Names, path: str) -> Names:
    """Return the names with the entries of a context, each written out where it is used."""
    for index, entry in enumerate(entries):
        where = f"{path}[{index}]"
        names = names.with_variable(_name(entry, where), _value(entry, names, where))
    return names


def _as_variable(value: Value, cel: Cel) -> Value:
    """Return a value as the variable that holds it: never null, and an error where its expression is one."""
    fails = value.fails or not value.is_always
    if value.shape in (Shape.OBJECT, Shape.MAP, Shape.ANY):
        found = of_reference(Reference(cel.text, value.schema))
        return replace(found, fails=fails)
    return Value(cel, value.schema, fails=fails)


def _name(entry: JSONObject, path: str) -> str:
    name = entry.get("name")
    if not isinstance(name, str) or not name:
        raise UnconvertibleError("context", path, "an entry without a name", "mend the rule")
    return name


def _identifier(name: str, taken: set[str]) -> str:
    """Return a name that CEL takes: `allowed-repos` becomes `allowedRepos`."""
    words = [word for word in re.split(r"[^A-Za-z0-9_]+", name) if word]
    found = words[0] + "".join(word[:1].upper() + word[1:] for word in words[1:]) if words else "value"
    if not _IDENTIFIER.fullmatch(found):
        found = f"v{found}"
    number = 2
    base = found
    while found in taken:
        found, number = f"{base}{number}", number + 1
    return found


def _value(entry: JSONObject, names: Names, path: str) -> Value:
    for kind, convert in _ENTRIES.items():
        if entry.get(kind) is not None:
            return convert(entry[kind], names, join_path(path, kind))
    raise UnconvertibleError("context", path, "an entry of an unknown kind", "mend the rule")


# ------------------------------------------------------------------------------------------------------------- variable


def _variable(written: JSONObject, names: Names, path: str) -> Value:
    """Return a `variable`: a value, a query on it or on everything, and a default for what is null or fails."""
    query, default = written.get("jmesPath"), written.get("default")
    if written.get("value") is not None:
        value = translate(written["value"], names, join_path(path, "value"))
        if not query:
            return _not_null(value, path)
        value = translate_query(query, names, join_path(path, "jmesPath"), current=value, loud=default is None)
    elif query:
        value = translate_query(query, names, join_path(path, "jmesPath"), loud=default is None)
    else:
        raise UnconvertibleError("context", path, "a variable without value and jmesPath", "mend the rule")
    if default is None:
        return _not_null(value, path)
    return _with_default(value, translate(default, names, join_path(path, "default")), path)


def _not_null(value: Value, path: str) -> Value:
    if value.is_null:
        raise UnconvertibleError("always-an-error", path, "the variable is null on every object", "mend the rule")
    return value


def _with_default(value: Value, default: Value, path: str) -> Value:
    """Return the value, or the default where it is null or fails for something that is missing."""
    if value.is_null:
        return default
    if value.nulls:
        present = [*value.nulls, value.present]
        value = replace(value, present=all_of(present), fails=False, nulls=())
    elif value.fails:
        raise UnconvertibleError(
            "default-of-error", path, "the default replaces errors, which CEL cannot catch", "test what can fail"
        )
    if value.shape is Shape.ANY and default.is_constant:
        value = value.as_type(default.shape)
    schema = replace(value.schema, presence=Presence.REQUIRED, is_nullable=False)
    if value.shape is not default.shape and value.shape is not Shape.ANY:
        schema = _UNKNOWN
    cel = value.or_value(default.cel)
    return Value(replace(cel, schema=schema), schema, default.present, fails=default.fails)


# ------------------------------------------------------------------------------------------------------- the cluster


def _config_map(written: JSONObject, names: Names, path: str) -> Value:
    """Return a ConfigMap's data and metadata; a missing ConfigMap is an error when a field of it is read."""
    name = _text(written.get("name"), names, join_path(path, "name"))
    namespace = _text(written.get("namespace") or "default", names, join_path(path, "namespace"))
    where = join_path(path, "namespace")
    cel = read_call("Get", (literal("v1"), literal("configmaps"), namespace), (name,), names, where)
    book = names.book
    schema = replace(book.of("", "v1", "ConfigMap"), presence=Presence.REQUIRED)
    return Value(replace(cel, schema=schema), schema, fails=True, is_data=False)


def _api_call(written: JSONObject, names: Names, path: str) -> Value:
    """Return what the API server has at a path: one object, or a list."""
    if written.get("service") is not None:
        raise UnconvertibleError(
            "service-call",
            join_path(path, "service"),
            "the status of an HTTP answer is no error in CEL",
            "write the call with http.Get() or http.Post() and test its statusCode",
        )
    if written.get("method") not in (None, "GET"):
        raise UnconvertibleError(
            "api-post", join_path(path, "method"), "a POST to the API server", "write it with resource.Post()"
        )
    if written.get("default") is not None:
        raise UnconvertibleError(
            "api-default",
            join_path(path, "default"),
            "the default replaces every error of the call, which CEL cannot catch",
            "write the variable with resource.Get(), which gives null for what does not exist",
        )
    where = join_path(path, "urlPath")
    cel, schema = _resource_call(str(written.get("urlPath") or ""), names, where)
    value = Value(replace(cel, schema=schema), schema, fails=True, is_data=False)
    if not written.get("jmesPath"):
        return value
    query = join_path(path, "jmesPath")
    return replace(translate_query(written["jmesPath"], names, query, current=value, loud=True), is_data=False)


def _resource_call(url: str, names: Names, path: str) -> tuple[Cel, Schema]:
    placeholders: list[str] = []
    found = _API_PATH.fullmatch(_without_variables(url, placeholders))
    if found is None:
        raise UnconvertibleError(
            "api-path", path, f"`{url}` is no path of an object or a list", "write it with resource.Get()"
        )
    api_version = found["core"] or f"{found['group']}/{found['version']}"
    written = api_version, found["plural"], found["namespace"] or ""
    parts = tuple(_text(_restore(each, placeholders), names, path) for each in written)
    group, _, version = api_version.rpartition("/")
    info = next(
        (
            each
            for each in KNOWN_KINDS
            if each.plural == found["plural"] and (each.group, each.version) == (group, version)
        ),
        None,
    )
    kind = names.book.of(group, version, info.kind) if info is not None else _UNKNOWN
    if found["name"]:
        name = _text(_restore(found["name"], placeholders), names, path)
        read = read_call("Get", parts, (name,), names, path)
        return read, replace(kind, presence=Presence.REQUIRED)
    return read_call("List", parts, (), names, path), _list_schema(kind)


def _list_schema(kind: Schema) -> Schema:
    if not kind.is_known:
        return _UNKNOWN
    reference = {"$ref": kind.definition}
    body = {"properties": {"items": {"type": "array", "items": reference}}, "required": ["items"]}
    return replace(kind, presence=Presence.REQUIRED, body=body, definition="")


def _without_variables(url: str, placeholders: list[str]) -> str:
    """Return a path with a mark for each variable, so that slashes inside of them do not count."""

    def mark(match: re.Match[str]) -> str:
        placeholders.append(match[0])
        return f"\ue010{len(placeholders) - 1}\ue011"

    return re.sub(r"\{\{.*?\}\}", mark, url)


def _restore(text: str, placeholders: list[str]) -> str:
    return re.sub("\ue010([0-9]+)\ue011", lambda match: placeholders[int(match[1])], text)


def _text(document: JSON, names: Names, path: str) -> Cel:
    if is_static(document):
        return literal(str(document))
    return as_text(translate(document, names, path), path)


def _global_reference(written: JSONObject, names: Names, path: str) -> Value:
    """Return the data of a global context entry."""
    name = _text(written.get("name"), names, join_path(path, "name"))
    names.note("global-context", path, "an entry that does not exist is null in CEL, and an error in the old rule")
    cel = call("globalContext.Get", name, literal(""))
    value = Value(replace(cel, schema=_UNKNOWN), _UNKNOWN, fails=True, is_data=False)
    if not written.get("jmesPath"):
        return value
    where = join_path(path, "jmesPath")
    return replace(translate_query(written["jmesPath"], names, where, current=value, loud=True), is_data=False)


def _image_registry(_written: JSONObject, _names: Names, path: str) -> Value:
    raise UnconvertibleError(
        "image-registry",
        path,
        "image.GetMetadata() names the parts of an image otherwise",
        "write the variable with image.GetMetadata(), and its fields manifest and config",
    )


_ENTRIES: Final = {
    "variable": _variable,
    "configMap": _config_map,
    "apiCall": _api_call,
    "globalReference": _global_reference,
    "imageRegistry": _image_registry,
}
