"""The encoding of answers: the form that the client accepts, objects, lists, watch events and errors as bytes.

Lists and events are joined out of the bytes that the store keeps.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

import orjson

from kubesandbox.storage.listing import Page
from kubesandbox.storage.store import Stored
from kubesandbox.storage.watching import Event
from kubesandbox.tables import to_table
from kubesandbox.types.conversion import to_version
from kubesandbox.types.resources import ResourceType
from pyverno.kube.json import JSONObject, decode, encode_indent
from pyverno.kube.json import dump as dump_json
from pyverno.kube.status import StatusError, not_acceptable

__all__ = ["Form", "Shape", "Writer", "accepted_form", "discovery_version", "document_form", "dump", "status_bytes"]

_JSON = "application/json"
_YAML = "application/yaml"
_WRITTEN = {_JSON: _JSON, _YAML: _YAML, "application/*": _JSON, "*/*": _JSON}
_META = "meta.k8s.io"
_PROTOBUF = "application/vnd.kubernetes.protobuf"
_AVAILABLE = (_JSON, _YAML, _PROTOBUF)
_STREAMS = (f"{_JSON};stream=watch", f"{_PROTOBUF};stream=watch")


class Shape(StrEnum):
    """As what objects are wanted."""

    PLAIN = ""
    TABLE = "Table"
    PARTIAL = "PartialObjectMetadata"


@dataclass(frozen=True, slots=True)
class Form:
    """A form of answers: the media type, the shape, and for tables what is behind each row."""

    media_type: str = _JSON
    shape: Shape = Shape.PLAIN
    version: str = "v1"
    include_object: str = "Metadata"
    is_pretty: bool = False


def accepted_form(headers: Mapping[str, str], query: Mapping[str, str], *, is_list: bool = False) -> Form:
    """Return the form that a client likes best of those that can be written; raises StatusError 406.

    Lists can also be streams, which the text of the error mentions.

    >>> accepted_form({"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"}, {}).shape.value
    'Table'
    """
    header = headers.get("Accept") or "*/*"
    agent = headers.get("User-Agent", "")
    is_pretty = query.get("pretty", "").lower() in ("true", "1") or (
        "pretty" not in query and agent.startswith(("curl/", "Wget/", "Mozilla/5.0"))
    )
    include = query.get("includeObject") or "Metadata"
    ranges = [*_ranges(header)]
    if not any(media in (_JSON, _YAML, "*/*") for media, _ in ranges):
        raise _no_representation((*_AVAILABLE, *_STREAMS) if is_list else _AVAILABLE)
    for media, parameters in ranges:
        written = _WRITTEN.get(media)
        if written is None:
            continue
        wanted = parameters.get("as", "")
        if not wanted:
            return Form(written, Shape.PLAIN, "v1", include, is_pretty)
        shape = {"PartialObjectMetadataList": Shape.PARTIAL}.get(wanted) or _shape(wanted)
        version = parameters.get("v", "")
        if shape is not None and parameters.get("g") == _META and version in ("v1", "v1beta1"):
            return Form(written, shape, version, include, is_pretty)
    raise not_acceptable(_AVAILABLE)


def document_form(headers: Mapping[str, str], *, known: tuple[str, ...] = _AVAILABLE, is_routed: bool = True) -> Form:
    """Return the form of a discovery document; raises StatusError 406.

    Documents are found by media types that are written out (`is_routed`), or by any that includes theirs.

    >>> document_form({"Accept": "text/html, application/yaml"}).media_type
    'application/yaml'
    """
    ranges = [*_ranges(headers.get("Accept") or "*/*")]
    if is_routed and not any(media in (*known, "*/*") for media, _ in ranges):
        raise _no_representation(known)
    for media, parameters in ranges:
        if known == (_JSON,) or (not parameters.get("as") and (media in _AVAILABLE or media in _WRITTEN)):
            return Form(_YAML if media == _YAML and _YAML in known else _JSON)
    raise not_acceptable(_AVAILABLE)


def _no_representation(known: Iterable[str]) -> StatusError:
    message = f"406: Not Acceptable\n\nAvailable representations: {', '.join(known)}"
    return StatusError(406, "NotAcceptable", message, shows_details=True)


def discovery_version(headers: Mapping[str, str]) -> str:
    """Return in which version a client likes aggregated discovery best, empty for the plain documents.

    >>> discovery_version({"Accept": "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"})
    'v2'
    """
    for media, parameters in _ranges(headers.get("Accept") or "*/*"):
        if media not in _WRITTEN:
            continue
        if not parameters.get("as"):
            return ""
        version = parameters.get("v", "")
        is_discovery = parameters.get("g") == "apidiscovery.k8s.io" and parameters["as"] == "APIGroupDiscoveryList"
        if is_discovery and version in ("v2", "v2beta1"):
            return version
    return ""


def _shape(name: str) -> Shape | None:
    return next((shape for shape in Shape if shape.value == name), None)


def _ranges(header: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the media ranges of an Accept header with their parameters, the most wanted first."""
    found: list[tuple[float, str, dict[str, str]]] = []
    for part in header.split(","):
        media, *rest = (piece.strip() for piece in part.split(";"))
        parameters = dict(piece.partition("=")[::2] for piece in rest)
        try:
            quality = float(parameters.get("q", "1"))
        except ValueError:
            quality = 1.0
        found.append((quality, media, parameters))
    found.sort(key=lambda item: -item[0])
    return ((media, parameters) for _, media, parameters in found)


def dump(body: JSONObject, form: Form) -> bytes:
    """Write any answer in the form that was accepted."""
    if form.media_type == _YAML:
        from pyverno.kube.yaml.writer import dump_yaml

        return dump_yaml(body).encode()
    if form.is_pretty:
        try:
            return orjson.dumps(body, option=orjson.OPT_INDENT_2) + b"\n"
        except TypeError:  # too deep
            return encode_indent(body).encode() + b"\n"
    return dump_json(body) + b"\n"


@dataclass(frozen=True, slots=True)
class Writer:
    """Writes objects of one type in one form; `now` is when ages end, `crd` the definition of a custom type."""

    type: ResourceType
    form: Form
    now: datetime
    crd: JSONObject | None = None

    def one(self, body: JSONObject, state: Stored | None = None) -> bytes:
        """Write one object; the bytes of a state that is the object are used again."""
        if self.form == _PLAIN_FORM and state is not None and state.body is body:
            return state.json + b"\n"
        is_object = body.get("kind") == self.type.kind
        match self.form.shape:
            case Shape.TABLE if is_object:
                return dump(self._table([body], _list_metadata(body)), self.form)
            case Shape.PARTIAL if is_object:
                return dump(self._partial(body), self.form)
        return dump(body, self.form)

    def page(self, page: Page) -> bytes:
        """Write a page of a list."""
        type, form = self.type, self.form
        if form.shape is Shape.TABLE:
            return dump(self._table((to_version(type, state.body) for state in page.states), page.metadata), form)
        head: JSONObject
        if form.shape is Shape.PARTIAL:
            head = {"kind": "PartialObjectMetadataList", "apiVersion": f"{_META}/{form.version}"}
            items = [self._partial(to_version(type, state.body)) for state in page.states]
            return dump({**head, "metadata": page.metadata, "items": items}, form)
        metadata = {"continue": "", **page.metadata} if type.is_custom else page.metadata
        head = {"kind": type.list_kind or f"{type.kind}List", "apiVersion": type.api_version, "metadata": metadata}
        if form != _PLAIN_FORM:
            return dump({**head, "items": [decode(item) for item in _items(type, page.states)]}, form)
        return b"".join((orjson.dumps(head)[:-1], b',"items":[', b",".join(_items(type, page.states)), b"]}\n"))

    def events(self, events: Iterable[Event], *, is_first: bool) -> bytes:
        """Write events of a watch, one per line; the first table of a watch names its columns."""
        lines: list[bytes] = []
        for event in events:
            written = self._event(event, with_columns=is_first and not lines)
            lines.append(b'{"type":"%b","object":%b}\n' % (event.kind.encode(), written))
        return b"".join(lines)

    def _event(self, event: Event, *, with_columns: bool) -> bytes:
        if event.kind == "ERROR":
            return orjson.dumps(event.body)
        body = to_version(self.type, event.body)
        is_bookmark = event.kind == "BOOKMARK"
        match self.form.shape:
            case Shape.TABLE:
                metadata = body["metadata"] if is_bookmark else _list_metadata(body)
                return dump_json(self._table(() if is_bookmark else (body,), metadata, with_columns=with_columns))
            case Shape.PARTIAL:
                return dump_json(self._partial(body))
        is_kept = event.state is not None and event.state.body is body
        return event.state.json if event.state is not None and is_kept else dump_json(body)

    def _table(self, bodies: Iterable[JSONObject], metadata: JSONObject, *, with_columns: bool = True) -> JSONObject:
        table = to_table(
            self.type,
            bodies,
            now=self.now,
            columns=_columns(self.type, self.crd),
            include_object=self.form.include_object,
            metadata=metadata,
            with_columns=with_columns,
        )
        return {**table, "apiVersion": f"{_META}/{self.form.version}"}

    def _partial(self, body: JSONObject) -> JSONObject:
        head = {"kind": "PartialObjectMetadata", "apiVersion": f"{_META}/{self.form.version}"}
        return {**head, "metadata": body["metadata"]}


def _items(type: ResourceType, states: Iterable[Stored]) -> Iterator[bytes]:
    """Yield the objects of a list; those of built-in kinds do not repeat their kind and version."""
    head = orjson.dumps({"apiVersion": type.api_version, "kind": type.kind})[:-1] + b","
    cut = 0 if type.is_custom else len(head)
    for state in states:
        written = state.json
        if not written.startswith(head):
            body = to_version(type, state.body)
            rest = {key: value for key, value in body.items() if key not in ("apiVersion", "kind")}
            written = dump_json({"apiVersion": type.api_version, "kind": type.kind, **rest})
        yield b"{" + written[cut:] if cut else written


_PLAIN_FORM = Form()


def _columns(type: ResourceType, crd: JSONObject | None) -> list[JSONObject] | None:
    for version in crd["spec"]["versions"] if crd else ():
        if version["name"] == type.version:
            found: list[JSONObject] | None = version.get("additionalPrinterColumns")
            return found
    return None


def _list_metadata(body: JSONObject) -> JSONObject:
    version = body.get("metadata", {}).get("resourceVersion")
    return {"resourceVersion": version} if version else {}


def status_bytes(error: StatusError, form: Form) -> bytes:
    """Write an error as the Status that it is."""
    return dump(error.to_json(), form)
