"""JSON documents of registries, bounded before they are parsed: whoever pushes an image writes them.

They are parsed on the event loop, and the parser lets nothing else run meanwhile.
"""

from __future__ import annotations

from typing import Final

from pyverno.errors import DocumentError, HostError
from pyverno.kube.json import JSON, JSONObject, decode
from pyverno.kube.jsonscan import has_more_values

__all__ = ["MAX_CONFIGURATION", "MAX_VALUES", "read_document", "read_object"]

MAX_CONFIGURATION: Final = 2 * 1024 * 1024
"""Bytes of the configuration of an image, as many as the context of a review may have; usual ones have a few KiB."""

MAX_VALUES: Final = 200_000
"""Values of one document. An image of 127 layers, or a list of 1,000 referrers, has a few thousand."""


def read_document(body: bytes, what: str) -> JSON:
    """Parse a document; raises HostError for invalid JSON and for too many values.

    >>> read_document(b'{"layers": []}', "the manifest")
    {'layers': []}
    """
    if has_more_values(body, MAX_VALUES):
        raise HostError(f"{what} has more than {MAX_VALUES} values")
    try:
        return decode(body)
    except DocumentError:
        raise HostError(f"{what} is no JSON") from None


def read_object(body: bytes, what: str) -> JSONObject:
    """Parse a document that must be an object; raises HostError for anything else."""
    found = read_document(body, what)
    if not isinstance(found, dict):
        raise HostError(f"{what} is no JSON object")
    return found
