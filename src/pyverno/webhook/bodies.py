"""Request bodies: read unmodified, with a limit on time and on the total bytes in work.

An encoded body is rejected, because its decoded size is unknown; kube-apiserver sends none. Bytes count from their
arrival until the work on them has ended.
"""

from __future__ import annotations

import asyncio
from typing import Final

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from pyverno.kube.status import StatusError, request_too_large, service_unavailable
from pyverno.webhook.connections import MalformedRequestError
from pyverno.webhook.turns import Parts

# trust rows: admission-review

__all__ = ["Bodies"]

_CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"


class Bodies:
    """Reads bodies of at most `max_bytes`, all of them together at most `bytes_in_work`, each within `seconds`."""

    def __init__(self, max_bytes: int, bytes_in_work: int, seconds: float) -> None:
        self._max_bytes = max_bytes
        self._bytes_in_work = bytes_in_work
        self._seconds = seconds
        self._parts = Parts()
        self._reading: set[asyncio.Timeout] = set()
        self.in_work = 0
        """Bytes that have arrived and whose work has not ended."""

    async def read(self, request: web.BaseRequest) -> bytes:
        """Return a body; its bytes count until `release`.

        Raises StatusError: 413 if it is too large, 415 if it is encoded, 417 and 501 for unsupported expectations and
        transfer encodings, 503 when too much is in work, 408 when it does not arrive in time.
        Raises MalformedRequestError when it ends early or cannot be read.
        """
        _check_form(request)
        size = request.content_length
        if size is not None:
            if size > self._max_bytes:
                raise self._too_large()
            if request.content.is_eof():  # the whole body has arrived, and its length was checked
                self._take(size)
                return request.content.read_nowait()
        if "Expect" in request.headers and request.transport is not None:
            request.transport.write(_CONTINUE)
        return await self._collect(request)

    def release(self, size: int) -> None:
        """Stop counting the bytes of a body."""
        self.in_work -= size

    def hurry(self, seconds: float) -> None:
        """Limit the time of every body to `seconds` from now, including bodies in progress."""
        self._seconds = min(self._seconds, seconds)
        until = asyncio.get_running_loop().time() + seconds
        for limit in self._reading:
            when = limit.when()
            if not limit.expired() and (when is None or when > until):
                limit.reschedule(until)

    async def _collect(self, request: web.BaseRequest) -> bytes:
        found = bytearray()  # no list of parts: each may be a single byte
        try:
            async with asyncio.timeout(self._seconds) as limit:
                self._reading.add(limit)
                try:
                    async for part in request.content.iter_any():
                        if len(found) + len(part) > self._max_bytes:
                            raise self._too_large()
                        self._take(len(part))
                        found += part
                        await self._parts.take(len(part))
                finally:
                    self._reading.discard(limit)
            return bytes(found)
        except BaseException as error:
            self.in_work -= len(found)
            if isinstance(error, TimeoutError):
                raise StatusError(408, "Timeout", "the body took too long to arrive") from None
            if isinstance(error, HttpProcessingError | web.RequestPayloadError):
                raise MalformedRequestError("a body cannot be read") from None
            if isinstance(error, OSError):
                raise MalformedRequestError("a connection ended before the body of its request") from None
            raise

    def _take(self, size: int) -> None:
        if self.in_work + size > self._bytes_in_work:
            raise service_unavailable("too many bytes are in work; try again")
        self.in_work += size

    def _too_large(self) -> StatusError:
        return request_too_large(f"the body is larger than {self._max_bytes} bytes")


def _check_form(request: web.BaseRequest) -> None:
    """Raise StatusError for an unsupported form of body and for ambiguous headers."""
    headers = request.headers
    if any(coding.lower() != "identity" for coding in headers.getall("Content-Encoding", ())):
        raise StatusError(415, "UnsupportedMediaType", "encoded bodies are not accepted: send it as it is")
    if "Transfer-Encoding" in headers and headers["Transfer-Encoding"].lower() != "chunked":
        raise StatusError(501, "NotImplemented", "the only transfer encoding is chunked")
    if "Expect" in headers and headers["Expect"].lower() != "100-continue":
        raise StatusError(417, "ExpectationFailed", "the only expectation is 100-continue")
    if len(headers.getall("Content-Type", ())) > 1:
        raise StatusError(415, "UnsupportedMediaType", "there is more than one Content-Type")
