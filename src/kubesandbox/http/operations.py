"""The verbs: a request becomes an operation of the server, and its outcome an answer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TypeAlias

from aiohttp import web

from kubesandbox.http.call import Call
from kubesandbox.http.warnings import warning_headers
from kubesandbox.objects.identity import check_kind, placed
from kubesandbox.objects.metadata import metadata_of
from kubesandbox.objects.patching import Patch, read_patch
from kubesandbox.objects.pods import POSTED, bind
from kubesandbox.objects.scaling import SCALE, get_scale, update_scale
from kubesandbox.parsing.bodies import Body, read_body
from kubesandbox.parsing.requests import APPLY_PATCH, DeleteOptions, ListOptions, WriteOptions
from kubesandbox.parsing.urls import values_of
from kubesandbox.storage.listing import check_reached
from kubesandbox.submissions import connected, submitted
from kubesandbox.types.resources import ResourceType
from kubesandbox.writes import Outcome, Write
from pyverno.kube.json import JSONObject
from pyverno.kube.status import StatusError, bad_request

__all__ = ["OPERATIONS", "Operation", "operation_of"]

Operation: TypeAlias = Callable[[Call, ResourceType], Awaitable[web.StreamResponse]]


async def _get(call: Call, kind: ResourceType) -> web.StreamResponse:
    check_reached(call.server.store, call.query.get("resourceVersion", ""))
    state = call.server.get(kind, call.namespace(kind), call.target.name)
    return call.reply(kind, Outcome(await call.server.in_version(kind, state.body), 200, state))


async def _list(call: Call, kind: ResourceType) -> web.StreamResponse:
    page = await call.server.list(kind, call.namespace(kind), ListOptions.from_query(call.query, is_watch=False))
    return call.respond(call.writer(kind).page(page))


async def _watch(call: Call, kind: ResourceType) -> web.StreamResponse:
    query = call.query
    if call.target.name:
        query = {**query, "fieldSelector": f"metadata.name={call.target.name}"}
    groups = call.server.watch(kind, call.namespace(kind), ListOptions.from_query(query, is_watch=True))
    # what is wrong with the request shows before the first group
    events = await anext(groups)
    headers = {
        "Content-Type": call.form.media_type,
        "Cache-Control": "no-cache, private",
        "Date": call.date.text(),
    }
    response = web.StreamResponse(headers=headers)
    for header in warning_headers(call.notes.warnings):
        response.headers.add("Warning", header)
    await response.prepare(call.request)
    is_first = True
    try:
        while True:
            data = call.writer(kind).events(events, is_first=is_first)
            if data:
                await response.write(data)
                is_first = False
            events = await anext(groups)
    except StopAsyncIteration:
        pass
    except asyncio.CancelledError:
        if not call.is_ending:
            raise
    finally:
        await groups.aclose()
    with suppress(ConnectionError):  # the watcher may be gone
        await response.write_eof()
    return response


async def _create(call: Call, kind: ResourceType) -> web.StreamResponse:
    options = WriteOptions.from_query(call.query, "CreateOptions")
    body = await call.body(kind.kind)
    write = call.write(kind, options)
    if call.reviews.answers(kind):
        return call.reply(kind, await _answer_review(call, write, body))
    if kind.key == "bindings":
        return call.reply(kind, await _bind_pod(call, write, body))
    return call.reply(kind, await call.server.create(write, body))


async def _answer_review(call: Call, write: Write, body: Body) -> Outcome:
    """Answer a review object (such as SubjectAccessReview); nothing is stored."""
    server = call.server
    question = server.schemas.default(write.type, placed(write.type, write.namespace, server.decoded(write, body)))
    write = replace(write, name=metadata_of(question).get("name") or "")
    question = await submitted(server, write, question, write.type.gvk)
    return Outcome(call.reviews.review(write.type, question, call.user, namespace=call.target.namespace), 201)


async def _bind_pod(call: Call, write: Write, body: Body) -> Outcome:
    """Put a pod on a node by the older door, where the Binding itself names the pod."""
    binding = call.server.decoded(write, body)
    return await bind(call.server, replace(write, name=metadata_of(binding).get("name") or ""), binding)


async def _update(call: Call, kind: ResourceType) -> web.StreamResponse:
    options = WriteOptions.from_query(call.query, "UpdateOptions")
    body = await call.body(kind.kind)
    return call.reply(kind, await call.server.update(call.write(kind, options), body))


async def _read_patch(call: Call, kind: ResourceType, media: str) -> Patch:
    try:
        return read_patch(await call.data(), media, is_custom=kind.is_custom)
    except StatusError as error:
        if error.status != 415 and media != APPLY_PATCH:
            # upstream looks for the object before it reads such a patch
            call.server.get(kind, call.namespace(kind), call.target.name)
        raise


async def _patch(call: Call, kind: ResourceType) -> web.StreamResponse:
    media = call.media_type
    options = WriteOptions.from_query(call.query, "PatchOptions", is_apply=media == APPLY_PATCH)
    patch = await _read_patch(call, kind, media)
    return call.reply(kind, await call.server.patch(call.write(kind, options), patch))


async def _delete(call: Call, kind: ResourceType) -> web.StreamResponse:
    options = await _delete_options(call)
    return call.reply(kind, await call.server.delete(call.write(kind, WriteOptions()), options))


async def _delete_collection(call: Call, kind: ResourceType) -> web.StreamResponse:
    selected = ListOptions.from_query(call.query, is_watch=False)
    options = await _delete_options(call)
    page = await call.server.delete_collection(call.write(kind, WriteOptions()), selected, options)
    return call.respond(call.writer(kind).page(page))


async def _delete_options(call: Call) -> DeleteOptions:
    data = await call.data()
    if not data.strip():
        return DeleteOptions.from_query(call.query)
    body: JSONObject = read_body(data, call.media_type, kind="DeleteOptions").value
    kind = body.get("kind", "DeleteOptions")
    if kind != "DeleteOptions":
        version = body.get("apiVersion", "")
        raise bad_request(
            f'no kind "{kind}" is registered for version "{version}" in scheme "pkg/runtime/scheme.go:111"'
        )
    return DeleteOptions.from_json(body)


# ── subresources ─────────────────────────────────────────────────────────────────────────────────────────────────────


async def _get_scale(call: Call, kind: ResourceType) -> web.StreamResponse:
    return call.reply(kind, Outcome(await get_scale(call.server, kind, call.namespace(kind), call.target.name)))


async def _update_scale(call: Call, kind: ResourceType) -> web.StreamResponse:
    options = WriteOptions.from_query(call.query, "UpdateOptions")
    body = await call.body("Scale")
    wanted = check_kind(kind, SCALE, body.value, call.server.table)
    return call.reply(kind, await update_scale(call.server, call.write(kind, options), lambda _: wanted))


async def _patch_scale(call: Call, kind: ResourceType) -> web.StreamResponse:
    media = call.media_type
    options = WriteOptions.from_query(call.query, "PatchOptions", is_apply=media == APPLY_PATCH)
    patch = await _read_patch(call, kind, media)
    change = call.server.scale_patch(patch)
    return call.reply(kind, await update_scale(call.server, call.write(kind, options), change))


async def _post(call: Call, kind: ResourceType) -> web.StreamResponse:
    expected = kind.subresource_gvk(call.target.subresource)
    options = WriteOptions.from_query(call.query, "CreateOptions")
    body = await call.body(expected.kind)
    wanted = check_kind(kind, expected, body.value, call.server.table)
    post = POSTED[kind.key, call.target.subresource]
    return call.reply(kind, await post(call.server, call.write(kind, options), wanted))


async def _token(call: Call, kind: ResourceType) -> web.StreamResponse:
    expected = kind.subresource_gvk("token")
    write = call.write(kind, WriteOptions.from_query(call.query, "CreateOptions"))
    body = await call.body(expected.kind)
    wanted = call.server.schemas.decode(
        kind, check_kind(kind, expected, body.value, call.server.table), subresource="token"
    ).body
    wanted = await submitted(
        call.server, write, wanted, expected, fill=partial(call.reviews.token_request, write.namespace, write.name)
    )
    return call.reply(kind, Outcome(call.reviews.token(call.namespace(kind), call.target.name, wanted), 201))


async def _log(call: Call, kind: ResourceType) -> web.StreamResponse:
    call.server.get(kind, call.namespace(kind), call.target.name)
    return web.Response(text="the sandbox runs no containers, so there are no logs\n")


async def _connect(call: Call, kind: ResourceType) -> web.StreamResponse:
    query = {key: values_of(call.query, key) for key in call.query}
    rest = f"/{call.target.rest}" if call.target.rest else ""
    await connected(call.server, call.write(kind, WriteOptions()), query, rest)
    call.server.get(kind, call.namespace(kind), call.target.name)
    what = f"{kind.plural}/{call.target.subresource}"
    raise StatusError(501, "NotImplemented", f"the sandbox runs no containers, so {what} cannot be served")


OPERATIONS: Mapping[str, Operation] = {
    "get": _get,
    "list": _list,
    "watch": _watch,
    "create": _create,
    "update": _update,
    "patch": _patch,
    "delete": _delete,
    "deletecollection": _delete_collection,
}
"""Operations on objects by verb."""

_PARTS: Mapping[str, Operation] = {"get": _get, "update": _update, "patch": _patch}
"""Operations on subresources that show the whole object."""

_SUBRESOURCES: Mapping[str, Mapping[str, Operation]] = {
    "scale": {"get": _get_scale, "update": _update_scale, "patch": _patch_scale},
    "binding": {"create": _post},
    "eviction": {"create": _post},
    "finalize": {"update": _update},
    "log": {"get": _log},
    "token": {"create": _token},
    **{name: dict.fromkeys(OPERATIONS, _connect) for name in ("attach", "exec", "portforward", "proxy")},
}
"""Operations on all other subresources."""


def operation_of(kind: ResourceType, verb: str, subresource: str) -> Operation | None:
    """Return what a verb does, None where it is not known there."""
    if subresource:
        return _SUBRESOURCES.get(subresource, _PARTS).get(verb)
    return OPERATIONS.get(verb) if verb in kind.verbs else None
