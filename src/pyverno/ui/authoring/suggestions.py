"""Suggestions for editors: completions at a cursor, and documentation of the word under it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from pyverno.compiler.functiondocs import FunctionDoc, cel_functions, condition_operators, jmespath_functions
from pyverno.errors import PyvernoError, UsageError
from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.schemas import VERSIONS
from pyverno.kube.yaml.documents import load_documents
from pyverno.lazyregex import regex
from pyverno.policy.kinds import POLICY_KINDS
from pyverno.ui.authoring.document import CEL, DocumentView
from pyverno.ui.authoring.outline import Path, Spot, find_spot, select_document
from pyverno.ui.authoring.schemas import Node, Schemas
from pyverno.ui.authoring.variables import CEL_VARIABLES, JMESPATH_VARIABLES, OBJECTS, REQUEST_FIELDS, own_names

__all__ = ["complete", "hover"]

_WORD: Final = regex(r"[A-Za-z_][\w.\-/]*$")
_NAME: Final = regex(r"[A-Za-z_$@][\w.]*")
_TOKEN: Final = regex(r"[\w.\-/]+")
_MOST: Final = 200
_MOST_TEXT: Final = 600
_MOST_LINE: Final = 20_000
_INDENT: Final = "  "


def complete(request: JSONObject) -> JSONObject:
    """Return `{start, items}`: completions at `line` and `column` of `text`, replacing it from column `start`.

    `line` is from 1, `column` from 0, both count characters; `crds` and `kubernetesVersion` are those of a review. An
    item has `label`, `insert`, `detail` and `text`. Raises UsageError for a request of another form.
    """
    view, spot, _ = _read(request)
    language = view.language(spot.path, spot.before) if not spot.is_key else ""
    if language:
        word = _WORD.search(spot.before)
        prefix = word[0] if word else ""
        items = _expression_items(view, spot.path, language, prefix)
        # the part before the last dot stays as it is written
        prefix = prefix.rpartition(".")[2]
    else:
        prefix = spot.before
        is_value = not spot.is_key or _is_plain_item(view, spot.path)
        items = _value_items(view, spot.path) if is_value else _field_items(view, spot)
    found = [each for each in items if _fits(each["label"], prefix)]
    found.sort(key=lambda each: not str(each["label"]).casefold().startswith(prefix.casefold()))
    return {"start": _column(request) - len(prefix), "items": found[:_MOST]}


def hover(request: JSONObject) -> JSONObject:
    """Return `{title, detail, text}` about the word at `line` and `column` of `text`; empty where nothing is known."""
    view, _, line = _read(request)
    column = _column(request)
    token = next((each for each in _TOKEN.finditer(line) if each.start() <= column < each.end()), None)
    if token is None:
        return {}
    lines, index = select_document(_text(request, "text"), _number(request, "line"))
    spot = find_spot(lines, index, token.end())
    language = view.language(spot.path, spot.before) if not spot.is_key else ""
    if language:
        return _describe_name(view, spot.path, language, line, column) or {}
    path = (*spot.path, token[0]) if spot.is_key else spot.path
    node = view.node(path)
    if node is None:
        return {}
    shown = ".".join(str(each) for each in path if isinstance(each, str))
    return {"title": shown, "detail": _detail(node), "text": _clip(node.text)}


def _read(request: JSONObject) -> tuple[DocumentView, Spot, str]:
    text, line, column = _text(request, "text"), _number(request, "line"), _column(request)
    lines, index = select_document(text, line)
    current = lines[index] if index < len(lines) else ""
    if len(current) > _MOST_LINE:
        raise UsageError(f"the line has more than {_MOST_LINE} characters")
    version = _text(request, "kubernetesVersion") or VERSIONS[-1]
    schemas = Schemas(version, _definitions(_text(request, "crds")))
    return DocumentView(lines, schemas), find_spot(lines, index, column), current


def _definitions(text: str) -> list[JSON]:
    try:
        return [each.value for each in load_documents(text, file="crds")] if text.strip() else []
    except PyvernoError:
        return []  # the review reports their errors


# --------------------------------------------------------------------------------------------------------- fields


def _is_plain_item(view: DocumentView, path: Path) -> bool:
    """Return whether a path is an item of a list of texts, which has no keys."""
    node = view.node(path) if path and isinstance(path[-1], int) else None
    return node is not None and node.type != "object" and not node.fields()


def _field_items(view: DocumentView, spot: Spot) -> Iterator[JSONObject]:
    node = view.node(spot.path)
    if not spot.path and (node is None or not node.fields()):
        for name in ("apiVersion", "kind", "metadata", "spec"):
            if name not in spot.siblings:
                yield _item(name, f"{name}: ")
        return
    if node is None:
        return
    if node.type == "array" and (inner := node.item()) is not None:
        yield from _new_items(inner)
        return
    fields = node.fields()
    for name, field in sorted(fields.items(), key=lambda each: (not each[1].required, each[0])):
        if name not in spot.siblings:
            yield _item(name, _key_text(name, field, spot.column), _detail(field), field.text)
    if not fields:
        yield from _choices(node)


def _new_items(inner: Node) -> Iterator[JSONObject]:
    """Yield what the first line of an item of a list can be."""
    for name, field in inner.fields().items():
        yield _item(f"- {name}", f"- {name}: ", _detail(field), field.text)
    for each in inner.choices:
        yield _item(f"- {each}", f"- {each}")


def _key_text(name: str, field: Node, column: int) -> str:
    deeper = "\n" + " " * column + _INDENT
    if field.type == "object" and (field.fields() or field.value()):
        return f"{name}:{deeper}"
    return f"{name}:{deeper}- " if field.type == "array" else f"{name}: "


def _value_items(view: DocumentView, path: Path) -> Iterator[JSONObject]:
    schemas = view.schemas
    if path == ("apiVersion",):
        known = [api_version for api_version, kind in schemas.kinds() if view.kind in ("", kind)]
        own = [f"{row.group}/{each}" for row in POLICY_KINDS if view.kind in ("", row.kind) for each in row.versions]
        yield from (_item(each) for each in sorted({*known, *own}))
    elif path == ("kind",):
        kinds = [kind for api_version, kind in schemas.kinds() if view.api_version in ("", api_version)]
        rows = [
            row.kind for row in POLICY_KINDS if view.api_version in ("", *(f"{row.group}/{v}" for v in row.versions))
        ]
        yield from (_item(each) for each in sorted({*kinds, *rows}))
    elif "kinds" in path[-2:]:
        yield from (_item(kind, detail=api_version) for api_version, kind in schemas.kinds())
    elif path[-1:] == ("operator",) and view.policy_kind is not None and "labelSelector" not in path:
        yield from (_item(name, detail="operator", text=text) for name, text in condition_operators().items())
    elif (node := view.node(path)) is not None:
        yield from _choices(node)


def _choices(node: Node) -> Iterator[JSONObject]:
    values = ("true", "false") if node.type == "boolean" else node.choices
    yield from (_item(each, text=node.text) for each in values)


def _detail(node: Node) -> str:
    words = [node.type or "any value", *(["required"] if node.required else [])]
    if node.choices:
        words.append("one of " + ", ".join(node.choices))
    return ", ".join(words)


# ---------------------------------------------------------------------------------------------------- expressions


def _expression_items(view: DocumentView, path: Path, language: str, prefix: str) -> Iterator[JSONObject]:
    owner, _, _ = prefix.rpartition(".")
    functions = _functions(view, language)
    if owner:
        yield from _members(view, path, language, owner)
        for name, each in functions.items():
            if name.startswith(f"{owner}."):
                label = name.removeprefix(f"{owner}.")
                yield _item(label, f"{label}(", each.signatures[0], each.text)
            elif each.is_member:
                yield _item(name, f"{name}(", each.signatures[0], each.text)
        return
    for name, text in _variables(view, path, language).items():
        if "." not in name:
            yield _item(name, name, "variable", text)
    for name, each in functions.items():
        if not each.is_member:
            yield _item(name, f"{name}(", each.signatures[0], each.text)


def _members(view: DocumentView, path: Path, language: str, owner: str) -> Iterator[JSONObject]:
    """Yield the fields of the expression before the last dot."""
    if owner == "variables" and language == CEL:
        yield from (_item(name, detail="variable of this policy") for name in own_names(view.entries, path)[0])
    head, _, rest = owner.partition(".")
    if head == "request" and not rest.startswith(("object", "oldObject")):
        for name, text in REQUEST_FIELDS.items():
            label = name.removeprefix(f"{rest}.") if rest else name
            if name.startswith(f"{rest}.") == bool(rest) and "." not in label:
                yield _item(label, text=text)
    node = _object_field(view, path, owner)
    for name, field in node.fields().items() if node is not None else ():
        yield _item(name, detail=_detail(field), text=field.text)


def _object_field(view: DocumentView, path: Path, owner: str) -> Node | None:
    root = next((each for each in OBJECTS if owner == each or owner.startswith(f"{each}.")), None)
    if root is None:
        return None
    names = [each for each in owner.removeprefix(root).split(".") if each]
    return view.object_node(path, names)


def _variables(view: DocumentView, path: Path, language: str) -> Mapping[str, str]:
    if language == CEL:
        return CEL_VARIABLES
    own = own_names(view.entries, path)[1]
    return {**JMESPATH_VARIABLES, **dict.fromkeys(own, "An entry of `context` of this policy.")}


def _functions(view: DocumentView, language: str) -> Mapping[str, FunctionDoc]:
    return cel_functions(view.group, view.kind) if language == CEL else jmespath_functions()


def _describe_name(view: DocumentView, path: Path, language: str, line: str, column: int) -> JSONObject | None:
    """Return the documentation of the name in an expression: a function, a variable, or a field of the object."""
    found = next((each for each in _NAME.finditer(line) if each.start() <= column < each.end()), None)
    if found is None:
        return None
    # up to the segment under the cursor
    end = line.find(".", column, found.end())
    whole = line[found.start() : end if end >= 0 else found.end()]
    functions = _functions(view, language)
    last = whole.rpartition(".")[2]
    for name in (whole, last) if line[found.start() + len(whole) :].lstrip().startswith("(") else (whole,):
        if name in functions:
            each = functions[name]
            text = "\n".join((each.text, *each.examples[:3]))
            return {"title": name, "detail": "\n".join(each.signatures[:6]), "text": _clip(text)}
    known = {**_variables(view, path, language), **{f"request.{name}": text for name, text in REQUEST_FIELDS.items()}}
    if whole in known:
        return {"title": whole, "detail": "variable", "text": known[whole]}
    node = _object_field(view, path, whole)
    return None if node is None else {"title": whole, "detail": _detail(node), "text": _clip(node.text)}


# --------------------------------------------------------------------------------------------------------- shapes


def _item(label: str, insert: str = "", detail: str = "", text: str = "") -> JSONObject:
    return {"label": label, "insert": insert or label, "detail": detail, "text": _clip(text)}


def _clip(text: str) -> str:
    return text if len(text) <= _MOST_TEXT else f"{text[: _MOST_TEXT - 1]}…"


def _fits(label: str, prefix: str) -> bool:
    """Return whether a label contains the typed text, ignoring case."""
    return prefix.casefold() in label.casefold()


def _text(request: JSONObject, name: str) -> str:
    found = request.get(name, "")
    if not isinstance(found, str):
        raise UsageError(f"`{name}` must be a text")
    return found


def _number(request: JSONObject, name: str) -> int:
    found = request.get(name)
    if isinstance(found, bool) or not isinstance(found, int) or not 0 <= found <= 10_000_000:
        raise UsageError(f"`{name}` must be a number")
    return found


def _column(request: JSONObject) -> int:
    return _number(request, "column")
