"""A set of objects that answers like a small cluster: get, list, and API paths.

The fake cluster of `apply` and `test`: only loaded objects exist.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pyverno.errors import HostError, HostUnavailableError, NotFoundError, ValueSyntaxError
from pyverno.kube.apipath import ApiPath
from pyverno.kube.gvk import GVR, parse_api_version
from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.kinds import KindInfo, KindTable
from pyverno.kube.resource import Resource
from pyverno.policy.kinds import KNOWN_KINDS

__all__ = ["ObjectStore"]


class ObjectStore:
    """Objects by kind, namespace and name; the first of duplicates wins.

    `kinds` maps API paths to kinds; add CRDs to it for kinds that are not built in.
    """

    __slots__ = ("_index", "_loaded", "kinds")

    def __init__(self, objects: Iterable[JSONObject] = (), kinds: KindTable = KNOWN_KINDS) -> None:
        self.kinds = kinds
        self._loaded = tuple(objects)
        self._index: dict[tuple[str, str, str, str], JSONObject] | None = None

    @property
    def _objects(self) -> dict[tuple[str, str, str, str], JSONObject]:
        """The objects by group, kind, namespace and name, indexed at the first use."""
        if self._index is None:
            index: dict[tuple[str, str, str, str], JSONObject] = {}
            for document in self._loaded:
                view = Resource(document)
                index.setdefault((view.group, view.kind, view.namespace, view.name), document)
            self._index = index
        return self._index

    @property
    def objects(self) -> tuple[JSONObject, ...]:
        """All objects, in the order in which they were loaded."""
        return tuple(self._objects.values())

    def __len__(self) -> int:
        return len(self._objects)

    def get(self, api_version: str, kind: str, namespace: str, name: str) -> JSONObject | None:
        """Return one object, or None; a cluster-scoped object is found under any namespace."""
        group, _ = parse_api_version(api_version)
        found = self._objects.get((group, kind, namespace, name))
        return found if found is not None else self._objects.get((group, kind, "", name))

    def list(
        self, api_version: str, kind: str, namespace: str, selector: JSONObject | None = None
    ) -> tuple[JSONObject, ...]:
        """Return the objects of a kind, in the order in which they were loaded ("" = all namespaces)."""
        group, _ = parse_api_version(api_version)
        # imported here and below, because few policies list objects
        from pyverno.kube.selector import compile_selector

        test = None if selector is None else compile_selector(selector)
        return tuple(
            document
            for (own_group, own_kind, own_namespace, _), document in self._objects.items()
            if (own_group, own_kind) == (group, kind)
            and (not namespace or own_namespace == namespace)
            and (test is None or test(Resource(document).labels))
        )

    def serve(self, path: ApiPath, method: str) -> JSON:
        """Answer an API path as the API server would; only GET, only objects and lists."""
        if method != "GET":
            raise HostUnavailableError(f"no cluster is available to call `{method} {path}`")
        group, version, rest = _split(path)
        if rest[:1] == ("namespaces",) and len(rest) > 2:
            namespace, rest = rest[1], rest[2:]
        else:
            namespace = ""
        if not rest or len(rest) > 2:
            raise HostError(f"the server could not find the requested resource `{path.path}`")
        kind = self._kind(GVR(group, version, rest[0]))
        api_version = f"{group}/{version}" if group else version
        if len(rest) == 2:
            found = self.get(api_version, kind.kind, namespace, rest[1])
            if found is None:
                resource = f"{rest[0]}.{group}" if group else rest[0]
                raise NotFoundError(f'{resource} "{rest[1]}" not found')
            return found
        return self._list_answer(api_version, kind, namespace, dict(path.query))

    def _list_answer(self, api_version: str, kind: KindInfo, namespace: str, query: Mapping[str, str]) -> JSONObject:
        items = self.list(api_version, kind.kind, namespace)
        if query.get("labelSelector"):
            try:
                from pyverno.kube.selector import parse_selector_text

                test = parse_selector_text(query["labelSelector"])
            except ValueSyntaxError as error:
                raise HostError(error.message) from error
            items = tuple(item for item in items if test(Resource(item).labels))
        if query.get("fieldSelector"):
            items = tuple(item for item in items if _field_selected(item, query["fieldSelector"]))
        return {
            "apiVersion": api_version,
            "kind": f"{kind.kind}List",
            "metadata": {"resourceVersion": ""},
            "items": list(items),
        }

    def _kind(self, gvr: GVR) -> KindInfo:
        found = self.kinds.by_resource(gvr)
        if found is None:
            raise HostError(f"the server could not find the requested resource `{gvr.resource}`")
        return found


def _split(path: ApiPath) -> tuple[str, str, tuple[str, ...]]:
    segments = path.segments
    if segments[:1] == ("api",) and len(segments) >= 2:
        return "", segments[1], segments[2:]
    if segments[:1] == ("apis",) and len(segments) >= 3:
        return segments[1], segments[2], segments[3:]
    raise HostUnavailableError(f"no cluster is available to call `{path}`")


def _field_selected(document: JSONObject, selector: str) -> bool:
    for requirement in selector.split(","):
        negated = "!=" in requirement
        path, _, wanted = requirement.replace("==", "=").replace("!=", "=").partition("=")
        value: JSON = document
        for step in path.strip().split("."):
            value = value.get(step) if isinstance(value, dict) else None
        if (("" if value is None else str(value)) == wanted.strip()) is negated:
            return False
    return True
