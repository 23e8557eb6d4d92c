"""Collections page by page: a page with too many bytes is read again with fewer objects.

A page of 500 objects may have 750 MB. Pages stay small once one was too large, since neighbours are of a size.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any, Final, Protocol

from pyverno.cluster.answers.reading import MAX_ANSWER_BYTES, AnswerTooLargeError, expect_object
from pyverno.errors import HostError
from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.status import StatusError

__all__ = ["MAX_PAGE_BYTES", "METADATA_LIST", "PageRequest", "read_list", "read_pages"]

MAX_PAGE_BYTES: Final = 32 * 1024 * 1024
"""Bytes of one page, inflated; a page of one object may have as many as any answer."""

METADATA_LIST: Final = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
_GONE: Final = 410


class PageRequest(Protocol):
    """Sends one request for a page."""

    async def __call__(
        self, method: str, path: str, *, query: Sequence[tuple[str, str]], accept: str, max_bytes: int
    ) -> Any:
        """Return the decoded answer; raises AnswerTooLargeError, HostError and StatusError."""
        ...


async def read_pages(
    request: PageRequest, path: str, query: Sequence[tuple[str, str]], *, limit: int, accept: str
) -> AsyncIterator[JSONObject]:
    """Yield the pages of a collection, `limit` objects or fewer in each; 0 reads all of them at once.

    Raises StatusError and HostError, and AnswerTooLargeError for one object that alone is too large.
    """
    following = ""
    while True:
        asked = [*query, *([("limit", str(limit))] if limit else []), *([("continue", following)] if following else [])]
        try:
            # a server that knows no pages ignores the limit
            most = MAX_PAGE_BYTES if limit > 1 else MAX_ANSWER_BYTES
            found = expect_object(await request("GET", path, query=asked, accept=accept, max_bytes=most))
        except AnswerTooLargeError as error:
            if limit == 1:
                raise await _name_object(error, request, path, asked) from None
            if limit == 0:
                raise
            limit //= 2
            continue
        _check_items(found)
        yield found
        following = (found.get("metadata") or {}).get("continue") or ""
        if not following:
            return


def _check_items(page: JSONObject) -> None:
    """Raise HostError for a page of anything else than objects: an aggregated API may answer with anything."""
    items = page.get("items") or ()
    if not isinstance(items, list | tuple) or not all(isinstance(item, dict) for item in items):
        raise HostError("the API server answered with a list of something that is no object")


async def read_list(
    request: PageRequest, path: str, query: Sequence[tuple[str, str]], *, limit: int, accept: str
) -> JSONObject:
    """Return a whole collection as one list object.

    When its pages expire it is read at once, and page by page again where that is too large.
    """
    try:
        return await _join(request, path, query, limit, accept)
    except _ExpiredError:
        try:
            return await _join(request, path, query, 0, accept)
        except AnswerTooLargeError:
            pass
    try:
        return await _join(request, path, query, limit, accept)
    except _ExpiredError as error:
        raise error.status from None


class _ExpiredError(Exception):
    """Pages have expired after the first one."""

    def __init__(self, status: StatusError) -> None:
        self.status = status


async def _join(
    request: PageRequest, path: str, query: Sequence[tuple[str, str]], limit: int, accept: str
) -> JSONObject:
    items: list[JSON] = []
    found: JSONObject = {}
    try:
        async for found in read_pages(request, path, query, limit=limit, accept=accept):
            items.extend(found.get("items") or ())
    except StatusError as error:
        if error.status == _GONE and items:
            raise _ExpiredError(error) from None
        raise
    return {**found, "items": items}


async def _name_object(
    error: AnswerTooLargeError, request: PageRequest, path: str, asked: Sequence[tuple[str, str]]
) -> AnswerTooLargeError:
    """Return the error with the name of the one object of a page, as far as its metadata can be read."""
    try:
        found = await request("GET", path, query=asked, accept=METADATA_LIST, max_bytes=MAX_PAGE_BYTES)
        [item] = found["items"]
        name = "/".join(filter(None, (item["metadata"].get("namespace"), item["metadata"]["name"])))
    except (HostError, StatusError, ValueError, LookupError, TypeError, AttributeError):
        return error
    return AnswerTooLargeError(f"{error.message}: the object `{name}` alone is too large")
