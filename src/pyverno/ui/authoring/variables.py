"""The variables of expressions with their types, and the names that a policy defines itself."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from pyverno.ui.authoring.outline import Entry, Path

__all__ = ["CEL_VARIABLES", "JMESPATH_VARIABLES", "OBJECTS", "REQUEST_FIELDS", "own_names"]

JMESPATH_VARIABLES: Final[Mapping[str, str]] = {
    "request": "The admission request.",
    "request.object": "The object as it will be.",
    "request.oldObject": "The object before an update or a deletion.",
    "images": "Images of the containers: images.containers.NAME has registry, path, name, tag and digest.",
    "serviceAccountName": "The name of the service account that makes the request.",
    "serviceAccountNamespace": "The namespace of the service account that makes the request.",
    "element": "In foreach: the current item of the list.",
    "elementIndex": "In foreach: the number of the current item, from 0.",
    "target": "In mutateExisting rules: the object that is changed.",
}
CEL_VARIABLES: Final[Mapping[str, str]] = {
    "object": "The object as it will be; null for DELETE.",
    "oldObject": "The object before an update or a deletion; null for CREATE.",
    "request": "The admission request.",
    "namespaceObject": "The Namespace of the object; null for cluster resources.",
    "variables": "The variables of the policy, by name.",
    "params": "The object that the binding names as parameter.",
    "authorizer": "Checks of what the user of the request may do.",
}
REQUEST_FIELDS: Final[Mapping[str, str]] = {
    "operation": "CREATE, UPDATE, DELETE or CONNECT.",
    "name": "The name of the object.",
    "namespace": "The namespace of the object.",
    "object": "The object as it will be.",
    "oldObject": "The object before an update or a deletion.",
    "userInfo": "The user: username, uid, groups, extra.",
    "userInfo.username": "The name of the user.",
    "userInfo.groups": "The groups of the user.",
    "kind": "Group, version and kind of the object.",
    "resource": "Group, version and plural name of the resource.",
    "subResource": "The subresource, such as `scale`.",
    "dryRun": "Whether nothing will be stored.",
    "roles": "JMESPath only: the roles of the user.",
    "clusterRoles": "JMESPath only: the cluster roles of the user.",
}
OBJECTS: Final = ("request.object", "request.oldObject", "object", "oldObject", "target")
"""Variables that hold an object of the kind that the policy matches."""


def own_names(entries: Iterable[Entry], spot: Path) -> tuple[Sequence[str], Sequence[str]]:
    """Return the names that a policy gives to variables of CEL, and those of `context` entries that a place sees."""
    cel, context = [], []
    for entry in entries:
        path = entry.path
        if path[-1] != "name" or len(path) < 3:
            continue
        if path[-3] == "variables":
            cel.append(entry.value.strip("\"'"))
        elif path[-3] == "context" and path[:-3] == spot[: len(path) - 3]:
            context.append(entry.value.strip("\"'"))
    return cel, context
