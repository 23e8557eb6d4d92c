"""Paths of the Kubernetes API, parsed into parts and written back canonically.

The path that is sent is always the one that was checked: a text is parsed into parts, and `str()` of the parts is sent.
"""

from __future__ import annotations

from urllib.parse import parse_qsl, quote, urlencode

from pyverno.errors import HostError, ValueSyntaxError
from pyverno.kube.gvk import GVR
from pyverno.value import dataclass

__all__ = ["ApiPath", "format_segment", "object_path", "parse_api_path", "resource_path"]

_SAFE = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._:@+,=~")
_NO_SEGMENTS = frozenset({"", ".", ".."})
_FORBIDDEN = frozenset("/%\\\0\r\n")
_QUERY_KEYS = frozenset(
    {
        "labelSelector",
        "fieldSelector",
        "limit",
        "continue",
        "resourceVersion",
        "resourceVersionMatch",
        "timeoutSeconds",
        "pretty",
        "allowWatchBookmarks",
        "dryRun",
        "fieldManager",
        "fieldValidation",
        "propagationPolicy",
        "gracePeriodSeconds",
    }
)


@dataclass(frozen=True, slots=True)
class ApiPath:
    """A canonical API path: segments without slashes, its namespace ("" = none), and its query.

    `is_namespace_object` marks `/api/v1/namespaces/NAME` itself: the Namespace, not an object inside it.
    """

    segments: tuple[str, ...]
    namespace: str = ""
    is_namespace_object: bool = False
    query: tuple[tuple[str, str], ...] = ()

    @property
    def named(self) -> tuple[GVR, str, str] | None:
        """Resource, namespace and name of the single object at the path; None for any other path.

        >>> parse_api_path("/apis/apps/v1/namespaces/shop/deployments/web").named
        (GVR(group='apps', version='v1', resource='deployments'), 'shop', 'web')
        >>> parse_api_path("/api/v1/namespaces/shop").named
        (GVR(group='', version='v1', resource='namespaces'), '', 'shop')
        >>> parse_api_path("/api/v1/namespaces/shop/pods").named is None
        True
        """
        match self.segments:
            case ("api", version, "namespaces", namespace, resource, name):
                return GVR("", version, resource), namespace, name
            case ("api", version, resource, name):
                return GVR("", version, resource), "", name
            case ("apis", group, version, "namespaces", namespace, resource, name):
                return GVR(group, version, resource), namespace, name
            case ("apis", group, version, resource, name) if resource != "namespaces":
                return GVR(group, version, resource), "", name
        return None

    @property
    def place(self) -> tuple[str, str, str, str]:
        """Group, resource, name and subresource of a path within a namespace, as RBAC sees them; empty where none is.

        >>> parse_api_path("/apis/apps/v1/namespaces/shop/deployments/web/scale").place
        ('apps', 'deployments', 'web', 'scale')
        >>> parse_api_path("/version").place
        ('', '', '', '')
        """
        if not self.namespace or self.is_namespace_object:
            return "", "", "", ""
        is_core = self.segments[0] == "api"
        group = "" if is_core else self.segments[1]
        resource, name, subresource = (*self.segments[4 if is_core else 5 :], "", "", "")[:3]
        return group, resource, name, subresource

    @property
    def path(self) -> str:
        """The path without its query."""
        return "/" + "/".join(quote(segment, safe=":@+,=~") for segment in self.segments)

    def __str__(self) -> str:
        return f"{self.path}?{urlencode(self.query)}" if self.query else self.path


def format_segment(text: str) -> str:
    """Return a name as one segment of a path, escaped where necessary; raises ValueSyntaxError for other texts.

    Kubernetes refuses the same names in paths: empty ones, `.` and `..`, and names with a slash or a percent sign.

    >>> format_segment("system:node"), format_segment("what?")
    ('system:node', 'what%3F')
    >>> format_segment("../secrets")
    Traceback (most recent call last):
    pyverno.errors.ValueSyntaxError: a name that is not one segment of an API path
    """
    if text in _NO_SEGMENTS or not _FORBIDDEN.isdisjoint(text):
        raise ValueSyntaxError("a name that is not one segment of an API path")
    return text if _SAFE.issuperset(text) else quote(text, safe=":@+,=~")


def resource_path(gvr: GVR, namespace: str = "", name: str = "", subresource: str = "") -> str:
    """Write the path of a collection, an object or a subresource; raises HostError for a part with a slash or dots.

    Names may be data of a request (a target, the name of a ConfigMap): none may lead to another path.

    >>> resource_path(GVR("apps", "v1", "deployments"), "default", "web", "scale")
    '/apis/apps/v1/namespaces/default/deployments/web/scale'
    >>> resource_path(GVR("", "v1", "pods"))
    '/api/v1/pods'
    """
    parts = [gvr.group, gvr.version] if gvr.group else [gvr.version]
    if namespace:
        parts += ["namespaces", namespace]
    parts += [gvr.resource, *(part for part in (name, subresource) if part)]
    try:
        return "/".join(("/apis" if gvr.group else "/api", *map(format_segment, parts)))
    except ValueSyntaxError:
        raise HostError(f"invalid name or namespace of {gvr.resource}: it is not one segment of an API path") from None


def object_path(gvr: GVR, namespace: str, name: str, subresource: str = "") -> str:
    """Write the path of one object; raises HostError without a name: the path would be that of all objects.

    >>> object_path(GVR("", "v1", "pods"), "team", "web")
    '/api/v1/namespaces/team/pods/web'
    """
    if not name:
        raise HostError(f"a request for an object of {gvr.resource} has no name")
    return resource_path(gvr, namespace, name, subresource)


def parse_api_path(text: str) -> ApiPath:
    """Parse a `urlPath`; raises ValueSyntaxError for anything that is not plainly one API path.

    Percent signs, dot segments, doubled slashes, backslashes, semicolons, fragments, control and non-ASCII characters
    are refused rather than interpreted; the query is split off first and has an allow-list of parameters.

    >>> path = parse_api_path("/api/v1/namespaces/team/pods?limit=2")
    >>> path.namespace, str(path)
    ('team', '/api/v1/namespaces/team/pods?limit=2')
    >>> parse_api_path("/api/v1/namespaces/a/../b/pods")
    Traceback (most recent call last):
    pyverno.errors.ValueSyntaxError: invalid API path `/api/v1/namespaces/a/../b/pods`: it contains the segment `..`
    """
    path, separator, query = text.partition("?")
    segments = _segments(text, path)
    namespace, is_object = _namespace_of(segments)
    return ApiPath(segments, namespace, is_object, _query(text, query) if separator else ())


def _segments(text: str, path: str) -> tuple[str, ...]:
    if not path.startswith("/"):
        raise _refusal(text, "it must start with `/`")
    parts = path.strip("/").split("/") if path.strip("/") else []
    for part in parts:
        if part in (".", ".."):
            raise _refusal(text, f"it contains the segment `{part}`")
        if not part:
            raise _refusal(text, "it contains an empty segment")
        bad = next((character for character in part if character not in _SAFE), None)
        if bad is not None:
            raise _refusal(text, f"it contains the character {bad!r}")
    if path.startswith("//") or path.endswith("//"):
        raise _refusal(text, "it contains an empty segment")
    return tuple(parts)


def _query(text: str, query: str) -> tuple[tuple[str, str], ...]:
    try:
        pairs = parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query), max_num_fields=32)
    except ValueError:
        raise _refusal(text, "its query cannot be read") from None
    for key, value in pairs:
        if key not in _QUERY_KEYS:
            raise _refusal(text, f"its query has the parameter `{key}`, which is not allowed")
        if not value.isprintable():
            raise _refusal(text, f"its query parameter `{key}` has a control character")
    return tuple(pairs)


def _namespace_of(segments: tuple[str, ...]) -> tuple[str, bool]:
    prefix = 2 if segments[:1] == ("api",) else 3 if segments[:1] == ("apis",) else 0
    rest = segments[prefix:] if prefix else ()
    if len(rest) >= 2 and rest[0] == "namespaces":
        return rest[1], len(rest) == 2 or (len(rest) == 3 and rest[2] in ("status", "finalize"))
    return "", False


def _refusal(text: str, reason: str) -> ValueSyntaxError:
    from pyverno.sinks.characters import one_line  # few errors quote such a name

    shown = one_line(text[:200])
    return ValueSyntaxError(f"invalid API path `{shown}`: {reason}")
