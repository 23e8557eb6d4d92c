"""Large answers are compressed."""

from __future__ import annotations

import asyncio
import gzip

import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request

from kubesandbox.http.compression import LARGE, compress

TEXT = b"0123456789abcdef" * (LARGE // 16)


def compressed(body: bytes, accepted: str, **headers: str) -> web.Response:
    """Return an answer after it may have been compressed."""
    response = web.Response(body=body, headers=headers)
    request = make_mocked_request("GET", "/", headers={"Accept-Encoding": accepted} if accepted else {})
    asyncio.run(compress(request, response))
    return response


@pytest.mark.parametrize(
    ("body", "accepted"),
    [(TEXT, ""), (TEXT, "deflate"), (TEXT, "gzip;q=0"), (TEXT, "*"), (TEXT[:-1], "gzip"), (b"", "gzip")],
)
def test_other_answers_stay(body: bytes, accepted: str) -> None:
    """Small answers, and those for clients that do not plainly accept gzip, are not compressed."""
    found = compressed(body, accepted)
    assert (body, None) == (found.body, found.headers.get("Content-Encoding"))


@pytest.mark.parametrize("accepted", ["gzip", "deflate, gzip", "gzip,br"])
def test_large_answers_are_compressed(accepted: str) -> None:
    """They carry `Content-Encoding` and, for caches, `Vary`."""
    found = compressed(TEXT, accepted, Vary="Accept")
    assert isinstance(found.body, bytes)
    assert (TEXT, len(found.body)) == (gzip.decompress(found.body), found.content_length)
    assert ("gzip", "Accept-Encoding, Accept") == (found.headers["Content-Encoding"], found.headers["Vary"])
    assert len(found.body) < len(TEXT) // 10
