"""Pages with too many bytes are read again with fewer objects."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from itertools import pairwise
from typing import Any

import pytest
from aiohttp import web

from pyverno.cluster.answers import pages
from pyverno.cluster.answers.pages import METADATA_LIST
from pyverno.cluster.answers.reading import AnswerTooLargeError
from pyverno.cluster.client import Client
from pyverno.kube.gvk import GVR
from pyverno.kube.status import StatusError
from tests.support.apiserver import Script, serving, status

MAPS = GVR("", "v1", "configmaps")
PATH = "/api/v1/namespaces/team/configmaps"
PAGE, WHOLE = 10_000, 100_000
"""What the tests allow for a page, and for one object."""


class Collection:
    """ConfigMaps with so many bytes each, listed as the API server does; `expires` refuses a number of pages."""

    def __init__(self, sizes: Sequence[int], *, expires: int = 0, pages: bool = True, metadata: bool = True) -> None:
        self.objects = [
            {"metadata": {"namespace": "team", "name": f"m{number}"}, "data": {"a": "x" * size}}
            for number, size in enumerate(sizes)
        ]
        self.limits: list[int] = []
        self._expires = expires
        self._pages = pages
        self._metadata = metadata

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer one page."""
        query = request.query
        first, limit = int(query.get("continue", 0)), int(query.get("limit", 0)) if self._pages else 0
        is_metadata = request.headers["Accept"] == METADATA_LIST
        if not is_metadata:
            self.limits.append(limit)
        elif not self._metadata:
            return status(406, "NotAcceptable")
        if first and self._expires:
            self._expires -= 1
            return status(410, "Expired")
        last = first + limit if limit else len(self.objects)
        found = [{"metadata": each["metadata"]} if is_metadata else each for each in self.objects[first:last]]
        following = {"continue": str(last)} if last < len(self.objects) else {}
        body = {"kind": "ConfigMapList", "items": found, "metadata": {"resourceVersion": "7", **following}}
        return web.Response(text=json.dumps(body), content_type="application/json")


@pytest.fixture(autouse=True)
def smaller(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the limits those of the tests."""
    monkeypatch.setattr(pages, "MAX_PAGE_BYTES", PAGE)
    monkeypatch.setattr(pages, "MAX_ANSWER_BYTES", WHOLE)


def play(collection: Collection, scene: Callable[[Client], Awaitable[Any]]) -> Any:
    """Run a scene with a client of a server that has these objects."""

    async def run() -> Any:
        async with serving() as (script, client):
            assert isinstance(script, Script)
            script.on(f"GET {PATH}", collection.answer)
            return await scene(client)

    return asyncio.run(run())


def read(collection: Collection, page: int = 500) -> list[Any]:
    """Return what a client lists."""
    items: list[Any] = play(collection, lambda client: client.list(MAPS, "team", page=page))["items"]
    return items


@pytest.mark.parametrize("page", [500, 64, 7, 3, 2, 1])
def test_a_page_that_is_too_large_is_read_with_fewer_objects(page: int) -> None:
    """All objects are read, each once; pages after it are as small."""
    collection = Collection([1500] * 40)
    assert collection.objects == read(collection, page)
    limits = collection.limits
    assert limits == sorted(limits, reverse=True)
    assert all(after in (before, before // 2) for before, after in pairwise(limits))


def test_an_object_as_large_as_an_answer_is_read_alone() -> None:
    """The limit of a page is none of an object: neighbours are small, one has nearly all bytes of an answer."""
    collection = Collection([10, 10, WHOLE - 1000, 10])
    assert collection.objects == read(collection)
    assert 1 == collection.limits[-1]


@pytest.mark.parametrize(
    ("metadata", "tail"), [(True, ": the object `team/m2` alone is too large"), (False, "")], ids=["named", "unnamed"]
)
def test_one_object_that_is_too_large_is_an_error_that_names_it(metadata: bool, tail: str) -> None:
    """Its metadata alone gives the name; a server that cannot give it leaves the error without."""
    collection = Collection([10, 10, WHOLE + 1, 10], metadata=metadata)
    with pytest.raises(AnswerTooLargeError) as caught:
        read(collection)
    assert f"the API server answered `GET {PATH}` with more than {WHOLE} bytes{tail}" == caught.value.message


def test_a_server_without_pages_may_answer_with_as_many_bytes_as_any() -> None:
    """It ignores the limit of objects; what no answer may have is an error."""
    collection = Collection([1500] * 20, pages=False)
    assert collection.objects == read(collection)
    with pytest.raises(AnswerTooLargeError):
        read(Collection([1500] * 100, pages=False))


def test_a_collection_that_expires_and_is_too_large_for_one_answer_is_read_by_pages_again() -> None:
    """Pages that expire a second time are an error for the caller, who starts again."""
    collection = Collection([1500] * 90, expires=1)
    assert collection.objects == read(collection)
    with pytest.raises(StatusError) as caught:
        read(Collection([1500] * 90, expires=2))
    assert 410 == caught.value.status


def test_whether_there_are_any_is_found_without_the_objects() -> None:
    """The question is for the metadata of one object."""
    assert play(Collection([WHOLE + 1]), lambda client: client.has_any(MAPS, "team"))
    assert not play(Collection([]), lambda client: client.has_any(MAPS, "team"))
