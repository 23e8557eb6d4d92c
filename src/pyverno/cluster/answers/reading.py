"""The body of an answer: read within a limit of bytes, and decoded; a refusal of the server is a StatusError."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Final

import aiohttp

from pyverno.errors import DocumentError, HostError
from pyverno.kube.json import JSON, JSONObject, decode
from pyverno.kube.status import StatusError

__all__ = [
    "MAX_ANSWER_BYTES",
    "AnswerTooLargeError",
    "decode_answer",
    "expect_object",
    "read_body",
    "read_lines",
    "retry_seconds",
]

MAX_ANSWER_BYTES: Final = 256 * 1024 * 1024
"""Bytes of one answer, inflated."""

_LONGEST_LINE: Final = 16 * 1024 * 1024


class AnswerTooLargeError(HostError):
    """An answer has more bytes than the caller reads."""


async def read_body(reply: aiohttp.ClientResponse, max_bytes: int, what: str) -> bytes:
    """Return the body of an answer; its bytes are counted as they are inflated, piece by piece."""
    found = bytearray()
    async for part in reply.content.iter_any():
        if len(found) + len(part) > max_bytes:
            raise AnswerTooLargeError(f"the API server answered `{what}` with more than {max_bytes} bytes")
        found += part
    return bytes(found)


async def read_lines(content: aiohttp.StreamReader) -> AsyncIterator[bytes]:
    """Yield the lines of a watch as they come; a line that was cut off is dropped."""
    rest = b""
    async for part in content.iter_any():
        rest += part
        *lines, rest = rest.split(b"\n")
        for line in lines:
            if line.strip():
                yield line
        if len(rest) > _LONGEST_LINE:
            raise OSError("a line of the watch is longer than 16 MiB")


def decode_answer(method: str, path: str, status: int, answer: bytes) -> Any:
    """Return the JSON of an answer; raises StatusError for a refusal.

    >>> decode_answer("GET", "/version", 200, b'{"minor": "34"}')
    {'minor': '34'}
    """
    try:
        body = decode(answer) if answer else {}
    except DocumentError:
        body = None
    if 200 <= status < 300:
        if body is None:
            raise HostError(f"the API server answered `{method} {path}` with something that is no JSON")
        return body
    if isinstance(body, dict) and body.get("kind") == "Status":
        raise StatusError.from_json(body, status=status)
    # the answer of a proxy in between is not repeated: it may hold anything
    raise StatusError(status, "", f"the server answered `{method} {path}` with status {status}")


def expect_object(answer: JSON) -> JSONObject:
    """Return an answer that must be an object.

    >>> expect_object({"kind": "Pod"})
    {'kind': 'Pod'}
    """
    if not isinstance(answer, dict):
        raise HostError("the API server answered with something that is no object")
    return answer


def retry_seconds(status: int, text: str) -> float | None:
    """Return the delay in seconds that the server requests by Retry-After, None without one.

    >>> retry_seconds(429, "3"), retry_seconds(503, "")
    (3.0, None)
    """
    if status == 429 or (status == 503 and text):
        return min(float(text), 30.0) if text.isdecimal() else 1.0
    return None
