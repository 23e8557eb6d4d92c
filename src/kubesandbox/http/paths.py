"""Answers at paths that name no objects: health, version, discovery, OpenAPI, metrics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping

import orjson
from aiohttp import web

from kubesandbox.apiserver import ApiServer
from kubesandbox.discovery import groups as discovery
from kubesandbox.discovery.openapi import OpenApi
from kubesandbox.discovery.swagger import SWAGGER_MEDIA
from kubesandbox.http.replies import Form, discovery_version, document_form, dump
from kubesandbox.parsing.requests import Target
from pyverno.kube.json import JSONObject
from pyverno.kube.status import not_allowed, path_not_found

__all__ = ["NO_SNIFFING", "Paths", "nothing_here"]

_HEALTH = ("healthz", "livez", "readyz")
_CHECKS = ("ping", "log", "etcd")
_EXACT = frozenset({*_HEALTH, "openapi", "metrics"})
"""Paths that no slash may follow."""
_PRETTY = Form(is_pretty=True)
NO_SNIFFING: Mapping[str, str] = {"X-Content-Type-Options": "nosniff"}
"""The header of texts and refusals: browsers take them for nothing else."""
_GROUP_LIST = "application/json;g=apidiscovery.k8s.io;v={};as=APIGroupDiscoveryList"


class Paths:
    """Everything beside the objects."""

    def __init__(self, server: ApiServer, documents: Mapping[str, Callable[[], JSONObject]]) -> None:
        """Take the server whose types are listed, and further documents by their path."""
        self._documents = documents
        self._server = server
        self._openapi: OpenApi | None = None
        self._made_for: tuple[object, object] = (None, None)
        self.answered: Counter[tuple[str, int]] = Counter()
        """How many requests of each verb ended with each code."""

    async def answer(self, request: web.BaseRequest, target: Target, query: Mapping[str, str]) -> web.StreamResponse:
        """Answer a request for a path that is no resource's."""
        parts = [part for part in target.path.split("/") if part]
        if request.method != "GET" and self._is_strict(parts):
            raise not_allowed()
        if target.path in self._documents:
            return _json(self._documents[target.path]())
        if parts[:1] and (parts[0] in _EXACT or parts[:2] == ["openapi", "v2"]) and target.path.endswith("/"):
            return web.Response(status=404) if parts[:2] == ["openapi", "v3"] else nothing_here()
        match parts:
            case ["api" | "apis"]:
                return self._groups(request, is_core=parts == ["api"])
            case ["api", version]:
                body = _require(discovery.resource_list(self._server.table, "", version))
                return _document(body, document_form(request.headers))
            case ["apis", group]:
                found = discovery.group(self._server.table, group)
                if found is None:
                    return nothing_here()
                return _document(found, document_form(request.headers, is_routed=False))
            case ["apis", group, _] if group not in self._server.table.group_versions():
                return nothing_here()
            case ["apis", group, version]:
                body = _require(discovery.resource_list(self._server.table, group, version))
                return _document(body, document_form(request.headers))
            case ["openapi", "v3"]:
                return self._openapi_answer(request, "", query)
            case ["openapi", "v3", *rest]:
                return self._openapi_answer(request, "/".join(rest), query)
            case ["openapi", "v2"]:
                is_json = "+protobuf" not in request.headers.get("Accept", "")
                data = self._current_openapi().swagger(is_json=is_json)
                return web.Response(
                    body=data, headers={"Content-Type": "application/json" if is_json else SWAGGER_MEDIA}
                )
            case ["version"]:
                document_form(request.headers, known=("application/json",))
                return _document(discovery.version_info(self._server.kube_version), _PRETTY)
            case [name, *checks] if name in _HEALTH:
                return _health(query, name, checks)
            case ["metrics"]:
                return web.Response(text="\n".join(self._metrics()) + "\n")
            case []:
                return _document({"paths": self._paths()}, _PRETTY)
        return nothing_here()

    def _is_strict(self, parts: list[str]) -> bool:
        """Return whether a path can only be read; most others never look at the method, as upstream."""
        match parts:
            case ["api"] | ["version"] | ["api", "v1"]:
                return True
            case ["apis", group, version]:
                return version in self._server.table.group_versions().get(group, ())
        return False

    def _groups(self, request: web.BaseRequest, *, is_core: bool) -> web.Response:
        table, version = self._server.table, discovery_version(request.headers)
        if not version:
            form = document_form(request.headers, is_routed=is_core)
            return _document(discovery.api_versions(request.host) if is_core else discovery.api_groups(table), form)
        data = orjson.dumps(discovery.aggregated(table, is_core, version))
        response = _answer_with_etag(request, data, f'"{hash(data) & (2**64 - 1):016X}"')
        response.headers["Content-Type"] = _GROUP_LIST.format(version)
        response.headers["Vary"] = "Accept"
        return response

    def _openapi_answer(self, request: web.BaseRequest, name: str, query: Mapping[str, str]) -> web.Response:
        openapi = self._current_openapi()
        if not name:
            return _answer_with_etag(request, orjson.dumps(openapi.index()), openapi.etag(""))
        try:
            data, etag = openapi.document(name), openapi.etag(name)
        except KeyError:
            return web.Response(status=404)
        wanted = query.get("hash")
        if wanted and wanted != etag.strip('"'):
            place = f"{request.raw_path.partition('?')[0]}?hash={etag.strip(chr(34))}"
            return web.Response(status=301, headers={"Location": place})
        response = _answer_with_etag(request, data, etag)
        if wanted:
            response.headers["Cache-Control"] = "public, immutable"
        return response

    def _current_openapi(self) -> OpenApi:
        present = (self._server.table, self._server.schemas)
        if self._openapi is None or any(new is not old for new, old in zip(present, self._made_for, strict=True)):
            self._openapi, self._made_for = OpenApi(*present), present
        return self._openapi

    def _paths(self) -> list[str]:
        versions = self._server.table.group_versions()
        groups = [f"/apis/{group}" for group in versions if group]
        served = [f"/apis/{group}/{version}" for group in versions if group for version in versions[group]]
        fixed = ("/api", "/api/v1", "/apis", "/healthz", "/livez", "/metrics", "/openapi/v3", "/readyz", "/version")
        return sorted([*fixed, *groups, *served])

    def _metrics(self) -> Iterator[str]:
        yield "# HELP apiserver_request_total Requests by verb and code."
        yield "# TYPE apiserver_request_total counter"
        for (verb, code), count in sorted(self.answered.items()):
            yield f'apiserver_request_total{{code="{code}",verb="{verb}"}} {count}'
        yield "# HELP apiserver_resource_objects Objects by resource."
        yield "# TYPE apiserver_resource_objects gauge"
        for key in sorted({type.key for type in self._server.table}):
            group, plural = (key.partition(".")[2], key.partition(".")[0])
            count = len(self._server.store.all(key))
            yield f'apiserver_resource_objects{{group="{group}",resource="{plural}"}} {count}'


def _json(body: JSONObject) -> web.Response:
    return web.Response(body=orjson.dumps(body) + b"\n", content_type="application/json")


def _document(body: JSONObject, form: Form) -> web.Response:
    return web.Response(body=dump(body, form), content_type=form.media_type)


def nothing_here() -> web.Response:
    """Answer for a path that is not served: a text, no Status."""
    return web.Response(status=404, text="404 page not found\n", headers=NO_SNIFFING)


def _require(body: JSONObject | None) -> JSONObject:
    if body is None:
        raise path_not_found()
    return body


def _answer_with_etag(request: web.BaseRequest, data: bytes, etag: str) -> web.Response:
    """Answer with an ETag, or with 304 when the client has it already."""
    headers: Mapping[str, str] = {"ETag": etag, "Vary": "Accept"}
    if request.headers.get("If-None-Match") == etag:
        return web.Response(status=304, headers=headers)
    return web.Response(body=data, content_type="application/json", headers=headers)


def _health(query: Mapping[str, str], name: str, checks: list[str]) -> web.Response:
    if checks and checks[0] not in _CHECKS:
        return nothing_here()
    if "verbose" not in query:
        return web.Response(text="ok", headers=NO_SNIFFING)
    lines = [*(f"[+]{check} ok" for check in _CHECKS), f"{name} check passed"]
    return web.Response(text="\n".join(lines) + "\n", headers=NO_SNIFFING)
