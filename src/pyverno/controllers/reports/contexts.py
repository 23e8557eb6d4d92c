"""The contexts of all buckets: which objects have to be evaluated again after a change of policies or namespaces.

An object is up to date while its context is the present one of its resource and namespace. A change replaces the
contexts that it concerns, and no others.
"""

from __future__ import annotations

from collections.abc import Callable

from pyverno.controllers.reports.evaluation import ScanContext
from pyverno.controllers.reports.objects import BucketKey
from pyverno.controllers.reports.plan import ScanPlan
from pyverno.engine.match import IndexKey
from pyverno.engine.request import DEFAULT_SETTINGS, EvaluationSettings
from pyverno.kube.gvk import GVK
from pyverno.kube.json import JSONObject

__all__ = ["Contexts"]

_VOLATILE = frozenset({"resourceVersion", "managedFields", "generation"})


class Contexts:
    """Makes contexts at first use; `plan` is the present plan."""

    def __init__(self, namespace: Callable[[str], JSONObject | None]) -> None:
        """Take what finds a Namespace by its name."""
        self.plan = ScanPlan()
        self._namespace = namespace
        self._settings = DEFAULT_SETTINGS
        self._known: dict[BucketKey, tuple[IndexKey, ScanContext]] = {}

    def find(self, key: BucketKey, gvk: GVK) -> ScanContext:
        """Return the present context of a bucket."""
        known = self._known.get(key)
        if known is None:
            index = IndexKey(gvk, "", "CREATE", key.namespace, background=True, gvr=key.gvr)
            namespace = _stable(self._namespace(key.namespace)) if key.namespace else None
            known = self._known[key] = index, ScanContext(self.plan, index, key.gvr, namespace, self._settings)
        return known[1]

    def follow(self, plan: ScanPlan) -> bool:
        """Take a new plan; return whether any object has to be evaluated again."""
        changed, self.plan = plan.changes(self.plan), plan
        stale = [
            key for key, (index, _) in self._known.items() if any(plan.matches(policy, index) for policy in changed)
        ]
        for key in stale:
            del self._known[key]
        for index, context in self._known.values():
            context.move_to(plan, index)
        return bool(changed)

    def follow_settings(self, settings: EvaluationSettings) -> bool:
        """Take new settings, which affect every object; return whether they differ."""
        if settings == self._settings:
            return False
        self._settings = settings
        self._known.clear()
        return True

    def follow_namespace(self, name: str) -> bool:
        """Return whether a namespace differs from the one that its objects were evaluated with."""
        now = _stable(self._namespace(name))
        stale = [key for key, (_, context) in self._known.items() if key.namespace == name and context.differs(now)]
        for key in stale:
            del self._known[key]
        return bool(stale)

    def forget(self, key: BucketKey) -> None:
        """Drop the context of a bucket that is empty."""
        self._known.pop(key, None)


def _stable(body: JSONObject | None) -> JSONObject | None:
    """Return a namespace without what changes with every write."""
    if body is None:
        return None
    kept = {name: value for name, value in body["metadata"].items() if name not in _VOLATILE}
    return {**body, "metadata": kept}
