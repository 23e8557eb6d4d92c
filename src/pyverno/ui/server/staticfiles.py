"""The pages' own files, read once: each with its digest as ETag, compressed where the browser takes it."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from aiohttp import web

from pyverno.errors import UsageError
from pyverno.value import dataclass

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

    def routes(self) -> Iterable[web.RouteDef]:
        """Return a route for each file, and that of the first page."""
        yield web.get("/", self._index)
        for name in self._files:
            yield web.get(f"/static/{name}", self._handle)

    async def _index(self, request: web.Request) -> web.Response:
        return self._respond(request, self._files["index.html"])

    async def _handle(self, request: web.Request) -> web.Response:
        return self._respond(request, self._files[request.path.partition("/static/")[2]])

    def _respond(self, request: web.Request, file: _File) -> web.Response:
        headers = {"ETag": f'"{file.digest}"', "Cache-Control": "no-cache", "Vary": "Accept-Encoding"}
        if any(tag.value == file.digest for tag in request.if_none_match or ()):
            return web.Response(status=304, headers=headers)
        body = file.body
        if file.compressed and "gzip" in request.headers.get("Accept-Encoding", ""):
            headers["Content-Encoding"] = "gzip"
            body = file.compressed
        return web.Response(body=body, content_type=file.content_type, charset="utf-8", headers=headers)


def _read(path: Path) -> _File:
    body = path.read_bytes()
    compressed = gzip.compress(body, mtime=0) if len(body) > _SMALL else b""
    return _File(body, compressed, _TYPES[path.suffix], hashlib.sha256(body).hexdigest()[:32])
