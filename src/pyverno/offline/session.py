"""A session: policies, exceptions, a Host, values and a user, for reviews of one manifest after the other.

`pyverno apply`, `pyverno test` and the library review manifests through a session, so that their answers cannot differ.
Only the engine judges; a session prepares the request that a cluster would send for a manifest.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from typing import TYPE_CHECKING

from pyverno.compiler import Compilation
from pyverno.engine.engine import Engine, Review
from pyverno.engine.host import Host
from pyverno.engine.phases import ADMISSION, DELETING, VALIDATING, Phase
from pyverno.engine.policyset import PolicySet
from pyverno.engine.request import Operation, Request, User
from pyverno.engine.result import FailureAction, RuleResult, Status
from pyverno.engine.rule import CompiledPolicy, Exemption
from pyverno.errors import PyvernoError, UsageError
from pyverno.kube.gvk import GVK
from pyverno.kube.json import JSON, JSONObject, encode
from pyverno.kube.kinds import KindTable
from pyverno.kube.resource import Resource
from pyverno.lang.runtime import ExpressionHost
from pyverno.offline.host import OfflineHost, RecordedAnswer
from pyverno.offline.objects import ObjectStore
from pyverno.offline.system import OfflineSystem
from pyverno.offline.values import Values
from pyverno.policy.kinds import KNOWN_KINDS, POLICY_KINDS, RULE_KINDS, Family, kinds_of
from pyverno.value import dataclass, field, replace

if TYPE_CHECKING:
    from pyverno.engine.explain.explanation import Explanation
    from pyverno.engine.imagesource import ImageSource

__all__ = ["CLEANUP_KINDS", "DELETING_KINDS", "Session"]

CLEANUP_KINDS = kinds_of(Family.CLEANUP)
DELETING_KINDS = frozenset(row.kind for row in POLICY_KINDS if row.deletes) - CLEANUP_KINDS

_NAME_LABEL = "kubernetes.io/metadata.name"
_NO_DOCUMENTS = Compilation()


@dataclass(slots=True)
class Session:
    """Compiled policies with everything that reviews of manifests have in common.

    With a list for `explanations`, reviews are made by `Engine.explain`, and their explanations collected there.

    `compilation` holds the documents of the policies, also those that are not valid, and `errors` what is wrong with
    any document of the session. `values` and `user` are the contents of a values file and a user file, `namespaces` the
    known Namespace objects by name.

    >>> from pyverno.compiler import compile_documents
    >>> from pyverno.kube.yaml.documents import load_documents
    >>> session = Session.open(compile_documents(load_documents('''
    ... apiVersion: kyverno.io/v1
    ... kind: ClusterPolicy
    ... metadata: {name: owned}
    ... spec:
    ...   rules:
    ...   - name: owner
    ...     match: {any: [{resources: {kinds: [ConfigMap]}}]}
    ...     validate: {message: an owner is required, pattern: {metadata: {labels: {owner: "?*"}}}}
    ... ''')))
    >>> review = session.review({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}})
    >>> [result.status.value for result in review.results]
    ['fail']
    """

    policies: tuple[CompiledPolicy, ...]
    host: Host
    exceptions: tuple[Exemption, ...] = ()
    values: Values = field(default_factory=Values)
    user: User = field(default_factory=User)
    kinds: KindTable = KNOWN_KINDS
    namespaces: Mapping[str, JSONObject] = field(default_factory=dict)
    compilation: Compilation = _NO_DOCUMENTS
    errors: tuple[PyvernoError, ...] = ()
    explanations: list[Explanation] | None = None
    # one engine per group of policies, because a values file may give each policy its own operation
    _engines: dict[tuple[int, ...] | None, Engine] = field(default_factory=dict, repr=False)

    @classmethod
    def open(
        cls,
        policies: Compilation,
        *,
        exceptions: Compilation = _NO_DOCUMENTS,
        exceptions_among_policies: bool = True,
        global_entries: Compilation = _NO_DOCUMENTS,
        global_data: Mapping[str, JSON] | None = None,
        objects: ObjectStore | None = None,
        targets: ObjectStore | None = None,
        answers: Iterable[RecordedAnswer] = (),
        images: Iterable[JSONObject] = (),
        registries: ImageSource | None = None,
        namespaces: Iterable[JSONObject] = (),
        values: Values | None = None,
        user: User | None = None,
        kinds: KindTable = KNOWN_KINDS,
        system: ExpressionHost | None = None,
    ) -> Session:
        """Return a session over an `OfflineHost`.

        `objects` is the fake cluster (None = no cluster) and `targets` further objects that rules may patch or
        clone. `answers` are recorded answers of API paths and services, `images` the data of images, and
        `registries` read those that are not recorded. `system` is what this machine answers: without names of hosts.
        `global_entries` are GlobalContextEntry documents beside those among the policies; `global_data` replaces the
        data of entries by name. `namespaces` are objects, of which only Namespaces are used. Policies that are not
        valid are left out and their errors kept.
        """
        values = Values() if values is None else values
        data: dict[str, JSON] = {}
        if policies.global_entries or global_entries.global_entries:
            from pyverno.offline.globalentries import entry_data  # few runs have any

            # those of the policies win: the others may have come with what is judged
            others = entry_data(global_entries.global_entries, objects)
            data = {**others, **entry_data(policies.global_entries, objects)}  # guard: entries of the policies win
        host = OfflineHost(
            system=OfflineSystem() if system is None else system,
            objects=objects,
            targets=targets,
            answers=tuple(answers),
            images={str(image.get("image")): image for image in images},
            registries=registries,
            global_entries={**data, **(global_data or {})},
        )
        if values.global_values or values.policies:
            # the engine asks a Host that may supply variables for every rule
            host = replace(host, supply=values.supply)
        return cls(
            policies=policies.policies,
            host=host,
            exceptions=(*(policies.exceptions if exceptions_among_policies else ()), *exceptions.exceptions),
            values=values,
            user=User() if user is None else user,
            kinds=kinds,
            namespaces={Resource(each).name: each for each in namespaces if each.get("kind") == "Namespace"},
            compilation=policies,
            errors=(*policies.errors, *exceptions.errors, *global_entries.errors),
        )

    def review(
        self,
        manifest: JSONObject,
        *,
        operation: Operation | None = None,
        old: JSONObject | None = None,
        phases: tuple[Phase, ...] = ADMISSION,
    ) -> Review:
        """Review a manifest with all policies; what one mutates, the next ones see.

        `operation` overrides that of the values file; `old` is the object that an UPDATE replaces, when it is not the
        manifest itself.
        """
        reviews: list[Review] = []
        current: JSON = manifest
        for own, changes, policies in self._groups(manifest, operation):
            request = self.request(current if isinstance(current, dict) else manifest, own, changes, old=old)
            review = self._judge(policies, request, phases)
            reviews.append(review)
            if review.resource is not None:
                current = review.resource
        return _join(reviews, current)

    def explain(
        self,
        manifest: JSONObject,
        *,
        operation: Operation | None = None,
        old: JSONObject | None = None,
        phases: tuple[Phase, ...] = ADMISSION,
    ) -> tuple[Explanation, ...]:
        """Explain the result of `review` for a manifest, once for each operation of a values file."""
        found: list[Explanation] = []
        current: JSON = manifest
        for own, changes, policies in self._groups(manifest, operation):
            request = self.request(current if isinstance(current, dict) else manifest, own, changes, old=old)
            found.append(self._engine(policies).explain(request, phases))
            if found[-1].review.resource is not None:
                current = found[-1].review.resource
        return tuple(found)

    def deletions(
        self, manifest: JSONObject, kinds: Container[str], *, reports_mismatch: bool = False
    ) -> tuple[RuleResult, ...]:
        """Review a manifest, as it was loaded, with the policies of some deleting kinds.

        An object that they do not select has no result. Kyverno: its command line reports one that a cleanup policy
        does not match as a fail (F3.27), and so does `reports_mismatch`.
        """
        selected = [policy for policy in self.policies if policy.info.kind in kinds]
        if not selected:
            return ()
        review = self._judge(self.policies, self.request(manifest, Operation.CREATE), DELETING)
        found: dict[str, list[RuleResult]] = {}
        for result in review.results:
            found.setdefault(result.rule.policy.key, []).append(result)
        return tuple(
            result
            for policy in selected
            for result in found.get(policy.info.key) or (_mismatch(policy) if reports_mismatch else ())
        )

    def answer(self, request: Request, phases: tuple[Phase, ...] = ADMISSION) -> Review:
        """Review a request that a cluster has sent; a namespace that it does not hold is that of the session."""
        if request.namespace_labels is None:
            known = self.values.namespace(request.namespace) or self.namespaces.get(request.namespace)
            labels = self._labels(request.namespace)
            request = replace(request, namespace_labels=labels, namespace_object=request.namespace_object or known)
        return self._judge(self.policies, request, phases)

    def payload(self, document: JSONObject) -> Review:
        """Review a JSON document with the policies that read payloads."""
        policies = tuple(policy for policy in self.policies if policy.info.reads_payloads)
        return self._judge(policies, Request.from_payload(document), (*VALIDATING, *DELETING))

    def blame(
        self, document: JSON, result: RuleResult, *, is_payload: bool = False, operation: Operation | None = None
    ) -> tuple[str | int, ...] | None:
        """Return the path of the field that made a rule fail on a document, None when it is not known.

        `operation` overrides that of the values file, as for `review`.
        """
        if not isinstance(document, dict) or result.rule.policy.answers:
            return None
        if is_payload:
            return self._engine(self.policies).blame(Request.from_payload(document), result)
        policy = result.rule.policy
        for own, changes, policies in self._groups(document, operation):
            is_all = policies is self.policies  # then the engine finds the rule, or none
            if is_all or any(each.info.key == policy.key and each.info.kind == policy.kind for each in policies):
                return self._engine(self.policies).blame(self.request(document, own, changes), result)
        return None

    def check(self, payload: JSON, mode: str) -> Review:
        """Review an authorization request with the policies of its mode (`HTTP`, `Envoy`).

        A policy that answers nothing is a skip. Raises UsageError for a payload that is no such request.
        """
        from pyverno.engine.cel.authorization import check_request

        policies = tuple(policy for policy in self.policies if policy.info.answers == mode)
        return self._judge(policies, check_request(payload, mode=mode), VALIDATING)

    def request(
        self,
        manifest: JSONObject,
        operation: Operation,
        changes: Mapping[str, JSON] | None = None,
        *,
        old: JSONObject | None = None,
    ) -> Request:
        """Return the request that a cluster would send for a manifest; an UPDATE replaces `old`, or else the manifest.

        `changes` are the parts of `object` and `oldObject` that a values file replaces.
        """
        changed = changes or {}
        replaced = _changed(manifest if old is None else old, changed.get("oldObject"))
        manifest = _changed(manifest, changed.get("object"))
        view = Resource(manifest)
        gvk, subresource = self._identity(view.gvk)
        namespace = view.name if view.kind == "Namespace" else view.namespace
        return Request.from_manifest(
            manifest,
            operation=operation,
            old=None if operation is Operation.CREATE else replaced,
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

    def _groups(
        self, manifest: JSONObject, operation: Operation | None
    ) -> Iterable[tuple[Operation, Mapping[str, JSON], tuple[CompiledPolicy, ...]]]:
        """Group the policies by the operation and objects that the values file gives them, usually into one group."""
        values = self.values
        if not values.names_objects and (operation is not None or not values.names_operations):
            return [(operation or Operation.CREATE, {}, self.policies)]
        name = Resource(manifest).name
        groups: dict[tuple[Operation, str], tuple[Mapping[str, JSON], list[CompiledPolicy]]] = {}
        for policy in self.policies:
            own = operation or _parse_operation(values.operation(policy.info.name, name))
            # Kyverno: only rules of ClusterPolicy and Policy see an object that a values file changes
            changes = values.changes(policy.info.name, name) if policy.info.kind in RULE_KINDS else {}
            groups.setdefault((own, encode(changes)), (changes, []))[1].append(policy)
        return [(own, changes, tuple(policies)) for (own, _), (changes, policies) in groups.items()]

    def with_policies(self, compilation: Compilation) -> Session:
        """Return the session with other policies; exceptions, host, values and everything else stay as they are."""
        return replace(self, policies=compilation.policies, compilation=compilation, _engines={})

    def _judge(self, policies: tuple[CompiledPolicy, ...], request: Request, phases: tuple[Phase, ...]) -> Review:
        engine = self._engine(policies)
        if self.explanations is None:
            return engine.review(request, phases)
        explanation = engine.explain(request, phases)
        self.explanations.append(explanation)
        return explanation.review

    def _engine(self, policies: tuple[CompiledPolicy, ...]) -> Engine:
        key = None if policies is self.policies else tuple(id(policy) for policy in policies)
        engine = self._engines.get(key)
        if engine is None:
            # a manifest is also checked by the policies that a cluster runs in background scans only
            engine = Engine(PolicySet(policies, self.exceptions, asks_all=True), self.host)
            self._engines[key] = engine
        return engine


def _parse_operation(text: str) -> Operation:
    try:
        return Operation(text)
    except ValueError:
        expected = "must be one of CREATE, UPDATE, DELETE, CONNECT"
        raise UsageError(f'invalid request.operation value "{text}", {expected}') from None


def _changed(document: JSONObject, change: JSON) -> JSONObject:
    """Return an object with a part of it changed; maps are merged, everything else is replaced."""
    if not isinstance(change, dict):
        return document
    result = dict(document)
    for key, value in change.items():
        below = result.get(key)
        result[key] = _changed(below, value) if isinstance(below, dict) and isinstance(value, dict) else value
    return result


def _mismatch(policy: CompiledPolicy) -> tuple[RuleResult, ...]:
    if policy.info.kind not in CLEANUP_KINDS:
        return ()
    info, action = policy.rules[0].info, FailureAction.AUDIT
    return (RuleResult(rule=info, status=Status.FAIL, message="resource did not match", action=action),)


def _join(reviews: list[Review], resource: JSON) -> Review:
    """Make one review of those of several operations; usually there is only one."""
    if len(reviews) == 1:
        return reviews[0]
    if not reviews:
        raise UsageError("no valid policy was given")
    results = tuple(result for review in reviews for result in review.results)
    effects = tuple(effect for review in reviews for effect in review.effects)
    return replace(reviews[0], resource=resource, results=results, effects=effects)
