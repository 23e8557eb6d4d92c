"""One HTTP request: its target, user and body, and the forms of its response."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from aiohttp import web

from kubesandbox.apiserver import ApiServer
from kubesandbox.attributes import Notes
from kubesandbox.http.dates import DateHeader
from kubesandbox.http.replies import Form, Writer, status_bytes
from kubesandbox.http.warnings import warning_headers
from kubesandbox.parsing.bodies import MAX_BYTES, MEDIA_TYPES, Body, media_type, read_body, too_large
from kubesandbox.parsing.requests import Target, WriteOptions, parse_target, wants_watch
from kubesandbox.parsing.urls import parse_url
from kubesandbox.reviews import Reviews
from kubesandbox.types.resources import ResourceType
from kubesandbox.writes import Outcome, Write
from pyverno.engine.request import User
from pyverno.kube.apply.serverside import manager_name
from pyverno.kube.status import StatusError

__all__ = ["Call"]


class Call:
    """One request with its parsed parts."""

    def __init__(self, request: web.BaseRequest, server: ApiServer, reviews: Reviews, date: DateHeader) -> None:
        """Take the request and the operations; raises ValueSyntaxError for a path that cannot be read."""
        self.date = date
        self.request = request
        self.reviews = reviews
        self.server = server
        path, found = parse_url(request.raw_path)
        self.query: Mapping[str, str] = found
        self.target: Target = parse_target(request.method, path, is_watch=wants_watch(found))
        self.notes = Notes()
        self.user = User()
        self.check_create: Callable[[], None] = lambda: None
        """Raises StatusError when the user may not create the object that an update or a patch names."""
        self.form = Form()
        self.is_ending = False
        """Whether the server itself ends this watch."""

    @property
    def media_type(self) -> str:
        """The media type of the body."""
        return media_type(self.request.headers.get("Content-Type", ""))

    def namespace(self, kind: ResourceType) -> str:
        """Return the namespace of the objects that the path names; a Namespace is in none."""
        return self.target.namespace if kind.namespaced else ""

    def write(self, kind: ResourceType, options: WriteOptions) -> Write:
        """Return the write that this request describes."""
        manager = manager_name(options.field_manager, self.request.headers.get("User-Agent", "")) or "unknown"
        target = self.target
        return Write(
            type=kind,
            namespace=self.namespace(kind),
            name=target.name,
            subresource=target.subresource,
            user=self.user,
            options=options,
            notes=self.notes,
            manager=manager,
            check_create=self.check_create,
        )

    async def data(self) -> bytes:
        """Read the body up to the size limit of an API server; raises StatusError 413."""
        length = self.request.content_length
        if length is not None and length > MAX_BYTES:
            raise too_large()
        if self.request.headers.get("Expect", "").lower() == "100-continue":
            await self.request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            self.request.writer.output_size = 0
        data = bytearray()
        async for chunk in self.request.content.iter_any():
            data += chunk
            if len(data) > MAX_BYTES:
                raise too_large()
        return bytes(data)

    async def body(self, kind: str) -> Body:
        """Read the object in the body; `kind` is the one that is expected."""
        content_type = self.request.headers.get("Content-Type", "")
        return read_body(await self.data(), content_type, kind=kind, accepted=MEDIA_TYPES)

    def reply(self, kind: ResourceType, outcome: Outcome) -> web.Response:
        """Answer with one object."""
        return self.respond(self.writer(kind).one(outcome.body, outcome.state), outcome.status)

    def writer(self, kind: ResourceType) -> Writer:
        """Return the writer of objects of a type in the form that this client accepts."""
        return Writer(kind, self.form, self.server.now(), self.server.definition_of(kind))

    def respond(self, data: bytes, status: int = 200) -> web.Response:
        """Respond with bytes in the accepted form, and with the warnings."""
        response = web.Response(body=data, status=status, content_type=self.form.media_type)
        for header in warning_headers(self.notes.warnings):
            response.headers.add("Warning", header)
        return response

    def refuse(self, error: StatusError) -> web.Response:
        """Answer with an error."""
        response = self.respond(status_bytes(error, self.form), error.status)
        if error.retry_after:
            response.headers["Retry-After"] = str(error.retry_after)
        return response
