"""Compiled matchConstraints: which requests a CEL policy, a binding or a target selection matches.

A `ConstraintMatcher` answers the same questions as `match.Matcher`, in the API server's way: resources instead of
kinds, exact names instead of wildcards, selectors on the object as it is or as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache

from pyverno.engine.match import NO_REPORTS, REPORT_GROUPS, Filter, IndexKey
from pyverno.engine.request import Request
from pyverno.kube.gvk import GVK, GVR
from pyverno.kube.json import JSON
from pyverno.kube.kinds import BUILTIN_KINDS, KindTable
from pyverno.kube.names import MAX_NAME
from pyverno.kube.resource import Resource
from pyverno.value import dataclass, replace

__all__ = ["NEVER_INTERCEPTED", "ConstraintMatcher", "ResourceRule", "resource_of"]

LabelTest = Callable[[Mapping[str, str]], bool]

ANY = "*"
CLUSTER = "Cluster"
NAMESPACED = "Namespaced"
NAMESPACES = "namespaces"
NAME_LABEL = "kubernetes.io/metadata.name"
_NAMESPACE_RESOURCE = GVR("", "v1", NAMESPACES)
_PLURAL_NAMES = ("endpoints", "constraints")
"""Ends of names of kinds that are plurals already."""

NEVER_INTERCEPTED: frozenset[tuple[str, str]] = frozenset(
    (
        *(
            ("admissionregistration.k8s.io", f"{kind}admission{part}")
            for kind in ("validating", "mutating")
            for part in ("policies", "policybindings")
        ),
        ("authentication.k8s.io", "selfsubjectreviews"),
        ("authentication.k8s.io", "tokenreviews"),
        ("authorization.k8s.io", "localsubjectaccessreviews"),
        ("authorization.k8s.io", "selfsubjectaccessreviews"),
        ("authorization.k8s.io", "selfsubjectrulesreviews"),
        ("authorization.k8s.io", "subjectaccessreviews"),
    )
)
"""Groups and resources that the API server never shows to its own admission policies."""

_SHARED_ACROSS_GROUPS: tuple[frozenset[tuple[str, str]], ...] = (
    frozenset({("", "events"), ("events.k8s.io", "events")}),
    *(frozenset({("extensions", name), ("apps", name)}) for name in ("daemonsets", "deployments", "replicasets")),
    *(frozenset({("extensions", name), ("networking.k8s.io", name)}) for name in ("ingresses", "networkpolicies")),
)
"""Resources that several groups serve out of one storage; versions of one group always do."""


@dataclass(frozen=True, slots=True)
class ResourceRule:
    """Operations on resources; a request fits when each part has an entry for it, so an empty part fits nothing.

    `resources` holds pairs of resource and subresource, either of them may be `*`. `names` empty fits every name.
    `scope` is `*`, `Cluster`, `Namespaced`; any other text fits nothing.

    >>> rule = ResourceRule.of(groups=["apps"], versions=["*"], operations=["CREATE"], resources=["deployments"])
    >>> rule.fits(GVR("apps", "v1", "deployments"), "", "CREATE", "default")
    True
    """

    groups: frozenset[str]
    versions: frozenset[str]
    operations: frozenset[str]
    resources: frozenset[tuple[str, str]]
    names: frozenset[str] = frozenset()
    scope: str = ANY

    @classmethod
    def of(
        cls,
        *,
        groups: Iterable[str],
        versions: Iterable[str],
        operations: Iterable[str],
        resources: Iterable[str],
        names: Iterable[str] = (),
        scope: str = "",
    ) -> ResourceRule:
        """Make a rule out of the lists of a policy; an absent scope is `*`."""
        pairs = (entry.partition("/") for entry in resources)
        return cls(
            frozenset(groups),
            frozenset(versions),
            frozenset(operations),
            frozenset((resource, subresource) for resource, _, subresource in pairs),
            frozenset(names),
            scope or ANY,
        )

    def fits(self, gvr: GVR, subresource: str, operation: str, namespace: str) -> bool:
        """Return whether the rule matches such requests, ignoring names; `namespace` is empty for cluster scope."""
        return (
            self._scope_fits(gvr, namespace)
            and _has(self.operations, operation)
            and _has(self.groups, gvr.group)
            and _has(self.versions, gvr.version)
            and self._resource_fits(gvr.resource, subresource)
        )

    def _scope_fits(self, gvr: GVR, namespace: str) -> bool:
        if self.scope == ANY:
            return True
        # Kubernetes: the namespace of a request for a Namespace object is its own name
        is_cluster_wide = gvr == _NAMESPACE_RESOURCE or not namespace
        return self.scope == (CLUSTER if is_cluster_wide else NAMESPACED)

    def _resource_fits(self, resource: str, subresource: str) -> bool:
        # `*` has no subresource, so it fits main resources only
        found = self.resources
        return (
            (resource, subresource) in found
            or (ANY, subresource) in found
            or (resource, ANY) in found
            or (ANY, ANY) in found
        )

    def names_fit(self, name: str, generate_name: str | None = None) -> bool:
        """Return whether the rule matches an object of that name.

        For an object that gets its name later, Kyverno (a `generate_name`, not None) compares the beginning of the
        prefix; the API server has an empty name, which no list holds.
        """
        if not self.names or name in self.names:
            return True
        return not name and generate_name is not None and any(map(generate_name.startswith, self.names))


@dataclass(frozen=True, slots=True)
class ConstraintMatcher:
    """Compiled constraints of one policy, binding or target selection.

    No `rules` at all means every resource. A selector of None (absent or empty) selects everything. `is_equivalent`:
    rules also fit through other versions and groups that serve the same objects. `policy_namespace` confines a
    namespaced policy to its namespace. `matches_generated_names`: Kyverno's way with names that are not given yet.
    `never` lists groups and resources that never match. `kinds` has the resource names of kinds.
    """

    rules: tuple[ResourceRule, ...] = ()
    excludes: tuple[ResourceRule, ...] = ()
    namespace_selector: LabelTest | None = None
    object_selector: LabelTest | None = None
    is_equivalent: bool = False
    policy_namespace: str = ""
    matches_generated_names: bool = False
    never: frozenset[tuple[str, str]] = frozenset()
    kinds: KindTable = BUILTIN_KINDS

    @property
    def blocks(self) -> tuple[Filter, ...]:
        """No match blocks: constraints know nothing of users."""
        return ()

    def may_match(self, key: IndexKey) -> bool:
        """Return, from the index key alone, whether some request with that key could match."""
        seen = self._find_resource(key.gvk, key.gvr)
        if self._refusal(seen, key.namespace) is not None:
            return False
        if any(not rule.names for rule in seen.fitting(self.excludes, key.subresource, key.operation, key.namespace)):
            return False
        return not self.rules or bool(seen.fitting(self.rules, key.subresource, key.operation, key.namespace))

    def surely_matches(self, key: IndexKey) -> bool:
        """Return, from the index key alone, whether every request with that key matches."""
        if self.object_selector is not None or not self.may_match(key):
            return False
        seen = self._find_resource(key.gvk, key.gvr)
        if self.namespace_selector is not None and _has_namespace(seen.gvr, key.namespace):
            return False
        if seen.fitting(self.excludes, key.subresource, key.operation, key.namespace):
            return False
        fitting = seen.fitting(self.rules, key.subresource, key.operation, key.namespace)
        return not self.rules or any(not rule.names for rule in fitting)

    def names_operation(self, operation: str) -> bool:
        """Return whether a rule lists an operation."""
        return any(operation in rule.operations for rule in self.rules)

    def for_any_operation(self) -> ConstraintMatcher:
        """Return the same constraints whatever the operation."""
        return replace(self, rules=_for_any(self.rules), excludes=_for_any(self.excludes))

    def mismatch(self, request: Request, resource: Resource) -> str | None:
        """Return in words why the request is not matched, or None when it is.

        The order is the API server's: namespaceSelector, objectSelector, excluded resources, resources.
        """
        if not isinstance(request.subject, dict):
            return "the request holds no object"
        seen = self._find_resource(request.gvk, request.gvr)
        refusal = self._refusal(seen, request.namespace)
        if refusal is not None:
            return refusal
        if not self._namespace_selected(request, seen.gvr):
            return "the namespaceSelector does not select the labels of the namespace"
        if not self._object_selected(request):
            return "the objectSelector selects neither the object nor the old object"
        operation = request.operation.value
        name, generated = request.name, resource.generate_name if self.matches_generated_names else None
        excluding = seen.fitting(self.excludes, request.subresource, operation, request.namespace)
        if any(rule.names_fit(name, generated) for rule in excluding):
            return "excluded by excludeResourceRules"
        if not self.rules:
            return None
        fitting = seen.fitting(self.rules, request.subresource, operation, request.namespace)
        if any(rule.names_fit(name, generated) for rule in fitting):
            return None
        if fitting:
            return f"name {name} is not one of resourceNames"
        target = f"{seen.gvr}/{request.subresource}" if request.subresource else str(seen.gvr)
        return f"operation {operation} on {target} is not matched"

    def _find_resource(self, gvk: GVK, gvr: GVR | None) -> _KindNames:
        return (_seen if _is_short(gvk, gvr) else _see)(gvk, gvr, self.kinds, self.is_equivalent)

    def _refusal(self, seen: _KindNames, namespace: str) -> str | None:
        """Return why no constraint can bring this request in."""
        gvr = seen.gvr
        if self.never and (gvr.group, gvr.resource) in self.never:
            return f"{gvr.resource} are never shown to admission policies"
        if not self.policy_namespace:
            return None
        is_cluster_wide = gvr == _NAMESPACE_RESOURCE or seen.is_namespaced is False
        if is_cluster_wide or namespace != self.policy_namespace:
            return f"the policy is confined to namespace {self.policy_namespace}"
        return NO_REPORTS if gvr.group in REPORT_GROUPS else None

    def _namespace_selected(self, request: Request, gvr: GVR) -> bool:
        if self.namespace_selector is None or not _has_namespace(gvr, request.namespace):
            return True
        labels = request.namespace_labels
        is_namespace = gvr.resource == NAMESPACES
        if is_namespace and not request.subresource and request.object is not None:
            # the new state of a Namespace decides, not the old one
            labels = _labels(request.object)
        elif labels is None:
            labels = _labels(request.subject) if is_namespace else {NAME_LABEL: request.namespace}
        return self.namespace_selector(labels)

    def _object_selected(self, request: Request) -> bool:
        if self.object_selector is None:
            return True
        present = (value for value in (request.object, request.old) if isinstance(value, dict))
        return any(self.object_selector(_labels(value)) for value in present)


@dataclass(frozen=True, slots=True)
class _KindNames:
    """The names of a kind for rules: its resource, other names of that resource, and its scope (None = unknown)."""

    gvr: GVR
    others: tuple[GVR, ...]
    is_namespaced: bool | None

    def fitting(
        self, rules: tuple[ResourceRule, ...], subresource: str, operation: str, namespace: str
    ) -> tuple[ResourceRule, ...]:
        """Return the rules about such requests, names left aside."""
        if not namespace and self.is_namespaced:
            # an object that lives in namespaces is in one, also while its manifest leaves that open
            namespace = "default"
        return tuple(
            rule
            for rule in rules
            if rule.fits(self.gvr, subresource, operation, namespace)
            or any(rule.fits(other, subresource, operation, namespace) for other in self.others)
        )


def _for_any(rules: tuple[ResourceRule, ...]) -> tuple[ResourceRule, ...]:
    return tuple(replace(rule, operations=frozenset({ANY})) for rule in rules)


def _is_short(gvk: GVK, gvr: GVR | None) -> bool:
    texts = (gvk.group, gvk.version, gvk.kind)
    return max(map(len, texts if gvr is None else (*texts, gvr.group, gvr.version, gvr.resource))) <= MAX_NAME


def _see(gvk: GVK, gvr: GVR | None, kinds: KindTable, is_equivalent: bool) -> _KindNames:
    known = gvr if gvr is not None else resource_of(gvk, kinds)
    return _KindNames(known, _equivalents(known, kinds) if is_equivalent else (), kinds.is_namespaced(gvk))


_seen = lru_cache(maxsize=1024)(_see)


def _has(entries: frozenset[str], value: str) -> bool:
    return value in entries or ANY in entries


def _has_namespace(gvr: GVR, namespace: str) -> bool:
    """Return whether a namespaceSelector applies to such a request."""
    return bool(namespace) or gvr.resource == NAMESPACES


def _labels(value: JSON) -> Mapping[str, str]:
    return Resource(value).labels if isinstance(value, dict) else {}


def resource_of(gvk: GVK, kinds: KindTable) -> GVR:
    """Return the resource of a kind; of an unknown kind a guess from its name.

    >>> resource_of(GVK("networking.istio.io", "v1", "Gateway"), KindTable()).resource
    'gateways'
    """
    info = kinds.find(gvk)
    if info is None:
        info = next((other for other in kinds.by_kind(gvk.kind) if other.group == gvk.group), None)
    return GVR(gvk.group, gvk.version, _guess_plural(gvk.kind) if info is None else info.plural)


def _guess_plural(kind: str) -> str:
    name = kind.lower()
    if name.endswith(_PLURAL_NAMES):
        return name
    if name.endswith("s"):
        return f"{name}es"
    return f"{name[:-1]}ies" if name.endswith("y") and name[-2:-1] not in "aeiou" else f"{name}s"


def _equivalents(gvr: GVR, kinds: KindTable) -> tuple[GVR, ...]:
    """Return the other resources that hold the same objects, as far as their kinds are known."""
    own = (gvr.group, gvr.resource)
    partners = next((group for group in _SHARED_ACROSS_GROUPS if own in group), frozenset({own}))
    return tuple(
        info.gvr for info in kinds.named(gvr.resource) if (info.group, info.plural) in partners and info.gvr != gvr
    )
