"""`/v2`: the routes of Policy Reporter's API that read results, for its UI, plug-ins and scripts.

Filters are exact, as there; lists are `{items, count}` with `page` and `offset` (the size of a page). A filter that
this store cannot answer is an error, never an unfiltered list. Results are in our order, the worst first.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Final

import orjson
from aiohttp import web

from pyverno.errors import UsageError
from pyverno.kube.json import JSON, JSONObject
from pyverno.report.collected import STATUSES
from pyverno.ui.store.filters import Filter, check_keys, check_text, quote_pattern
from pyverno.ui.store.pool import ReaderPool
from pyverno.ui.store.reader import MOST_ROWS, Reader
from pyverno.ui.store.rows import StoredResult

# trust rows: browser

__all__ = ["PolicyReporterRoutes"]

_FIELDS: Final = {
    "namespaces": "namespace",
    "kinds": "kind",
    "resources": "name",
    "apis": "apiVersion",
    "sources": "source",
    "categories": "category",
    "severities": "severity",
    "policies": "policy",
    "rules": "rule",
    "status": "status",
}
_ORDERING: Final = ("page", "offset", "sortBy", "direction", "namespaced", "search", "labels")
_MOST_VALUES: Final = 1000
_NO_CATEGORY: Final = "Other"
_UNKNOWN: Final = "unknown"
_SEVERITIES: Final = ("info", "low", "medium", "high", "critical", _UNKNOWN)
_SCOPES: Final = {"namespace-scoped": "!", "cluster-scoped": ""}
"""The pattern of the namespace: `!` excludes the empty one."""

Question = Callable[[Reader, Filter, web.Request], JSON]


class PolicyReporterRoutes:
    """Handlers of the routes; they only read."""

    def __init__(self, readers: ReaderPool) -> None:
        """Take the readers of the store."""
        self._readers = readers

    def routes(self) -> Iterable[web.RouteDef]:
        """Return the routes, relative to the base path."""
        plain: Mapping[str, Question] = {
            "sources": lambda reader, chosen, _: _values(reader, chosen, "source"),
            "sources/categories": lambda reader, chosen, _: _categories(reader, chosen),
            "sources/{source}/use-resources": lambda reader, chosen, _: {
                "resources": bool(_values(reader, chosen, "kind"))
            },
            "namespaces": lambda reader, chosen, _: _values(reader, chosen, "namespace"),
            "policies": lambda reader, chosen, _: _policies(reader, chosen),
            "findings": lambda reader, chosen, _: _findings(reader, chosen, "status"),
            "severity-findings": lambda reader, chosen, _: _findings(reader, chosen, "severity"),
            "sources/{source}/status-counts": lambda reader, chosen, _: _total_counts(reader, chosen, "status"),
            "sources/{source}/severity-counts": lambda reader, chosen, _: _total_counts(reader, chosen, "severity"),
            "properties/{property}": lambda reader, chosen, request: [
                {"namespace": namespace, "property": value}
                for namespace, value in reader.property_values(chosen, request.match_info["property"])
            ],
            "results-without-resources": lambda reader, chosen, request: _results(
                reader, chosen.with_patterns("kind", ("",)), request
            ),
        }
        scoped: Mapping[str, Question] = {
            "results": _results,
            "resource-results": _resources,
            "kinds": lambda reader, chosen, _: _values(reader, chosen, "kind"),
            "{source}/status-counts": lambda reader, chosen, request: _scope_counts(reader, chosen, request, "status"),
            "{source}/severity-counts": lambda reader, chosen, request: _scope_counts(
                reader, chosen, request, "severity"
            ),
        }
        single: Mapping[str, Question] = {
            "": lambda reader, _, request: _describe(_object(reader, request)),
            "/results": _results,
            "/resource-results": _by_source,
            "/status-counts": lambda reader, chosen, _: _source_counts(reader, chosen, "status"),
            "/severity-counts": lambda reader, chosen, _: _source_counts(reader, chosen, "severity"),
            "/source-categories": lambda reader, chosen, _: _categories(reader, chosen),
        }
        for path, question in single.items():
            yield web.get(f"/v2/resource/{{id}}{path}", self._answer(_of_object(question)))
        for path, question in plain.items():
            yield web.get(f"/v2/{path}", self._answer(question))
        for scope, pattern in _SCOPES.items():
            for path, question in scoped.items():
                yield web.get(f"/v2/{scope}/{path}", self._answer(question, pattern))

    def _answer(
        self, question: Question, namespace: str | None = None
    ) -> Callable[[web.Request], Awaitable[web.Response]]:
        async def handle(request: web.Request) -> web.Response:
            chosen = _filter(request, namespace)
            found = await self._readers.ask(lambda reader: question(reader, chosen, request))
            return web.Response(body=orjson.dumps(found), content_type="application/json")

        return handle


def _filter(request: web.Request, namespace: str | None) -> Filter:
    fields: dict[str, tuple[str, ...]] = {}
    labels: dict[str, tuple[str, ...]] = {}
    excluded: dict[str, tuple[str, ...]] = {}
    for text in (*request.query.values(), *request.match_info.values()):
        check_text(text)
    for name, text in request.query.items():
        if name in _FIELDS:
            value = "" if name == "categories" and text == _NO_CATEGORY else text
            fields[_FIELDS[name]] = (*fields.get(_FIELDS[name], ()), quote_pattern(value))
        elif name == "labels":
            key, _, value = text.partition(":")
            labels[key] = (*labels.get(key, ()), quote_pattern(value))
        elif name == "exclude":
            # several kinds of a source, and several sources
            owner, _, kinds = text.partition(":")
            excluded[owner] = (*excluded.get(owner, ()), *(kind for kind in kinds.split(",") if kind))
        elif name not in _ORDERING:
            raise UsageError(f"`{name[:100]}` is no filter of this server")
    if source := request.match_info.get("source"):
        fields["source"] = (quote_pattern(source),)
    if namespace is not None:
        # beside chosen namespaces, `!` only removes the empty namespace
        chosen = fields.get("namespace", ())
        fields["namespace"] = (*chosen, "!") if namespace else ("",) if not chosen else ("", "!")
    if sum(map(len, (*excluded.values(), *fields.values(), *labels.values()))) > _MOST_VALUES:
        raise UsageError(f"a filter has more than {_MOST_VALUES} values")
    check_keys(labels)
    search = request.query.get("search", "")[:256]
    return Filter(fields, labels=labels, search=search, excluded_kinds=excluded)


def _page(request: web.Request) -> tuple[int, int]:
    """Return the size of a page, and the number of rows before it."""
    numbers = [request.query.get(name, default) for name, default in (("offset", "50"), ("page", "1"))]
    if not all(text.isascii() and text.isdigit() and len(text) < 8 for text in numbers):
        raise UsageError("`page` and `offset` must be numbers")
    size, page = max(1, min(int(numbers[0]), MOST_ROWS)), max(1, int(numbers[1]))
    return size, size * (page - 1)


def _results(reader: Reader, chosen: Filter, request: web.Request) -> JSON:
    size, skipped = _page(request)
    page = reader.results(
        chosen,
        limit=size,
        offset=skipped,
        sorted_by=request.query.getall("sortBy", []),
        is_descending=request.query.get("direction", "").lower() == "desc",
    )
    return {"items": [_result(each) for each in page.items], "count": page.total}


def _result(stored: StoredResult) -> JSONObject:
    found, ref = stored.collected.finding, stored.collected.finding.resource
    item: JSONObject = {
        "id": str(stored.id),
        "namespace": ref.namespace,
        "kind": ref.kind,
        "apiVersion": ref.api_version,
        "name": ref.name,
        "resourceId": str(stored.object_id),
        "message": found.message,
        "category": found.category,
        "policy": found.policy,
        "rule": found.rule,
        "status": found.status,
        "source": stored.collected.source,
        "severity": found.severity,
        "timestamp": stored.changed,
        "properties": dict(found.properties),
    }
    return _without_empty(item, ("namespace", "category", "severity", "timestamp", "properties"))


def _resources(reader: Reader, chosen: Filter, request: web.Request) -> JSON:
    size, skipped = _page(request)
    sources = chosen.fields.get("source", ())
    page = reader.resources(chosen, limit=size, offset=skipped)["items"]
    severities = reader.object_severities(chosen, [each["id"] for each in page])
    items = [
        _without_empty(
            {
                "id": str(each["id"]),
                "uid": "",
                "name": each.get("name", ""),
                "kind": each.get("kind", ""),
                "apiVersion": each.get("apiVersion", ""),
                "namespace": each.get("namespace", ""),
                "source": request.match_info.get("source") or (request.query["sources"] if len(sources) == 1 else ""),
                "status": each["status"],
                "severities": _severities(severities[each["id"]]),
            },
            ("namespace", "source"),
        )
        for each in page
    ]
    return {"items": items, "count": reader.count_resources(chosen)}


def _values(reader: Reader, chosen: Filter, field: str) -> list[JSON]:
    return sorted({value for value, _ in reader.counts(chosen, (field,)) if value})


def _categories(reader: Reader, chosen: Filter) -> JSON:
    found: dict[str, dict[str, JSONObject]] = {}
    for source, category, severity, status, count in reader.counts(
        chosen, ("source", "category", "severity", "status")
    ):
        name = category or _NO_CATEGORY
        item = found.setdefault(source, {}).setdefault(
            name, {"name": name, "status": dict.fromkeys(STATUSES, 0), "severities": _severities({})}
        )
        item["status"][status] += count
        item["severities"][severity or _UNKNOWN] += count
    return [{"name": source, "categories": [*categories.values()]} for source, categories in found.items()]


def _policies(reader: Reader, chosen: Filter) -> JSON:
    found: dict[str, JSONObject] = {}
    names = ("policy", "source", "category", "severity", "status")
    for policy, source, category, severity, status, count in reader.counts(chosen, names):
        item = {"source": source, "category": category or _NO_CATEGORY, "policy": policy, "severity": severity}
        results = found.setdefault(policy, {**item, "results": {}})["results"]
        results[status] = results.get(status, 0) + count
    return [_without_empty(each, ("source", "severity")) for each in found.values()]


def _findings(reader: Reader, chosen: Filter, field: str) -> JSON:
    sources: dict[str, dict[str, int]] = {}
    totals: dict[str, int] = {}
    for source, found, count in reader.counts(chosen, ("source", field)):
        value = found or _UNKNOWN
        counts = sources.setdefault(source, {})
        counts[value] = counts.get(value, 0) + count
        totals[value] = totals.get(value, 0) + count
    counts_of = [{"total": sum(each.values()), "source": name, "counts": each} for name, each in sources.items()]
    return {"total": sum(totals.values()), "perResult": totals, "counts": counts_of}


def _total_counts(reader: Reader, chosen: Filter, field: str) -> JSON:
    found = _no_counts(field)
    for value, count in reader.counts(chosen, (field,)):
        found[value or _UNKNOWN] += count
    return found


def _source_counts(reader: Reader, chosen: Filter, field: str) -> list[JSON]:
    found: dict[str, dict[str, int]] = {}
    for source, value, count in reader.counts(chosen, ("source", field)):
        found.setdefault(source, _no_counts(field))[value or _UNKNOWN] += count
    return [_without_empty({"source": source, **counts}, ("source",)) for source, counts in found.items()]


# ----------------------------------------------------------------------------------------------------------- one object


def _of_object(question: Question) -> Question:
    """Return the filter for the results of the object that the path names."""

    def ask(reader: Reader, chosen: Filter, request: web.Request) -> JSON:
        found = _object(reader, request)
        for field in ("cluster", "kind", "namespace", "name", "apiVersion"):
            chosen = chosen.narrowed(field, (str(found.get(field, "")),))
        return question(reader, chosen, request)

    return ask


def _object(reader: Reader, request: web.Request) -> JSONObject:
    text = request.match_info["id"]
    found = reader.resource(int(text)) if text.isascii() and text.isdigit() and len(text) < 17 else None
    if found is None:
        raise web.HTTPNotFound(text="there is no such resource")
    return found


def _describe(found: JSONObject) -> JSONObject:
    item = {name: found.get(name, "") for name in ("name", "kind", "apiVersion", "namespace")}
    return _without_empty({"id": str(found["id"]), **item}, tuple(item))


def _by_source(reader: Reader, chosen: Filter, request: web.Request) -> JSON:
    """Return the counts of an object, once for each source."""
    described = {"uid": "", **_describe(_object(reader, request))}
    severities = {each.pop("source", ""): each for each in _source_counts(reader, chosen, "severity")}
    return [
        {**described, "source": source, "status": counts, "severities": severities[source]}
        for counts in _source_counts(reader, chosen, "status")
        for source in [counts.pop("source", "")]
    ]


# --------------------------------------------------------------------------------------------------------------- counts


def _scope_counts(reader: Reader, chosen: Filter, request: web.Request, field: str) -> JSON:
    """Return the counts by status or severity: by namespace, or of the cluster's own objects."""
    empty = _no_counts(field)
    found: dict[str, dict[str, int]] = {}
    for namespace, value, count in reader.counts(chosen, ("namespace", field)):
        counts = found.setdefault(namespace, dict(empty))
        counts[value or _UNKNOWN] += count
    return found if "/namespace-scoped/" in request.path else found.get("", empty)


def _no_counts(field: str) -> dict[str, int]:
    return dict.fromkeys(STATUSES if field == "status" else _SEVERITIES, 0)


def _severities(counts: Mapping[str, int]) -> dict[str, int]:
    return _no_counts("severity") | {name or _UNKNOWN: count for name, count in counts.items()}


def _without_empty(item: JSONObject, names: Iterable[str]) -> JSONObject:
    """Return an object without those of some fields that are empty."""
    left: tuple[Any, ...] = tuple(names)
    return {key: value for key, value in item.items() if value or key not in left}
