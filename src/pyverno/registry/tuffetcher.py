"""Downloads of the TUF library within limits of bytes, time and redirects, and never from a metadata service.

The library's own downloads have a limit of time for each piece only, and follow redirects to any address.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from typing import Final
from urllib.parse import urljoin, urlsplit

import aiohttp
from tuf.api.exceptions import DownloadError, DownloadHTTPError
from tuf.ngclient.fetcher import FetcherInterface

from pyverno.connector import ForeignConnector, read_at_most
from pyverno.version import __version__

# trust rows: tuf-repository

__all__ = ["TufFetcher"]

_SECONDS: Final = 120.0
_MOST_BYTES: Final = 8 * 1024 * 1024
_MOST_REDIRECTS: Final = 3
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})


class TufFetcher(FetcherInterface):
    """Fetches the files of one update, all of them together within two minutes."""

    def __init__(self) -> None:
        """Begin the time."""
        self._until = time.monotonic() + _SECONDS

    def _fetch(self, url: str) -> Iterator[bytes]:
        return iter((asyncio.run(self._read(url)),))

    async def _read(self, url: str) -> bytes:
        left = self._until - time.monotonic()
        headers = {"User-Agent": f"pyverno/{__version__}", "Accept-Encoding": "identity"}
        try:
            async with (
                asyncio.timeout(max(left, 0.0)),
                aiohttp.ClientSession(
                    connector=ForeignConnector(), headers=headers, trust_env=True, auto_decompress=False
                ) as session,
            ):
                return await _follow(session, url)
        except TimeoutError:
            raise DownloadError(f"{url} was not downloaded in time") from None
        except (aiohttp.ClientError, OSError, ValueError):
            raise DownloadError(f"{url} cannot be downloaded") from None


async def _follow(session: aiohttp.ClientSession, url: str) -> bytes:
    address = url
    for _ in range(_MOST_REDIRECTS + 1):
        async with session.get(address, allow_redirects=False) as answer:
            if answer.status == 200:
                found = await read_at_most(answer.content, _MOST_BYTES)
                if len(found) > _MOST_BYTES:
                    raise DownloadError(f"{url} is larger than {_MOST_BYTES} bytes")
                return found
            if answer.status not in _REDIRECTS:
                raise DownloadHTTPError(f"{url} answers {answer.status}", answer.status)
            following = urljoin(address, answer.headers.get("Location", ""))
            if urlsplit(following).scheme not in ("https", urlsplit(address).scheme):
                raise DownloadError(f"{url} redirects to another scheme")
            address = following
    raise DownloadError(f"{url} has more than {_MOST_REDIRECTS} redirects")
