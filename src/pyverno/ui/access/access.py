"""One read that is checked for a user: the attributes of a SubjectAccessReview, from a resolved resource or a path.

Attributes are those of the request that the API server would see, so that its answer is that for the same request.
"""

from __future__ import annotations

from typing import Final

from pyverno.errors import HostError
from pyverno.kube.apipath import ApiPath
from pyverno.kube.gvk import GVR
from pyverno.kube.json import JSONObject
from pyverno.value import dataclass

__all__ = ["Access", "access_of_path", "access_to"]

_NAMESPACES: Final = "namespaces"
_OF_NAMESPACES: Final = frozenset({"status", "finalize"})
_VERBS: Final = {"GET": "get", "POST": "create"}
_REVIEWS: Final = "authorization.k8s.io"


@dataclass(frozen=True, slots=True)
class Access:
    """What a user wants to do with a resource, or with a `path` that is none."""

    verb: str
    group: str = ""
    version: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""

    @property
    def is_to_secrets(self) -> bool:
        """Return whether the answer holds Secrets."""
        return (self.group, self.resource) == ("", "secrets")

    def attributes(self) -> JSONObject:
        """Return the part of a SubjectAccessReview.

        >>> Access("get", path="/version").attributes()
        {'nonResourceAttributes': {'verb': 'get', 'path': '/version'}}
        """
        if self.path:
            return {"nonResourceAttributes": {"verb": self.verb, "path": self.path}}
        names = ("version", "subresource", "namespace", "name")
        given = {name: text for name in names if (text := getattr(self, name))}
        return {
            "resourceAttributes": {"verb": self.verb, "group": self.group, "resource": self.resource, **given},
        }

    def __str__(self) -> str:
        if self.path:
            return f"`{self.verb}` `{self.path}`"
        kind = f"{self.resource}/{self.subresource}" if self.subresource else self.resource
        kind = f"{kind}.{self.group}" if self.group else kind
        is_own = (self.group, self.resource) == ("", _NAMESPACES)
        where = f"{self.namespace}/{self.name}" if self.namespace and not is_own else self.name
        if self.name:
            return f"`{self.verb}` {kind} `{where}`"
        return f"`{self.verb}` {kind} in {f'namespace `{self.namespace}`' if self.namespace else 'all namespaces'}"


def access_to(gvr: GVR, namespace: str = "", name: str = "", *, verb: str = "get", subresource: str = "") -> Access:
    """Return the access to an object, or to all objects of a namespace or of the cluster.

    >>> str(access_to(GVR("apps", "v1", "deployments"), "shop", "web"))
    '`get` deployments.apps `shop/web`'
    """
    if (gvr.group, gvr.resource) == ("", _NAMESPACES):
        namespace = name  # the API server takes a Namespace for an object in itself
    return Access(verb, gvr.group, gvr.version, gvr.resource, subresource, namespace, name)


def access_of_path(path: ApiPath, method: str) -> Access:
    """Return the access of a request; raises HostError for one that writes, or whose meaning is not clear.

    >>> from pyverno.kube.apipath import parse_api_path
    >>> str(access_of_path(parse_api_path("/api/v1/namespaces/shop/configmaps"), "GET"))
    '`list` configmaps in namespace `shop`'
    """
    verb = _VERBS.get(method)
    if verb is None:
        raise HostError(f"these pages only read: `{method} {path.path}` is not sent")
    match path.segments:
        case ("api", version, first, *rest):
            group = ""
        case ("apis", group, version, first, *rest):
            pass
        case _:
            return Access(verb, path=path.path)
    if first in ("watch", "proxy"):
        raise HostError(f"these pages only read: `{method} {path.path}` is not sent")
    namespace = ""
    if not group and first == _NAMESPACES and (len(rest) == 1 or (rest[1:] and rest[1] in _OF_NAMESPACES)):
        namespace = rest[0]
    elif first == _NAMESPACES and len(rest) > 1:
        namespace, first, *rest = rest
    name, subresource = (*rest[:2], "", "")[:2]
    if method == "POST" and group != _REVIEWS:  # guard: the pages of the server write nothing
        raise HostError(f"these pages only read: `{method} {path.path}` is not sent")
    verb = "list" if verb == "get" and not name else verb
    return Access(verb, group, version, first, subresource, namespace, name)
