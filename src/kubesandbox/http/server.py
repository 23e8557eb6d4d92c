"""The HTTP server: authentication, authorization, the operation, and the response.

One request after another per connection, any number of connections; TLS with client certificates. Whatever goes wrong
inside becomes an InternalError for the client and a log entry here.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import partial
from hashlib import sha256
from time import perf_counter
from typing import Any
from weakref import WeakKeyDictionary

from aiohttp import web

from kubesandbox.apiserver import ApiServer
from kubesandbox.audit import AuditLog, AuditRecord
from kubesandbox.authentication.authenticator import Authenticator, impersonated
from kubesandbox.authorization.access import AccessAttributes, Authorizer, forbidden_access
from kubesandbox.discovery.deprecations import deprecation
from kubesandbox.http.call import Call
from kubesandbox.http.compression import compress
from kubesandbox.http.connections import Connections, unmet, unreadable
from kubesandbox.http.dates import DateHeader, machine_time
from kubesandbox.http.operations import operation_of
from kubesandbox.http.paths import NO_SNIFFING, Paths, nothing_here
from kubesandbox.http.replies import accepted_form
from kubesandbox.objects.identity import check_segment
from kubesandbox.parsing.requests import Target
from kubesandbox.reviews import Reviews
from kubesandbox.types.resources import ResourceType
from pyverno.engine.request import User
from pyverno.errors import ValueSyntaxError
from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.status import (
    StatusError,
    bad_request,
    forbidden,
    internal_error,
    not_allowed,
    not_found,
    path_not_found,
)
from pyverno.value import replace

__all__ = ["HttpServer"]

_log = logging.getLogger(__name__)
_SHUTDOWN_SECONDS = 1.0
_LAST_EVENTS_SECONDS = 0.1


class HttpServer:
    """Serves an `ApiServer` over HTTPS."""

    def __init__(
        self,
        server: ApiServer,
        *,
        authenticator: Authenticator,
        authorizer: Authorizer,
        reviews: Reviews,
        documents: Mapping[str, Callable[[], JSONObject]] | None = None,
        log_request: Callable[[str], None] | None = None,
        audit: AuditLog | None = None,
        clock: Callable[[], datetime] = machine_time,
    ) -> None:
        """Take the operations, the authorizer, and the reviews that answer questions about it.

        `documents` are further answers by their path; `log_request` gets one line per request, `audit` what was noted
        about it. Date headers show `clock`.
        """
        self._date = DateHeader(clock)
        self._audit = audit or AuditLog()
        self._reviews = reviews
        self._server = server
        self._authenticator = authenticator
        self._authorizer = authorizer
        self._log_request = log_request
        server.on_withdrawn = self._end_watches_of
        self._paths = Paths(server, documents or {})
        self._watches: dict[asyncio.Task[Any], tuple[Call, ResourceType]] = {}
        self._certificates: WeakKeyDictionary[Any, Mapping[str, JSON] | None] = WeakKeyDictionary()
        self._connections: Connections | None = None
        self._runner: web.ServerRunner | None = None

    async def start(self, address: str, port: int, context: ssl.SSLContext | None) -> int:
        """Begin to listen and return the port; port 0 takes a free one."""
        self._connections = Connections(self._answer, handler_cancellation=True)
        self._runner = web.ServerRunner(self._connections, shutdown_timeout=_SHUTDOWN_SECONDS, access_log=None)
        await self._runner.setup()
        await web.TCPSite(self._runner, address, port, ssl_context=context).start()
        found: int = self._runner.addresses[0][1]
        return found

    async def stop(self) -> None:
        """End all watches, let the other requests finish, and close."""
        self._end_watches(lambda _: True)
        if self._runner is None or self._connections is None:
            return
        self._connections.refuse()
        await self._runner.cleanup()
        # a graceful close would wait for clients
        self._connections.drop()
        await asyncio.sleep(0)

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        started = perf_counter()
        try:
            call = Call(request, self._server, self._reviews, self._date)
        except ValueSyntaxError:
            return unreadable()
        refused = unmet(request)
        if refused is not None:
            return refused
        try:
            response = await self._route(call)
        except StatusError as error:
            response = call.refuse(error)
        except RecursionError:
            response = call.refuse(bad_request("the request is nested too deeply"))
        except web.RequestPayloadError:
            response = call.refuse(bad_request("the body of the request cannot be read"))
        except (ConnectionResetError, asyncio.CancelledError):
            raise
        except Exception as error:
            _log.exception("request failed", extra={"method": request.method, "path": request.path})
            response = call.refuse(internal_error(type(error).__name__))
        if not response.prepared:
            await compress(request, response)
            if response.status == 403:
                response.headers.update(NO_SNIFFING)
            response.headers.setdefault("Cache-Control", "no-cache, private")
            response.headers["Date"] = self._date.text()
        self._paths.answered[call.target.verb, response.status] += 1
        self._record_call(call, response.status, (perf_counter() - started) * 1000)
        return response

    def _record_call(self, call: Call, status: int, milliseconds: float) -> None:
        """Log a request, and keep its audit record."""
        request, user = call.request, call.user.username or "-"
        record = AuditRecord(request.method, request.path_qs, user, status, dict(call.notes.annotations))
        self._audit.add(record)
        if self._log_request is not None:
            line, noted = f"{request.method} {request.path_qs} {status} {milliseconds:.1f}ms {user}", record.to_line()
            self._log_request(f"{line} {noted}" if noted else line)

    async def _route(self, call: Call) -> web.StreamResponse:
        target = call.target
        call.user = self._user(call.request)
        self._authorize(call)
        if target.path.startswith("//"):
            return nothing_here()
        if not target.is_resource:
            return await self._paths.answer(call.request, target, call.query)
        call.form = accepted_form(call.request.headers, call.query, is_list=not target.name)
        kind = self._server.table.find(target.group, target.version, target.plural)
        if kind is None or not _is_served(kind, target):
            if kind is not None and kind.is_custom and target.name and target.subresource:
                raise not_found(kind.group, kind.plural, target.name)
            if kind is None and all(each.is_custom for each in self._server.table if each.group == target.group):
                return nothing_here()
            raise path_not_found()
        operation = operation_of(kind, target.verb, target.subresource) if _is_allowed(kind, target) else None
        if operation is None or call.request.method == "HEAD":
            raise not_allowed()
        warning = deprecation(kind, self._server.kube_version, self._server.definition_of(kind))
        if warning:
            call.notes.warn(warning)
        check_segment(target.name)
        if target.verb != "watch":
            return await operation(call, kind)
        task = asyncio.current_task()
        assert task is not None  # noqa: S101  # a coroutine that runs has one
        self._watches[task] = call, kind
        try:
            return await operation(call, kind)
        finally:
            del self._watches[task]

    def _end_watches_of(self, name: str) -> None:
        """End the watches of a deleted definition, after they have reported the deletion of its objects."""
        loop = asyncio.get_running_loop()
        loop.call_later(_LAST_EVENTS_SECONDS, self._end_watches, lambda kind: kind.crd == name)

    def _end_watches(self, is_meant: Callable[[ResourceType], bool]) -> None:
        for task, (call, kind) in self._watches.items():
            if is_meant(kind):
                call.is_ending = True
                task.cancel()

    def _user(self, request: web.BaseRequest) -> User:
        user = self._authenticator.authenticate(request.headers, self._certificate(request))
        if any(name.lower().startswith("impersonate-") for name in request.headers):
            return impersonated(user, request.headers, self._authorizer)
        return user

    def _certificate(self, request: web.BaseRequest) -> Mapping[str, JSON] | None:
        """Return the fields of the client certificate, read once per connection."""
        connection = request.transport.get_extra_info("ssl_object") if request.transport is not None else None
        if connection is None:
            return None
        if connection not in self._certificates:
            found = connection.getpeercert()
            raw = connection.getpeercert(binary_form=True)
            self._certificates[connection] = {**found, "sha256": sha256(raw).hexdigest()} if found else None
        return self._certificates[connection]

    def _authorize(self, call: Call) -> None:
        attributes = _attributes(call)
        access = self._authorizer.authorize(attributes)
        if not access.allowed:
            raise forbidden_access(attributes, access.reason)
        if attributes.verb in ("update", "patch"):
            call.check_create = partial(self._check_create, replace(attributes, verb="create"))

    def _check_create(self, attributes: AccessAttributes) -> None:
        """Raise 403 unless the user may create; the text is that of upstream, the authorizer's reason alone."""
        access = self._authorizer.authorize(attributes)
        if not access.allowed:
            raise forbidden(attributes.group, attributes.resource, attributes.name, access.reason)


def _attributes(call: Call) -> AccessAttributes:
    target = call.target
    if not target.is_resource:
        return AccessAttributes(call.user, target.verb, path=target.path)
    return AccessAttributes(
        user=call.user,
        verb=target.verb,
        group=target.group,
        version=target.version,
        resource=target.plural,
        subresource=target.subresource,
        namespace=target.namespace,
        name=target.name or _selected_name(call),
    )


def _is_served(kind: ResourceType, target: Target) -> bool:
    """Return whether a path fits its type: its scope, and its subresource."""
    if kind.key != "namespaces":
        if target.name and kind.namespaced != bool(target.namespace):
            return False
        if target.namespace and not kind.namespaced:
            return False
    if target.rest and target.subresource != "proxy":
        return False
    return not target.subresource or target.subresource in kind.subresources


def _is_allowed(kind: ResourceType, target: Target) -> bool:
    """Return whether a verb can be meant at a path: collections and objects have different ones."""
    if target.subresource or target.verb in ("get", "list", "watch"):
        return True
    is_whole = kind.namespaced and not target.namespace
    if target.verb in ("create", "deletecollection"):
        return not target.name and not is_whole
    return bool(target.name)


def _selected_name(call: Call) -> str:
    """Return the one name that a list or watch selects: permissions may be granted for names."""
    if call.target.verb not in ("list", "watch", "deletecollection"):
        return ""
    for term in call.query.get("fieldSelector", "").split(","):
        key, _, value = term.partition("=")
        if key == "metadata.name":
            return value.removeprefix("=")
    return ""
