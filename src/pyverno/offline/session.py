"""One evaluation session of the command line: policies, a Host, values and a user, asked about one manifest at a time.

`apply` and `test` both go through here, so that they can not differ. Only the engine judges; this module prepares the
request of a manifest as a cluster would send it.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping

from pyverno.engine.engine import Engine, Review
from pyverno.engine.host import Host
from pyverno.engine.phases import ADMISSION, DELETING, VALIDATING, Phase
from pyverno.engine.policyset import PolicySet
from pyverno.engine.request import Operation, Request, User
from pyverno.engine.result import FailureAction, RuleResult, Status
from pyverno.engine.rule import CompiledPolicy, Exemption
from pyverno.errors import UsageError
from pyverno.kube.gvk import GVK
from pyverno.kube.json import JSON, JSONObject, encode
from pyverno.kube.kinds import BUILTIN_KINDS, KindTable
from pyverno.kube.resource import Resource
from pyverno.offline.clifiles import Values
from pyverno.policy.kinds import RULE_KINDS, Family, kinds_of
from pyverno.value import dataclass, field, replace

__all__ = ["CLEANUP_KINDS", "DELETING_KINDS", "Evaluation", "parse_operation"]

CLEANUP_KINDS = kinds_of(Family.CLEANUP)
DELETING_KINDS = frozenset(kind for kind in kinds_of(Family.CEL) if kind.endswith("DeletingPolicy"))

_NAME_LABEL = "kubernetes.io/metadata.name"


def parse_operation(text: str, *, what: str = "request.operation value") -> Operation:
    """Return the operation that a text names; raises UsageError for anything else."""
    try:
        return Operation(text)
    except ValueError:
        raise UsageError(f'invalid {what} "{text}", must be one of CREATE, UPDATE, DELETE, CONNECT') from None


@dataclass(slots=True)
class Evaluation:
    """Policies and exceptions, and everything that the requests of this session have in common.

    `namespaces` are the Namespace objects that were loaded, by name. Engines are made once per operation, because the
    values file may give each policy an operation of its own.
    """

    policies: tuple[CompiledPolicy, ...]
    host: Host
    exceptions: tuple[Exemption, ...] = ()
    values: Values = field(default_factory=Values)
    user: User = field(default_factory=User)
    kinds: KindTable = BUILTIN_KINDS
    namespaces: Mapping[str, JSONObject] = field(default_factory=dict)
    _engines: dict[tuple[str, ...], Engine] = field(default_factory=dict, repr=False)

    def review(
        self, manifest: JSONObject, *, operation: Operation | None = None, phases: tuple[Phase, ...] = ADMISSION
    ) -> Review:
        """Ask all policies about a manifest; what one mutates, the next ones see.

        `operation` overrides that of the values file.
        """
        reviews: list[Review] = []
        current: JSON = manifest
        for asked, changes, policies in self._by_question(manifest, operation):
            request = self.request(current if isinstance(current, dict) else manifest, asked, changes)
            review = self._engine(policies).review(request, phases)
            reviews.append(review)
            if review.resource is not None:
                current = review.resource
        return _joined(reviews, current)

    def deletions(self, manifest: JSONObject, kinds: Container[str]) -> tuple[RuleResult, ...]:
        """Ask the policies of some deleting kinds about a manifest as it was loaded.

        Kyverno: its command line also reports an object that a cleanup policy does not match, as a fail; a deleting
        policy whose constraints do not select the object says nothing (F3.27).
        """
        asked = [policy for policy in self.policies if policy.info.kind in kinds]
        if not asked:
            return ()
        review = self._engine(self.policies).review(self.request(manifest, Operation.CREATE), DELETING)
        said: dict[str, list[RuleResult]] = {}
        for result in review.results:
            said.setdefault(result.rule.policy.key, []).append(result)
        return tuple(result for policy in asked for result in said.get(policy.info.key) or _unsaid(policy))

    def payload(self, document: JSONObject) -> Review:
        """Ask the policies made for JSON documents about one."""
        policies = tuple(policy for policy in self.policies if policy.info.reads_payloads)
        return self._engine(policies).review(Request.from_payload(document), (*VALIDATING, *DELETING))

    def check(self, payload: JSON, mode: str) -> Review:
        """Ask the policies that answer authorization requests of a mode about one; raises UsageError for what is none.

        A policy that answers nothing is a skip.
        """
        from pyverno.engine.cel.authorization import check_request

        policies = tuple(policy for policy in self.policies if policy.info.answers == mode)
        return self._engine(policies).review(check_request(payload, mode=mode), VALIDATING)

    def request(self, manifest: JSONObject, operation: Operation, changes: Mapping[str, JSON] | None = None) -> Request:
        """Return the request that a cluster would send for a manifest; an UPDATE replaces it by itself.

        `changes` are parts of `object` and `oldObject` that stand in a values file.
        """
        changed = changes or {}
        old = _changed(manifest, changed.get("oldObject"))
        manifest = _changed(manifest, changed.get("object"))
        view = Resource(manifest)
        gvk, subresource = self._identity(view.gvk)
        namespace = view.name if view.kind == "Namespace" else view.namespace
        return Request.from_manifest(
            manifest,
            operation=operation,
            old=None if operation is Operation.CREATE else old,
            user=self.user,
            namespace_labels=self._labels(namespace),
            namespace_object=self.values.namespace(namespace) or self.namespaces.get(namespace),
            gvk=gvk,
            gvr=None if (known := self.kinds.find(gvk)) is None else known.gvr,
            subresource=subresource,
        )

    def _identity(self, gvk: GVK) -> tuple[GVK, str]:
        for entry in self.values.subresources:
            if entry.gvk == gvk:
                return entry.parent, entry.name
        return gvk, ""

    def _labels(self, namespace: str) -> Mapping[str, str]:
        if not namespace:
            return {}
        given = self.values.labels_of(namespace)
        if given is None:
            document = self.namespaces.get(namespace)
            given = Resource(document).labels if document is not None else {}
        return {_NAME_LABEL: namespace, **given}

    def _by_question(
        self, manifest: JSONObject, operation: Operation | None
    ) -> Iterable[tuple[Operation, Mapping[str, JSON], tuple[CompiledPolicy, ...]]]:
        """Group the policies by what the values file says of operation and objects; usually there is one group."""
        values = self.values
        if not values.names_objects and (operation is not None or not values.names_operations):
            return [(operation or Operation.CREATE, {}, self.policies)]
        name = Resource(manifest).name
        groups: dict[tuple[Operation, str], tuple[Mapping[str, JSON], list[CompiledPolicy]]] = {}
        for policy in self.policies:
            asked = operation or parse_operation(values.operation(policy.info.name, name))
            # Kyverno: only rules of ClusterPolicy and Policy see an object that a values file changes
            changes = values.changes(policy.info.name, name) if policy.info.kind in RULE_KINDS else {}
            groups.setdefault((asked, encode(changes)), (changes, []))[1].append(policy)
        return [(asked, changes, tuple(policies)) for (asked, _), (changes, policies) in groups.items()]

    def _engine(self, policies: tuple[CompiledPolicy, ...]) -> Engine:
        key = tuple(str(id(policy)) for policy in policies) if policies is not self.policies else ()
        engine = self._engines.get(key)
        if engine is None:
            # a manifest is checked for what a cluster says of it at any time, be it in a scan only
            engine = Engine(PolicySet(policies, self.exceptions, asks_all=True), self.host)
            self._engines[key] = engine
        return engine


def _changed(document: JSONObject, change: JSON) -> JSONObject:
    """Return an object with a part of it changed; maps are merged, everything else is replaced."""
    if not isinstance(change, dict):
        return document
    result = dict(document)
    for key, value in change.items():
        below = result.get(key)
        result[key] = _changed(below, value) if isinstance(below, dict) and isinstance(value, dict) else value
    return result


def _unsaid(policy: CompiledPolicy) -> tuple[RuleResult, ...]:
    if policy.info.kind not in CLEANUP_KINDS:
        return ()
    info, action = policy.rules[0].info, FailureAction.AUDIT
    return (RuleResult(rule=info, status=Status.FAIL, message="resource did not match", action=action),)


def _joined(reviews: list[Review], resource: JSON) -> Review:
    """Make one review of those of several operations; usually there is only one."""
    if len(reviews) == 1:
        return reviews[0]
    if not reviews:
        raise UsageError("no valid policy was given")
    results = tuple(result for review in reviews for result in review.results)
    effects = tuple(effect for review in reviews for effect in review.effects)
    return replace(reviews[0], resource=resource, results=results, effects=effects)
