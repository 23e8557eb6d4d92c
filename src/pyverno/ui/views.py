"""Views: named filters that a team shares, from files of the project's own form or from boards of Policy Reporter.

```yaml
views:
- name: Failing in production
  filter: {status: fail, namespace: prod-*}
```
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final
from urllib.parse import parse_qsl, urlencode

from pyverno.errors import UsageError
from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.yaml.documents import Document
from pyverno.ui.access.identity import Admission
from pyverno.ui.store.filters import read_filter
from pyverno.value import dataclass, field, replace

__all__ = ["View", "read_views"]

_GROUP: Final = "ui.policyreporter.kyverno.io/"
_LISTS: Final[Mapping[str, str]] = {
    "results": "status",
    "severities": "severity",
    "namespaceKinds": "kind",
    "clusterKinds": "kind",
}
"""The lists of a board's filter, and our fields."""

_KNOWN: Final = frozenset(
    (
        "name",
        "title",
        "namespaces",
        "sources",
        "policyReports",
        "clusterScope",
        "filter",
        "renderOptions",
        "display",
        "accessControl",
    )
)
_MOST: Final = 500


@dataclass(frozen=True, slots=True)
class View:
    """A filter with a name; `query` is as in the address of a page, `notes` name what of a board was left out.

    `admission` limits the users who see the view; views do not change a user's access to results. With `labels` the
    view holds the namespaces that have them. `page` is the one it leads to: results or resources.
    """

    name: str
    query: str
    notes: tuple[str, ...] = ()
    admission: Admission = field(default_factory=Admission)
    labels: Mapping[str, str] = field(default_factory=dict)
    page: str = "results"

    def within(self, namespaces: Iterable[str]) -> View:
        """Return the view of a selector of namespaces (`labels`), given those that have the labels now."""
        names = ",".join(sorted(namespaces)) or "!*"
        query = [(key, text) for key, text in parse_qsl(self.query) if key != "namespace"]
        listed = dict(parse_qsl(self.query)).get("namespace", "")
        text = f"{listed},{names}" if listed else names
        return replace(self, query=urlencode([("namespace", text), *query]), labels={})

    def to_json(self) -> JSONObject:
        """Return the view as the API writes it."""
        return {"name": self.name, "query": self.query, "page": self.page, "notes": [*self.notes]}


def read_views(documents: Iterable[Document]) -> list[View]:
    """Return the views of documents; raises UsageError for a document of another form or a wrong filter.

    >>> from pyverno.kube.yaml.documents import load_documents
    >>> [view.query for view in read_views(load_documents("views: [{name: a, filter: {status: fail}}]"))]
    ['status=fail']
    """
    found: list[View] = []
    for document in documents:
        for view in _views(document):
            _check(view, document)
            found.append(view)
            if len(found) > _MOST:
                raise UsageError(f"more than {_MOST} views", location=document.location())
    return found


def _views(document: Document) -> Iterator[View]:
    body = document.value
    if isinstance(body, dict) and str(body.get("apiVersion", "")).startswith(_GROUP):
        if body.get("kind") in ("CustomBoard", "NamespaceCustomBoard"):
            yield _of_resource(body, _mapping(body, "spec", document), document)
            return
    elif isinstance(body, dict) and ("views" in body or "customBoards" in body):
        for item in _items(body, "views", document):
            filters = _mapping(item, "filter", document)
            query = urlencode({key: _join(each) for key, each in filters.items()})
            yield View(_name(item, document), query, admission=_admission(item, document))
        for item in _items(body, "customBoards", document):
            yield _of_board(_name(item, document), item, document)
        return
    raise UsageError("expected `views`, `customBoards` or a CustomBoard", location=document.location())


def _of_resource(body: JSONObject, spec: JSONObject, document: Document) -> View:
    metadata = _mapping(body, "metadata", document)
    name = str(spec.get("title") or spec.get("name") or metadata.get("name") or "board")
    if body["kind"] == "NamespaceCustomBoard":
        # a board of a namespace shows this namespace, whatever it lists
        spec = {**spec, "namespaces": {"list": [str(metadata.get("namespace") or "default")]}, "clusterScope": {}}
    return _of_board(name, spec, document)


def _of_board(name: str, board: JSONObject, document: Document) -> View:
    """Return the view of a board of Policy Reporter."""
    query: dict[str, list[str]] = {}
    notes: list[str] = [f"`{key}` has no meaning here" for key in board if key not in _KNOWN]
    namespaces = _mapping(board, "namespaces", document)
    query["namespace"] = _texts(namespaces.get("list"))
    wanted = _mapping(namespaces, "selector", document)
    wanted = _mapping(wanted, "matchLabels", document) or wanted
    chosen = {key: value for key, value in wanted.items() if isinstance(value, str)}
    if len(chosen) < len(wanted):
        notes.append("of `namespaces.selector` only labels with one value are read")
    query["source"] = _texts(_mapping(board, "sources", document).get("list"))
    selector = _mapping(_mapping(board, "policyReports", document), "selector", document)
    labels = selector.get("matchLabels", selector)
    for key, value in labels.items() if isinstance(labels, dict) else ():
        query[f"label.{key}"] = _texts(value)
    rules = _mapping(board, "filter", document)
    for sign, part in (("", "include"), ("!", "exclude")):
        for key, texts in _mapping(rules, part, document).items():
            field = _LISTS.get(key)
            if field is None:
                notes.append(f"`filter.{part}.{key}` is left out: there is no such field")
                continue
            query.setdefault(field, []).extend(f"{sign}{text}" for text in _texts(texts))
    if query["namespace"] and _mapping(board, "clusterScope", document).get("enabled") is True:
        query["namespace"].append("-")
    text = urlencode({key: ",".join(texts) for key, texts in query.items() if texts})
    shows_objects = _mapping(board, "renderOptions", document).get("resultView") == "resources"
    page = "resources" if shows_objects or board.get("display") == "resources" else "results"
    return View(name, text, tuple(notes), _admission(board, document), chosen, page)


def _admission(item: JSONObject, document: Document) -> Admission:
    """Return the users who see a view: `accessControl` with `emails` and `groups`, as Policy Reporter has it."""
    found = _mapping(item, "accessControl", document)
    return Admission(tuple(_texts(found.get("emails"))), tuple(_texts(found.get("groups"))))


def _check(view: View, document: Document) -> None:
    try:
        read_filter(parse_qsl(view.query, keep_blank_values=True), 0)
    except UsageError as error:
        raise UsageError(f"view `{view.name}`: {error.message}", location=document.location()) from error


def _name(item: JSONObject, document: Document) -> str:
    name = item.get("name")
    if not isinstance(name, str) or not name:
        raise UsageError("a view has no name", location=document.location())
    return name


def _items(body: JSONObject, key: str, document: Document) -> Sequence[JSONObject]:
    found = body.get(key) or []
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise UsageError(f"`{key}` must be a list of mappings", location=document.location((key,)))
    return found


def _mapping(body: JSONObject, key: str, document: Document) -> JSONObject:
    found = body.get(key) or {}
    if not isinstance(found, dict):
        raise UsageError(f"`{key}` must be a mapping", location=document.location())
    return found


def _texts(value: JSON) -> list[str]:
    return [str(each) for each in value] if isinstance(value, list) else [str(value)] if value else []


def _join(value: JSON) -> str:
    return ",".join(_texts(value))
