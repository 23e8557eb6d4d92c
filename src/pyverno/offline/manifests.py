"""The resource arguments of a command: files, folders, globs, stdin and http(s) addresses, read into documents.

A folder is searched by its `FolderRules`; without them it gives its own files only. Downloads have limits of size and
time, and redirects never leave the scheme of their address. An address that ends in `#sha256=DIGEST` names its content:
other bytes are an error.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from string import hexdigits
from typing import TYPE_CHECKING, Final, TypeVar
from urllib.parse import urljoin, urlsplit, urlunsplit

from pyverno.errors import PyvernoError, UsageError
from pyverno.kube.yaml.documents import load_documents
from pyverno.offline.files import STDIN, DocumentCache, Loaded, load_files
from pyverno.offline.folderrules import FolderRules

if TYPE_CHECKING:
    import aiohttp

# trust rows: download

__all__ = ["MAX_DOWNLOAD_BYTES", "download", "follow_redirects", "is_web_address", "load_manifests"]

_T = TypeVar("_T")

MAX_DOWNLOAD_BYTES: Final = 64 * 1024 * 1024
"""Size of the largest file that is downloaded, in bytes."""

TIMEOUT_SECONDS: Final = 30.0
MAX_REDIRECTS: Final = 5
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})


def is_web_address(text: str) -> bool:
    """Return whether a resource argument is to be downloaded.

    >>> is_web_address("https://example.org/pod.yaml"), is_web_address("pod.yaml")
    (True, False)
    """
    return text.startswith(("https://", "http://"))


def load_manifests(
    sources: Sequence[str],
    *,
    stdin: bytes | None = None,
    folders: FolderRules | None = None,
    cache: DocumentCache | None = None,
) -> Loaded:
    """Read resources in order; one bad source is one error, the others are still read."""
    loaded = Loaded()
    for text in sources:
        if is_web_address(text):
            found = _download(text)
        else:
            read = stdin if text == STDIN else None
            found = load_files([text], recursive=False, stdin=read, folders=folders, cache=cache)
        loaded.documents.extend(found.documents)
        loaded.errors.extend(found.errors)
        loaded.skipped.extend(found.skipped)
    return loaded


def _download(url: str) -> Loaded:
    loaded = Loaded()
    try:
        loaded.documents.extend(load_documents(download(url), file=_redact_url(url)))
    except PyvernoError as error:
        loaded.errors.append(error)
    return loaded


def download(url: str, *, max_bytes: int = MAX_DOWNLOAD_BYTES, timeout: float = TIMEOUT_SECONDS) -> bytes:
    """Return the content at an http(s) address; raises UsageError for every failure.

    `timeout` is for everything together, in seconds. A redirect must keep the scheme. The content must have the digest
    that the fragment of the address names, as in `https://example.org/pod.yaml#sha256=9f86d081...`.
    """
    import asyncio

    wanted = _digest_of(url)

    async def content(session: aiohttp.ClientSession) -> bytes:
        async with _followed(session, url) as answer:
            return await _body(answer, url, max_bytes)

    body = asyncio.run(_fetch(url, content, timeout))
    from hashlib import sha256  # for downloads alone

    if wanted and sha256(body).hexdigest() != wanted:  # guard: a download has the digest of its address
        raise UsageError(
            f"`{_redact_url(url)}` has another content than its address names: expected sha256 {wanted}, "
            f"got {sha256(body).hexdigest()}"
        )
    return body


def _digest_of(url: str) -> str:
    """Return the SHA-256 (hex) that an address names, "" without one; raises UsageError for one that cannot be read."""
    fragment = urlsplit(url).fragment
    name, _, value = fragment.partition("=")
    if not fragment:
        return ""
    if name.lower() == "sha256" and len(value) == 64 and not set(value) - set(hexdigits):
        return value.lower()
    # a misspelt digest would otherwise be no check at all
    raise UsageError(
        f"cannot download `{_redact_url(url)}`: behind `#` must be `sha256=` and 64 hexadecimal digits, "
        f"got `{fragment[:80]}`"
    )


def follow_redirects(url: str, *, most: int, timeout: float = TIMEOUT_SECONDS) -> str:
    """Return the address at which `most` redirects of an http(s) address end; raises UsageError for every failure.

    A redirect may change http to https, and not the other way.
    """
    import asyncio

    async def last_address(session: aiohttp.ClientSession) -> str:
        async with _followed(session, url, most, upgrades=True) as answer:
            return str(answer.url)

    return asyncio.run(_fetch(url, last_address, timeout))


async def _fetch(url: str, read: Callable[[aiohttp.ClientSession], Awaitable[_T]], timeout: float) -> _T:
    import asyncio

    import aiohttp

    from pyverno.connector import ForeignConnector

    limits = aiohttp.ClientTimeout(total=timeout)
    try:
        async with (
            asyncio.timeout(timeout),
            aiohttp.ClientSession(connector=ForeignConnector(), timeout=limits, trust_env=True) as session,
        ):
            return await read(session)
    except TimeoutError as error:
        raise UsageError(f"cannot download `{_redact_url(url)}`: no answer within {timeout:g} seconds") from error
    except aiohttp.ClientConnectorError as error:
        raise UsageError(
            f"cannot download `{_redact_url(url)}`: cannot connect to `{error.host}:{error.port}`"
        ) from error
    except (aiohttp.ClientError, ValueError, OSError) as error:
        raise UsageError(f"cannot download `{_redact_url(url)}`: the connection failed") from error


@asynccontextmanager
async def _followed(
    session: aiohttp.ClientSession, url: str, most: int = MAX_REDIRECTS, *, upgrades: bool = False
) -> AsyncIterator[aiohttp.ClientResponse]:
    """Yield the answer at the end of all redirects, which keep the scheme; with `upgrades` http may become https."""
    address = url
    for _ in range(most + 1):
        schemes = {urlsplit(address).scheme, "https" if upgrades else urlsplit(address).scheme}
        async with session.get(address, allow_redirects=False) as answer:
            if answer.status not in _REDIRECTS:
                yield answer
                return
            address = urljoin(address, answer.headers.get("Location", ""))
            if urlsplit(address).scheme not in schemes:
                raise UsageError(f"cannot download `{_redact_url(url)}`: it redirects to `{_redact_url(address)}`")
    raise UsageError(f"cannot download `{_redact_url(url)}`: more than {most} redirects")


async def _body(answer: aiohttp.ClientResponse, url: str, max_bytes: int) -> bytes:
    if answer.status != 200:
        raise UsageError(f"cannot download `{_redact_url(url)}`: the server answered {answer.status}")
    pieces: list[bytes] = []
    size = 0
    async for piece in answer.content.iter_chunked(1 << 16):
        size += len(piece)
        if size > max_bytes:
            raise UsageError(f"cannot download `{_redact_url(url)}`: it is larger than {max_bytes} bytes")
        pieces.append(piece)
    return b"".join(pieces)


def _redact_url(url: str) -> str:
    """Return an address without its user part and its query, both of which may hold secrets."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))
