"""The compiled policies of a cluster: fed by watches, published to the webhook as one immutable value.

A policy that does not compile stays in the set as rules that yield errors, so that its failurePolicy decides.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from pyverno.compiler.compile import Compiled, compile_document
from pyverno.engine.policyset import PolicySet
from pyverno.engine.result import ResourceRef
from pyverno.engine.rule import PolicyInfo
from pyverno.kube.json import JSONObject
from pyverno.kube.yaml.documents import Document
from pyverno.policy.cel.policies import CelPolicy
from pyverno.policy.clusterpolicy import ClusterPolicy
from pyverno.policy.kinds import RULE_KINDS, PolicyAction, find_kind
from pyverno.threads import in_thread
from pyverno.value import replace
from pyverno.webhook.policies import Policies
from pyverno.webhook.policyreviews import ExceptionSettings

# trust rows: exception

__all__ = ["Identity", "PolicyStore", "identity_of", "is_generated", "own_paths"]

Identity = tuple[str, str, str]
"""Group and kind, namespace and name."""

_MAX_GONE: Final = 10_000


class PolicyStore:
    """Compiles documents and keeps `policies` up to date; listeners are called after every change.

    `changes` counts the changes. The set is put together when it is next used, so that loading many policies costs as
    much for each as loading one.
    """

    def __init__(
        self,
        exceptions: ExceptionSettings | None = None,
        *,
        http_in_namespaces: bool = False,
        forces_ignore: bool = False,
        background_account: str = "",
    ) -> None:
        """Take the settings of exceptions (disabled by default), and whether namespaced policies may call services.

        With `forces_ignore` every policy is evaluated with failurePolicy `Ignore`; `background_account` is the user
        name of the controller that changes objects on behalf of policies.
        """
        self._background_account = background_account
        self._forces_ignore = forces_ignore
        self._policies: Policies | None = None
        self.changes = 0
        self._exceptions = exceptions or ExceptionSettings()
        self._http_in_namespaces = http_in_namespaces
        self._compiled: dict[Identity, Compiled] = {}
        self._prepared: dict[Identity, tuple[JSONObject, Compiled]] = {}
        self._preparing = asyncio.Lock()
        self._gone: dict[Identity, None] = {}
        self._listeners: list[Callable[[Identity], None]] = []

    @property
    def policies(self) -> Policies:
        """The policies and exceptions in use; the same value until one of them changes."""
        if self._policies is None:
            self._policies = self._build()
        return self._policies

    def listen(self, listener: Callable[[Identity], None]) -> None:
        """Call the listener with every document that is added, changed or removed."""
        self._listeners.append(listener)

    async def prepare(self, body: JSONObject) -> None:
        """Compile a document in a thread, for `put` of the same object: a large one takes seconds.

        One at a time: each thread that computes delays the event loop.
        """
        if self._known(body) is None:
            async with self._preparing:
                self._prepared[identity_of(body)] = body, await in_thread(self._compile, body)

    def put(self, body: JSONObject) -> Compiled:
        """Add or replace a document; a change of its status alone causes no rebuild."""
        identity = identity_of(body)
        prepared_body, prepared = self._prepared.pop(identity, (None, None))
        known = self._known(body)
        if known is not None:
            return known
        compiled = self._compile(body) if prepared is None or prepared_body is not body else prepared
        self._compiled[identity] = compiled
        self._gone.pop(identity, None)
        self._note_change(identity)
        return compiled

    def _known(self, body: JSONObject) -> Compiled | None:
        """Return the compiled form of a document that differs in its status at most."""
        known = self._compiled.get(identity_of(body))
        return known if known is not None and _essence(known.document.value) == _essence(body) else None

    def _compile(self, body: JSONObject) -> Compiled:
        compiled = self._compile_as_written(body)
        if self._forces_ignore and compiled.policy is not None and not _generates(body):
            ignoring = self._compile_as_written(_with_ignore(body))
            compiled = replace(compiled, policy=ignoring.policy or compiled.policy)
        return compiled

    def _compile_as_written(self, body: JSONObject) -> Compiled:
        return compile_document(Document(body, ""), http_in_namespaces=self._http_in_namespaces)

    def remove(self, body: JSONObject) -> Compiled | None:
        """Remove a document and return its compiled form."""
        identity = identity_of(body)
        known = self._compiled.pop(identity, None)
        if known is not None:
            if len(self._gone) >= _MAX_GONE:
                del self._gone[next(iter(self._gone))]
            self._gone[identity] = None
            self._note_change(identity)
        return known

    def knows(self, kind: str, namespace: str, name: str) -> bool:
        """Return whether a policy is stored, evaluated here or not, or was stored and its deletion has been seen."""
        group = "kyverno.io" if kind in RULE_KINDS else "policies.kyverno.io"
        identity = (f"{group}/{kind}", namespace, name)
        return identity in self._compiled or identity in self._gone

    def compiled(self) -> Mapping[Identity, Compiled]:
        """Return all compiled documents by kind, namespace and name."""
        return self._compiled

    def in_use(self) -> tuple[Compiled, ...]:
        """Return all compiled documents except disabled exceptions."""
        return tuple(item for item in self._compiled.values() if item.exception is None or self._is_used(item))

    def uid_of(self, found: ResourceRef) -> str:
        """Return the uid of a policy or exception, "" when it is not known."""
        group = found.api_version.partition("/")[0]
        known = self._compiled.get((f"{group}/{found.kind}", found.namespace, found.name))
        return str(known.document.value["metadata"].get("uid", "")) if known is not None else ""

    def version_of(self, policy: PolicyInfo) -> str:
        """Return the resource version of the policy that is evaluated, "" when it is not known."""
        group = policy.api_version.partition("/")[0]
        known = self._compiled.get((f"{group}/{policy.kind}", policy.namespace, policy.name))
        return str(known.document.value["metadata"].get("resourceVersion", "")) if known is not None else ""

    def legacy(self) -> tuple[ClusterPolicy, ...]:
        """Return the valid policies of the legacy kinds that the webhook evaluates."""
        return tuple(item.written for item in self._valid() if isinstance(item.written, ClusterPolicy))

    def cel(self) -> tuple[CelPolicy, ...]:
        """Return the valid policies of the CEL kinds that the webhook evaluates."""
        return tuple(item.written for item in self._valid() if isinstance(item.written, CelPolicy))

    def _valid(self) -> Iterable[Compiled]:
        return (item for item in self._evaluated() if not item.errors)

    def _evaluated(self) -> Iterable[Compiled]:
        """Return the documents that are evaluated here, in order: all but those that the API server enforces."""
        items = (self._compiled[identity] for identity in sorted(self._compiled))
        return (item for item in items if not is_generated(item.document.value))

    def _note_change(self, identity: Identity) -> None:
        self._policies = None
        self.changes += 1
        for listener in self._listeners:
            listener(identity)

    def _build(self) -> Policies:
        items = tuple(self._evaluated())
        policies = [item.policy for item in items if item.policy is not None]
        exceptions = [item.exception for item in items if item.exception is not None and self._is_used(item)]
        written = [item.written for item in items if isinstance(item.written, ClusterPolicy)]
        return Policies(
            PolicySet(policies, exceptions),
            own_paths(written),
            self.knows,
            background_account=self._background_account,
        )

    def _is_used(self, item: Compiled) -> bool:
        settings = self._exceptions
        if not settings.enabled or item.errors or item.written is None:
            return False
        return settings.namespace in ("*", item.written.namespace or "default")


def _generates(body: JSONObject) -> bool:
    row = find_kind(str(body["apiVersion"]).partition("/")[0], body["kind"])
    return row is not None and row.action is PolicyAction.GENERATE


def identity_of(body: JSONObject) -> Identity:
    """Return the identity of a policy or exception, which does not depend on its version."""
    metadata = body.get("metadata") or {}
    group = str(body.get("apiVersion", "")).partition("/")[0]
    return f"{group}/{body.get('kind')}", str(metadata.get("namespace") or ""), str(metadata.get("name") or "")


def _with_ignore(body: JSONObject) -> JSONObject:
    """Return a copy of a policy with failurePolicy `Ignore`."""
    spec: JSONObject = {**body["spec"], "failurePolicy": "Ignore"}
    if isinstance(spec.get("webhookConfiguration"), dict) and "failurePolicy" in spec["webhookConfiguration"]:
        spec["webhookConfiguration"] = {**spec["webhookConfiguration"], "failurePolicy": "Ignore"}
    return {**body, "spec": spec}


def _essence(body: JSONObject) -> object:
    metadata = body.get("metadata") or {}
    return (
        body.get("apiVersion"),
        body.get("spec"),
        metadata.get("labels"),
        metadata.get("annotations"),
        is_generated(body),
    )


def is_generated(body: JSONObject) -> bool:
    """Return whether, by its status, a policy is enforced by the API server as a generated admission policy.

    >>> is_generated({"status": {"generated": True}}), is_generated({"status": {"validatingadmissionpolicy": {}}})
    (True, False)
    """
    status = body.get("status") or {}
    return status.get("generated") is True or (status.get("validatingadmissionpolicy") or {}).get("generated") is True


def own_paths(policies: Iterable[ClusterPolicy | CelPolicy]) -> frozenset[tuple[str, str]]:
    """Return (kind, key) of the legacy policies that have a webhook path of their own."""
    return frozenset(
        (policy.kind, policy.key)
        for policy in policies
        if isinstance(policy, ClusterPolicy) and policy.spec.webhook.match_conditions
    )
