"""The graph of owners: for every owner, by its uid, the keys of its dependents.

Built from changes and nothing else.
"""

from __future__ import annotations

from kubesandbox.controllers.objects import owners_of, uid_of
from kubesandbox.storage.store import Key
from pyverno.kube.json import JSONObject
from pyverno.value import dataclass

__all__ = ["OwnerGraph"]


@dataclass(frozen=True, slots=True)
class _Node:
    uid: str
    owners: frozenset[str]


class OwnerGraph:
    """The references of all objects, in both directions.

    >>> graph, pod = OwnerGraph(), Key("pods", "n", "a")
    >>> graph.put(pod, {"metadata": {"uid": "p", "ownerReferences": [{"uid": "o"}]}})
    >>> graph.dependents("o"), graph.place("p")
    ([Key(resource='pods', namespace='n', name='a')], Key(resource='pods', namespace='n', name='a'))
    """

    def __init__(self) -> None:
        """Start with nothing."""
        self._nodes: dict[Key, _Node] = {}
        self._dependents: dict[str, dict[Key, None]] = {}
        self._places: dict[str, Key] = {}

    def put(self, key: Key, body: JSONObject) -> None:
        """Take an object as it is now."""
        node = _Node(uid_of(body), frozenset(str(owner.get("uid")) for owner in owners_of(body)))
        known = self._nodes.get(key)
        if known == node:
            return
        if known is not None:
            self._unlink(key, known)
        self._nodes[key] = node
        self._places[node.uid] = key
        for owner in node.owners:
            self._dependents.setdefault(owner, {})[key] = None

    def remove(self, key: Key) -> None:
        """Forget an object; its dependents stay known."""
        known = self._nodes.pop(key, None)
        if known is not None:
            self._unlink(key, known)

    def dependents(self, uid: str) -> list[Key]:
        """Return the keys of an owner's dependents."""
        return list(self._dependents.get(uid, ()))

    def place(self, uid: str) -> Key | None:
        """Return the key of an object."""
        return self._places.get(uid)

    def _unlink(self, key: Key, node: _Node) -> None:
        if self._places.get(node.uid) == key:
            del self._places[node.uid]
        for owner in node.owners:
            found = self._dependents.get(owner)
            if found is not None:
                found.pop(key, None)
                if not found:
                    del self._dependents[owner]
