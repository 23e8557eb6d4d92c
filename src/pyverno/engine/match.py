"""Compiled match and exclude: which requests a rule, an exception or a cleanup policy matches.

A `Matcher` is a pure function of a request. It also answers `may_match` from the index key alone (kind, subresource,
operation, namespace), which is what keeps the cost of a review independent of the number of policies. An error while
matching is an error of the rule, never "does not match".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from pyverno.engine.request import Request, User
from pyverno.kube.gvk import GVK, GVR, KindSelector
from pyverno.kube.names import MAX_NAME
from pyverno.kube.resource import Resource
from pyverno.kube.wildcard import match as wildcard_match
from pyverno.value import dataclass

__all__ = ["NO_REPORTS", "REPORT_GROUPS", "Filter", "IndexKey", "Matcher", "Subject", "namespace_of"]

REPORT_GROUPS: Final = frozenset({"reports.kyverno.io", "wgpolicyk8s.io", "openreports.io"})
NO_REPORTS: Final = "reports are not for policies of a namespace"
"""The author of a policy of a namespace must not change or refuse what reports say about it."""

TextTest = Callable[[str], bool]
LabelTest = Callable[[Mapping[str, str]], bool]


class IndexKey(NamedTuple):
    """The facts of a request that need no look at its object; `background` marks a scan.

    `gvr` is None when the kind is not known to be a resource of some name.
    """

    gvk: GVK
    subresource: str
    operation: str
    namespace: str
    background: bool = False
    gvr: GVR | None = None

    @property
    def is_short(self) -> bool:
        """Return whether no text is longer than a name may be, so that caches may keep the key."""
        texts = (self.gvk.group, self.gvk.version, self.gvk.kind, self.subresource, self.operation, self.namespace)
        return max(map(len, texts)) <= MAX_NAME and (self.gvr is None or _is_short(self.gvr))


def _is_short(gvr: GVR) -> bool:
    return max(len(gvr.group), len(gvr.version), len(gvr.resource)) <= MAX_NAME


@dataclass(frozen=True, slots=True)
class Subject:
    """A subject of a match block: User, Group or ServiceAccount; other kinds never match."""

    kind: str
    name: str
    namespace: str = ""

    def matches(self, user: User) -> bool:
        """Return whether this subject is the user of the request (wildcards allowed)."""
        match self.kind:
            case "User":
                return wildcard_match(self.name, user.username)
            case "Group":
                return any(wildcard_match(self.name, group) for group in user.groups)
            case "ServiceAccount":
                return wildcard_match(f"system:serviceaccount:{self.namespace}:{self.name}", user.username)
            case _:
                return False


_EPHEMERAL_CONTAINERS: Final = frozenset({"ephemeralcontainers"})
"""The subresource that adds containers to a Pod, whose requests carry the whole Pod."""


@dataclass(frozen=True, slots=True)
class Filter:
    """One block of match or exclude; all its parts must hold (an absent part always holds).

    `namespaces`, `names`, `annotations` are compiled tests; `selector` and `namespace_selector` test labels.
    `ignores_namespace_selector_on_namespaces`: exceptions and cleanup policies let a namespaceSelector pass for
    Namespace objects, rules do not. `pod_subresources`: those of which a selector for Pod takes requests too.
    """

    kinds: tuple[KindSelector, ...] = ()
    names: tuple[TextTest, ...] = ()
    namespaces: tuple[TextTest, ...] = ()
    annotations: tuple[tuple[str, str], ...] = ()
    selector: LabelTest | None = None
    namespace_selector: LabelTest | None = None
    operations: frozenset[str] = frozenset()
    subjects: tuple[Subject, ...] = ()
    roles: frozenset[str] = frozenset()
    cluster_roles: frozenset[str] = frozenset()
    ignores_namespace_selector_on_namespaces: bool = False
    pod_subresources: frozenset[str] = _EPHEMERAL_CONTAINERS

    @property
    def has_user_info(self) -> bool:
        """Return whether the block restricts users."""
        return bool(self.subjects or self.roles or self.cluster_roles)

    @property
    def has_resources(self) -> bool:
        """Return whether the block restricts the object."""
        return bool(
            self.kinds
            or self.names
            or self.namespaces
            or self.annotations
            or self.selector
            or self.namespace_selector
            or self.operations
        )

    def may_match(self, key: IndexKey) -> bool:
        """Return, from the index key alone, whether some request with that key could match."""
        if self.operations and key.operation not in self.operations:
            return False
        if self.kinds and not self._kind_fits(key.gvk, key.subresource):
            return False
        if self.namespaces and key.gvk.kind != "Namespace":
            return any(test(key.namespace) for test in self.namespaces)
        return True

    @property
    def is_decided_by_key(self) -> bool:
        """Return whether `may_match` is exact: the block has nothing but kinds, operations and namespaces."""
        return bool(self.kinds or self.operations or self.namespaces) and not (
            self.names
            or self.annotations
            or self.selector is not None
            or self.namespace_selector is not None
            or self.has_user_info
        )

    def first_mismatch(self, request: Request, resource: Resource, *, ignore_user: bool = False) -> str | None:
        """Return what does not fit first, in words, or None when the whole block fits."""
        if self.operations and request.operation.value not in self.operations:
            return f"operation {request.operation.value} is not one of {', '.join(sorted(self.operations))}"
        if not self.has_resources and (ignore_user or not self.has_user_info):
            return "the block is empty"
        if self.kinds and not self._kind_fits(request.gvk, request.subresource):
            return f"kind {request.gvk.kind} is not matched"
        for check in (self._names_fit, self._namespaces_fit, self._labels_fit, self._namespace_labels_fit):
            reason = check(request, resource)
            if reason is not None:
                return reason
        return None if ignore_user else self._user_fits(request.user)

    def _kind_fits(self, gvk: GVK, subresource: str) -> bool:
        for selector in self.kinds:
            if selector.matches(gvk, subresource):
                return True
            # Kyverno: a selector for Pod also covers the subresource that adds ephemeral containers
            if subresource in self.pod_subresources and gvk.kind == "Pod" and selector.matches(gvk, ""):
                return True
        return False

    def _names_fit(self, request: Request, resource: Resource) -> str | None:
        if not self.names:
            return None
        # options of `exec`, `attach` and their like have no name: they are for the object that the request names
        name = resource.name or resource.generate_name or request.name
        if any(test(name) for test in self.names):
            return None
        return f"name {name} is not matched"

    def _namespaces_fit(self, request: Request, resource: Resource) -> str | None:
        if not self.namespaces:
            return None
        namespace = resource.name if request.gvk.kind == "Namespace" else namespace_of(request, resource)
        if any(test(namespace) for test in self.namespaces):
            return None
        return f"namespace {namespace} is not matched"

    def _labels_fit(self, request: Request, resource: Resource) -> str | None:
        if self.annotations and not _annotations_fit(self.annotations, resource.annotations):
            return "the annotations are not matched"
        if self.selector is not None and not self.selector(resource.labels):
            return "the selector does not select the labels"
        return None

    def _namespace_labels_fit(self, request: Request, resource: Resource) -> str | None:
        if self.namespace_selector is None:
            return None
        if request.gvk.kind == "Namespace":
            return (
                None if self.ignores_namespace_selector_on_namespaces else "a namespaceSelector never fits a Namespace"
            )
        if not self.namespace_selector(request.namespace_labels or {}):
            return "the namespaceSelector does not select the labels of the namespace"
        return None

    def _user_fits(self, user: User) -> str | None:
        if self.roles and self.roles.isdisjoint(user.roles):
            return "the user has none of the roles"
        if self.cluster_roles and self.cluster_roles.isdisjoint(user.cluster_roles):
            return "the user has none of the clusterRoles"
        if self.subjects and not any(subject.matches(user) for subject in self.subjects):
            return "the user is none of the subjects"
        return None


def namespace_of(request: Request, resource: Resource) -> str:
    """Return the namespace that the object of a request is in, "" for one of the cluster.

    Options of `exec`, `attach`, `portforward` and their like have no namespace: they are in that of the request. For a
    Namespace the API server names itself there.
    """
    if request.gvk.kind == "Namespace":
        return resource.namespace
    return resource.namespace or request.namespace


@dataclass(frozen=True, slots=True)
class Matcher:
    """Compiled match and exclude of one rule.

    `any_of` or `all_of` holds the match blocks (a legacy flat block is an `all_of` of one), `exclude_any` or
    `exclude_all` the exclude blocks. `policy_namespace` confines a namespaced policy to its namespace.
    """

    any_of: tuple[Filter, ...] = ()
    all_of: tuple[Filter, ...] = ()
    exclude_any: tuple[Filter, ...] = ()
    exclude_all: tuple[Filter, ...] = ()
    policy_namespace: str = ""

    @property
    def blocks(self) -> tuple[Filter, ...]:
        """All match blocks."""
        return self.any_of or self.all_of

    def may_match(self, key: IndexKey) -> bool:
        """Return, from the index key alone, whether some request with that key could match."""
        if self.policy_namespace and (key.namespace != self.policy_namespace or key.gvk.kind == "Namespace"):
            return False
        if self.policy_namespace and key.gvk.group in REPORT_GROUPS:
            return False
        if self.any_of:
            return any(block.may_match(key) for block in self.any_of)
        return all(block.may_match(key) for block in self.all_of)

    def surely_matches(self, key: IndexKey) -> bool:
        """Return, from the index key alone, whether every request with that key matches."""
        if self.policy_namespace or (key.gvk.kind == "Namespace" and self._asks_for_namespaces()):
            return False
        if any(block.may_match(key) for block in (*self.exclude_any, *self.exclude_all)):
            return False
        sure = [block.is_decided_by_key and block.may_match(key) for block in self.blocks]
        return any(sure) if self.any_of else bool(sure) and all(sure)

    def names_operation(self, operation: str) -> bool:
        """Return whether a match block lists an operation."""
        return any(operation in block.operations for block in self.blocks)

    def _asks_for_namespaces(self) -> bool:
        return any(block.namespaces for block in (*self.blocks, *self.exclude_any, *self.exclude_all))

    def mismatch(self, request: Request, resource: Resource) -> str | None:
        """Return in words why the request is not matched, or None when it is."""
        if not isinstance(request.subject, dict):
            return "the request holds no object"
        if self.policy_namespace and self.policy_namespace != namespace_of(request, resource):
            return f"the policy is confined to namespace {self.policy_namespace}"
        if self.policy_namespace and request.gvk.group in REPORT_GROUPS:
            return NO_REPORTS
        if not self.blocks:
            # an empty match matches nothing: an exception without scope must not exempt everything
            return "the match is empty"
        # Kyverno: a background scan has no user, so user info in match is ignored (in exclude it is not)
        has_no_user = request.user.is_empty
        if self.any_of:
            reasons = []
            for block in self.any_of:
                reason = block.first_mismatch(request, resource, ignore_user=has_no_user)
                if reason is None:
                    break
                reasons.append(reason)
            else:
                return "; ".join(reasons)
        else:
            for block in self.all_of:
                reason = block.first_mismatch(request, resource, ignore_user=has_no_user)
                if reason is not None:
                    return reason
        return self._exclusion(request, resource)

    def _exclusion(self, request: Request, resource: Resource) -> str | None:
        for index, block in enumerate(self.exclude_any):
            if block.first_mismatch(request, resource) is None:
                return f"excluded by block {index + 1} of exclude"
        if self.exclude_all and all(block.first_mismatch(request, resource) is None for block in self.exclude_all):
            return "excluded by exclude.all"
        return None


def _annotations_fit(expected: tuple[tuple[str, str], ...], actual: Mapping[str, str]) -> bool:
    return all(
        any(wildcard_match(key, name) and wildcard_match(value, text) for name, text in actual.items())
        for key, value in expected
    )
