"""The image beside the name of the pages, read once."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from aiohttp import web

from pyverno.errors import UsageError
from pyverno.offline.files import read_file
from pyverno.value import dataclass

__all__ = ["Logo", "read_logo"]

_MOST_BYTES: Final = 256 * 1024
_PNG: Final = b"\x89PNG\r\n\x1a\n"


@dataclass(frozen=True, slots=True)
class Logo:
    """An image; the headers of every response stop scripts in an image that is opened as a page."""

    body: bytes
    content_type: str

    def routes(self) -> Iterable[web.RouteDef]:
        """Return the route, relative to the base path."""
        return [web.get("/static/logo", self._show)]

    async def _show(self, _: web.Request) -> web.Response:
        return web.Response(body=self.body, content_type=self.content_type)


def read_logo(path: str) -> Logo:
    """Return the image of a file; raises UsageError for one that is neither SVG nor PNG, or too large."""
    body = read_file(Path(path))
    if len(body) > _MOST_BYTES:
        raise UsageError(f"`{path}` has more than {_MOST_BYTES} bytes: the pages show it as a small image")
    if body.startswith(_PNG):
        return Logo(body, "image/png")
    if b"<svg" in body[:4096]:
        return Logo(body, "image/svg+xml")
    raise UsageError(f"`{path}` is neither an SVG nor a PNG image")
