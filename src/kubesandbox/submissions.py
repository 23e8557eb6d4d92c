"""Objects that are sent and never stored, as admission sees them: reviews, bindings, evictions, connections."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from kubesandbox.apiserver import ApiServer
from kubesandbox.objects.metadata import metadata_of, with_metadata
from kubesandbox.writes import Write
from pyverno.engine.request import Operation
from pyverno.kube.gvk import GVK
from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.status import bad_request

__all__ = ["connected", "submitted"]

_FLAGS = ("stdin", "stdout", "stderr", "tty")


async def submitted(
    server: ApiServer,
    write: Write,
    body: JSONObject,
    kind: GVK,
    *,
    fill: Callable[[JSONObject], JSONObject] = lambda body: body,
) -> JSONObject:
    """Return an object of a kind, posted by a write, as admission leaves it; raises StatusError.

    `fill` sets the server's own fields, after mutating and before validating admission.
    """
    if write.namespace and write.namespace != (metadata_of(body).get("namespace") or write.namespace):
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
    if write.namespace:
        body = with_metadata(body, namespace=write.namespace)
    body = server.tracked(write, kind, body)
    attributes = replace(write.attributes(Operation.CREATE, body, None), kind=kind)
    body = fill(await server.mutated(attributes, write.notes))
    await server.admission.validate(attributes.with_object(body), write.notes)
    return body


async def connected(server: ApiServer, write: Write, query: Mapping[str, Sequence[str]], path: str) -> JSONObject:
    """Return the options of a connection (`PodExecOptions` and the like) as admission leaves them.

    `path` is what follows `proxy` in the path of the request. Raises StatusError.
    """
    kind = write.type.subresource_gvk(write.subresource)
    body: JSONObject = {"kind": kind.kind, "apiVersion": kind.api_version, **_options(write.subresource, query, path)}
    attributes = replace(write.attributes(Operation.CONNECT, body, None), kind=kind, options=None)
    body = await server.mutated(attributes, write.notes)
    await server.admission.validate(attributes.with_object(body), write.notes)
    return body


def _options(subresource: str, query: Mapping[str, Sequence[str]], path: str) -> JSONObject:
    """Read the options of a connection, without those that have no effect.

    >>> _options("exec", {"command": ["ls", "-l"], "stdout": ["true"], "tty": ["false"]}, "")
    {'stdout': True, 'command': ['ls', '-l']}
    """
    if subresource == "proxy":
        return {"path": path} if path else {}
    if subresource == "portforward":
        ports: list[JSON] = [int(text) for text in query.get("ports", ()) if text.isascii() and text.isdigit()]
        return {"ports": ports} if ports else {}
    body: JSONObject = {name: True for name in _FLAGS if (query.get(name) or ("",))[0].lower() in ("true", "1")}
    if query.get("container"):
        body["container"] = query["container"][0]
    if subresource == "exec" and query.get("command"):
        body["command"] = list(query["command"])
    return body
