"""Names of kinds: group, version and kind (or resource), and the selectors by which policies name them."""

from __future__ import annotations

import re
from functools import lru_cache

from pyverno.kube.names import MAX_NAME
from pyverno.kube.wildcard import has_wildcard
from pyverno.kube.wildcard import match as fits
from pyverno.lazyregex import regex
from pyverno.value import dataclass

__all__ = [
    "GVK",
    "GVR",
    "KindSelector",
    "join_api_version",
    "parse_api_version",
    "parse_kind_selector",
    "version_order",
]

_KUBE_VERSION = regex(r"v([1-9][0-9]*)(?:(alpha|beta)([1-9][0-9]*))?")
_VERSION = regex(r"v[0-9]+(?:(?:alpha|beta)[0-9]+)?|\*", re.ASCII)
_PARTS = 4
"""Group, version, kind and subresource."""


@dataclass(frozen=True, slots=True, order=True)
class GVK:
    """Group (empty for the core group), version and kind.

    >>> GVK("apps", "v1", "Deployment").api_version
    'apps/v1'
    """

    group: str
    version: str
    kind: str

    @property
    def api_version(self) -> str:
        """The value of `apiVersion`."""
        return join_api_version(self.group, self.version)

    def __str__(self) -> str:
        return f"{self.api_version}/{self.kind}"


@dataclass(frozen=True, slots=True, order=True)
class GVR:
    """Group (empty for the core group), version and resource in plural form, such as `deployments`.

    >>> str(GVR("apps", "v1", "deployments"))
    'apps/v1/deployments'
    """

    group: str
    version: str
    resource: str

    @property
    def api_version(self) -> str:
        """The value of `apiVersion`."""
        return join_api_version(self.group, self.version)

    def __str__(self) -> str:
        return f"{self.api_version}/{self.resource}"


@dataclass(frozen=True, slots=True, order=True)
class KindSelector:
    """Four wildcard patterns; an empty subresource means the main resource.

    >>> parse_kind_selector("apps/*/Deployment.scale")
    KindSelector(group='apps', version='*', kind='Deployment', subresource='scale')
    """

    group: str
    version: str
    kind: str
    subresource: str = ""

    @property
    def has_wildcard(self) -> bool:
        """Whether the kind itself is a pattern."""
        return has_wildcard(self.kind)

    def matches(self, gvk: GVK, subresource: str = "", *, is_ephemeral_pod: bool = False) -> bool:
        """Return whether a kind and subresource are selected.

        With `is_ephemeral_pod` a selector of Pod also takes its `ephemeralcontainers` subresource.
        """
        if not (fits(self.group, gvk.group) and fits(self.version, gvk.version) and fits(self.kind, gvk.kind)):
            return False
        if fits(self.subresource, subresource):
            return True
        return is_ephemeral_pod and gvk.kind == "Pod" and subresource == "ephemeralcontainers"


def parse_api_version(text: str) -> tuple[str, str]:
    """Split an `apiVersion` into group and version.

    >>> parse_api_version("apps/v1"), parse_api_version("v1")
    (('apps', 'v1'), ('', 'v1'))
    """
    group, slash, version = text.partition("/")
    return (group, version) if slash else ("", group)


def join_api_version(group: str, version: str) -> str:
    """Write group and version as `apiVersion`.

    >>> join_api_version("", "v1")
    'v1'
    """
    return f"{group}/{version}" if group else version


def parse_kind_selector(text: str) -> KindSelector:
    """Read a kind as policies write it; texts of more than four parts select nothing.

    >>> parse_kind_selector("Pod"), parse_kind_selector("*/*").subresource
    (KindSelector(group='*', version='*', kind='Pod', subresource=''), '*')
    """
    return _parse_kind_selector(text) if len(text) <= MAX_NAME else _read_kind_selector(text)


def _read_kind_selector(text: str) -> KindSelector:
    # Kyverno: pkg/utils/kube, ParseKindSelector
    *before, last = text.split("/", _PARTS)
    match (*before, *last.split(".", _PARTS)):
        case (kind,):
            return KindSelector("*", "*", kind)
        case ("*", "*"):
            return KindSelector("*", "*", "*", "*")
        case ("*", subresource) if subresource == subresource.lower():
            return KindSelector("*", "*", "*", subresource)
        case (version, kind) if _VERSION.fullmatch(version):
            return KindSelector("*", version, kind)
        case (kind, subresource):
            return KindSelector("*", "*", kind, subresource)
        case (version, kind, subresource) if _VERSION.fullmatch(version):
            return KindSelector("*", version, kind, subresource)
        case (group, version, kind):
            return KindSelector(group, version, kind)
        case (group, version, kind, subresource):
            return KindSelector(group, version, kind, subresource)
    return KindSelector("", "", "", "")


_parse_kind_selector = lru_cache(maxsize=2048)(_read_kind_selector)


def version_order(name: str) -> tuple[int, int, int, int, str]:
    """Return the key by which versions are sorted, the most stable and newest first.

    >>> sorted(["v1beta1", "v10", "foo", "v2", "v1alpha1"], key=version_order)
    ['v10', 'v2', 'v1beta1', 'v1alpha1', 'foo']
    """
    found = _KUBE_VERSION.fullmatch(name)
    if found is None:
        return (1, 0, 0, 0, name)
    stability = {"": 0, "beta": 1, "alpha": 2}[found[2] or ""]
    return (0, stability, -int(found[1]), -int(found[3] or 0), "")
