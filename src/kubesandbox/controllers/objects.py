"""Metadata that controllers read of any object, and its owners.

Everything tolerates what is absent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from kubesandbox.storage.store import Key
from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.selector import LabelTest
from pyverno.value import dataclass

__all__ = [
    "Claim",
    "adoption",
    "annotations_of",
    "at",
    "claim",
    "controller_of",
    "is_deleting",
    "is_owned_by",
    "key_of",
    "labels_of",
    "name_of",
    "namespace_of",
    "number_at",
    "owner_reference",
    "owners_of",
    "uid_of",
    "with_metadata",
    "with_status",
    "without_owner",
]


def at(body: JSON, *path: str, default: JSON = None) -> JSON:
    """Return the value at a path of keys.

    >>> at({"spec": {"a": 1}}, "spec", "a"), at({}, "spec", "a", default=3)
    (1, 3)
    """
    for key in path:
        body = body.get(key) if isinstance(body, dict) else None
    return default if body is None else body


def number_at(body: JSON, *path: str, default: int = 0) -> int:
    """Return the whole number at a path."""
    found = at(body, *path)
    return found if isinstance(found, int) else default


def name_of(body: JSONObject) -> str:
    """Return the name."""
    return str(at(body, "metadata", "name", default=""))


def namespace_of(body: JSONObject) -> str:
    """Return the namespace, empty for objects of the cluster."""
    return str(at(body, "metadata", "namespace", default=""))


def uid_of(body: JSONObject) -> str:
    """Return the unique id."""
    return str(at(body, "metadata", "uid", default=""))


def labels_of(body: JSONObject) -> Mapping[str, str]:
    """Return the labels."""
    found: Mapping[str, str] = at(body, "metadata", "labels", default={})
    return found


def annotations_of(body: JSONObject) -> Mapping[str, str]:
    """Return the annotations."""
    found: Mapping[str, str] = at(body, "metadata", "annotations", default={})
    return found


def key_of(resource: str, body: JSONObject) -> Key:
    """Return the storage key of an object."""
    return Key(resource, namespace_of(body), name_of(body))


def is_deleting(body: JSONObject) -> bool:
    """Return whether the deletion of the object was requested."""
    return bool(at(body, "metadata", "deletionTimestamp"))


def owners_of(body: JSONObject) -> list[JSONObject]:
    """Return the owner references."""
    found: list[JSONObject] = at(body, "metadata", "ownerReferences", default=[])
    return found


def controller_of(body: JSONObject) -> JSONObject | None:
    """Return the owner reference of the controller."""
    return next((owner for owner in owners_of(body) if owner.get("controller")), None)


def is_owned_by(body: JSONObject, owner: JSONObject) -> bool:
    """Return whether an object is controlled by another one."""
    found = controller_of(body)
    return found is not None and found.get("uid") == uid_of(owner)


def owner_reference(owner: JSONObject, *, is_controller: bool = True) -> JSONObject:
    """Return the reference that a dependent of an object carries.

    >>> owner_reference({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "uid": "u"}})["controller"]
    True
    """
    reference: JSONObject = {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": name_of(owner),
        "uid": uid_of(owner),
    }
    return {**reference, "controller": True, "blockOwnerDeletion": True} if is_controller else reference


def with_metadata(body: JSONObject, **changes: JSON) -> JSONObject:
    """Return an object with other metadata; None takes a field away."""
    metadata = {key: value for key, value in {**body["metadata"], **changes}.items() if value is not None}
    return {**body, "metadata": metadata}


def with_status(body: JSONObject, status: JSONObject) -> JSONObject:
    """Return an object with another status."""
    return {**body, "status": status}


def without_owner(body: JSONObject, uids: Iterable[str]) -> JSONObject:
    """Return the merge patch that takes owner references away, safe against other writers.

    >>> pod = {"metadata": {"uid": "p", "resourceVersion": "7", "ownerReferences": [{"uid": "a"}, {"uid": "b"}]}}
    >>> without_owner(pod, ["a"])["metadata"]["ownerReferences"]
    [{'uid': 'b'}]
    """
    gone = set(uids)
    return _owners_patch(body, [owner for owner in owners_of(body) if owner.get("uid") not in gone])


@dataclass(frozen=True, slots=True)
class Claim:
    """The objects of a controller: those that are its own, that it should adopt, and that it should let go."""

    owned: tuple[JSONObject, ...]
    adopted: tuple[JSONObject, ...]
    released: tuple[JSONObject, ...]


def claim(
    owner: JSONObject,
    objects: Iterable[JSONObject],
    selects: LabelTest,
    *,
    may_adopt: Callable[[JSONObject], bool] = lambda _body: True,
) -> Claim:
    """Divide objects by ownership and selector, as Kubernetes' controllers do."""
    owned: list[JSONObject] = []
    adopted: list[JSONObject] = []
    released: list[JSONObject] = []
    for body in objects:
        reference = controller_of(body)
        matches = selects(labels_of(body))
        if reference is not None:
            if reference.get("uid") == uid_of(owner):
                (owned if matches or is_deleting(owner) else released).append(body)
        elif matches and not is_deleting(owner) and not is_deleting(body) and may_adopt(body):
            adopted.append(body)
    return Claim(tuple(owned), tuple(adopted), tuple(released))


def adoption(body: JSONObject, owner: JSONObject) -> JSONObject:
    """Return the merge patch that makes a controller the owner of an object."""
    return _owners_patch(body, [*owners_of(body), owner_reference(owner)])


def _owners_patch(body: JSONObject, owners: list[JSONObject]) -> JSONObject:
    return {
        "metadata": {
            "uid": uid_of(body),
            "resourceVersion": at(body, "metadata", "resourceVersion"),
            "ownerReferences": owners or None,
        }
    }
