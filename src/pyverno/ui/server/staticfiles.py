"""The pages' own files, read once: each with its digest as ETag, compressed where the browser takes it.

The first page is requested again each time; everything it names is below a folder that is called like the digest of all
files, and is kept by browsers for good.
"""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from aiohttp import web

from pyverno.errors import UsageError
from pyverno.value import dataclass

# trust rows: browser, package

__all__ = ["StaticFiles", "web_root"]

_TYPES: Final[Mapping[str, str]] = {
    ".html": "text/html",
    ".js": "text/javascript",
    ".css": "text/css",
    ".svg": "image/svg+xml",
    ".json": "application/json",
    ".txt": "text/plain",
}
_SMALL: Final = 512
_FOR_GOOD: Final = "public, max-age=31536000, immutable"


@dataclass(frozen=True, slots=True)
class _File:
    body: bytes
    compressed: bytes
    content_type: str
    digest: str


def web_root() -> Path:
    """Return the folder of the pages: `web` inside of the installed package, or of the source tree."""
    package = Path(__file__).resolve().parents[2]
    for folder in (package / "web", package.parents[1] / "web"):
        if (folder / "index.html").is_file():
            return folder
    raise UsageError("the pages are missing in this installation: install pyverno again")


class StaticFiles:
    """Files below one folder; other paths do not exist, whatever they are made of."""

    def __init__(self, root: Path) -> None:
        """Read every file of a known type."""
        self._files = {
            path.relative_to(root).as_posix(): _read(path)
            for path in sorted(root.rglob("*"))
            if path.is_file() and path.suffix in _TYPES
        }
        whole = "".join(f"{name} {file.digest}\n" for name, file in self._files.items())
        self._version = hashlib.sha256(whole.encode()).hexdigest()[:16]
        page = self._files["index.html"].body.replace(b'"static/', f'"static/{self._version}/'.encode())
        self._files["index.html"] = _pack(page, "text/html")

    def routes(self) -> Iterable[web.RouteDef]:
        """Return a route for each file, and that of the first page."""
        yield web.get("/", self._index)
        for name in self._files:
            yield web.get(f"/static/{name}", self._handle)
            # the first page names this folder, modules name each other relative to it
            yield web.get(f"/static/{self._version}/{name}", self._handle_version)

    async def _index(self, request: web.Request) -> web.Response:
        return self._respond(request, self._files["index.html"])

    async def _handle(self, request: web.Request) -> web.Response:
        return self._respond(request, self._files[request.path.partition("/static/")[2]])

    async def _handle_version(self, request: web.Request) -> web.Response:
        return self._respond(request, self._files[request.path.partition(f"/static/{self._version}/")[2]], _FOR_GOOD)

    def _respond(self, request: web.Request, file: _File, caching: str = "no-cache") -> web.Response:
        headers = {"ETag": f'"{file.digest}"', "Cache-Control": caching, "Vary": "Accept-Encoding"}
        if any(tag.value == file.digest for tag in request.if_none_match or ()):
            return web.Response(status=304, headers=headers)
        body = file.body
        if file.compressed and "gzip" in request.headers.get("Accept-Encoding", ""):
            headers["Content-Encoding"] = "gzip"
            body = file.compressed
        return web.Response(body=body, content_type=file.content_type, charset="utf-8", headers=headers)


def _read(path: Path) -> _File:
    return _pack(path.read_bytes(), _TYPES[path.suffix])


def _pack(body: bytes, content_type: str) -> _File:
    compressed = gzip.compress(body, mtime=0) if len(body) > _SMALL else b""
    return _File(body, compressed, content_type, hashlib.sha256(body).hexdigest()[:32])
