"""Operation and resource of a request to the API server, in the words of Kyverno's metric of client queries."""

from __future__ import annotations

from typing import Final, NamedTuple

__all__ = ["WATCH", "ClientQuery", "client_query"]

WATCH: Final = "WATCH"
"""Stands for the method of a query that follows a collection."""
_OPERATIONS: Final = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete", WATCH: "watch"}


class ClientQuery(NamedTuple):
    """One question: the operation, the resource (plural) and its namespace, "" for what is in none."""

    operation: str
    resource: str
    namespace: str


def client_query(method: str, path: str) -> ClientQuery | None:
    """Read a request; None for one without a resource (discovery, version, other paths).

    >>> client_query("PATCH", "/apis/kyverno.io/v1/namespaces/shop/policies/check/status")
    ClientQuery(operation='patch', resource='policies', namespace='shop')
    >>> client_query("GET", "/api/v1/namespaces")
    ClientQuery(operation='list', resource='namespaces', namespace='')
    """
    parts = path.strip("/").split("/")
    match parts:
        case ["api", _, *rest] | ["apis", _, _, *rest] if rest:
            namespace = ""
            if rest[0] == "namespaces" and len(rest) > 2 and rest[2] not in ("status", "finalize"):
                namespace, rest = rest[1], rest[2:]
            return ClientQuery(_operation(method, rest), rest[0], namespace)
    return None


def _operation(method: str, rest: list[str]) -> str:
    if method == "GET":
        return "get" if len(rest) > 1 else "list"
    if method == "PUT" and rest[2:] == ["status"]:
        return "update_status"
    if method == "DELETE" and len(rest) == 1:
        return "delete_collection"
    return _OPERATIONS.get(method, method.lower())
