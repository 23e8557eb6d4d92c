"""Versions of the Pod Security Standards: `v1.N`, or `latest`."""

from __future__ import annotations

import re

from pyverno.errors import ValueSyntaxError
from pyverno.lazyregex import regex
from pyverno.value import dataclass

__all__ = ["LATEST", "Version", "parse_version", "since"]

_VERSION = regex(r"v1\.(0|[1-9][0-9]{0,17})", re.ASCII)


@dataclass(frozen=True, slots=True, order=True)
class Version:
    """A version of the standards; `latest` is newer than every numbered one.

    >>> since(9) < since(25) < LATEST
    True
    """

    latest: bool
    minor: int

    def __str__(self) -> str:
        return "latest" if self.latest else f"v1.{self.minor}"


LATEST = Version(latest=True, minor=0)
"""Whatever the newest variant of each check asks for."""


def since(minor: int) -> Version:
    """Return version `v1.MINOR`.

    >>> str(since(25))
    'v1.25'
    """
    return Version(latest=False, minor=minor)


def parse_version(text: str) -> Version:
    """Read `v1.N`, `latest` or the empty text, which means latest.

    Raises ValueSyntaxError with Kubernetes' own text for anything else.
    (Kubernetes: pod-security-admission/api)

    >>> str(parse_version("v1.19")), str(parse_version(""))
    ('v1.19', 'latest')
    """
    if text in ("", "latest"):
        return LATEST
    found = _VERSION.fullmatch(text)
    if found is None:
        raise ValueSyntaxError('must be "latest" or "v1.x"')
    return since(int(found.group(1)))
