"""Inspects one cluster: current texts of policies, explanations of results, drafts of exceptions.

Policies, exceptions and namespaces are read again when they are older than a few seconds; objects are read for each
request. Everything is read with the account of this server, and shown if the viewer of the request may read it, too.
Nothing is written to the cluster.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Final

from pyverno.cli.clusterdata import by_name, discover_kinds, load_entries, with_type
from pyverno.cli.ui.claims import check_namespace, check_object, is_readable, readable, resolve
from pyverno.cluster.client import Client
from pyverno.compiler import compile_documents
from pyverno.controllers.state.hosts import HostFactory, HostSettings
from pyverno.controllers.state.scannedkinds import matched_kinds
from pyverno.engine.host import Host
from pyverno.engine.result import ResourceRef, RuleResult, Status
from pyverno.errors import UsageError, ValueSyntaxError
from pyverno.kube.gvk import GVR
from pyverno.kube.json import JSONObject
from pyverno.kube.kinds import KindInfo, KindTable
from pyverno.kube.resource import Resource
from pyverno.kube.status import StatusError
from pyverno.kube.time.gotime import parse_rfc3339
from pyverno.kube.time.ttl import parse_ttl
from pyverno.kube.yaml.documents import Document, load_documents
from pyverno.kube.yaml.writer import dump_yaml
from pyverno.offline.session import Session
from pyverno.offline.system import OfflineSystem
from pyverno.policy.kinds import POLICY_KINDS, Family
from pyverno.report.exceptions import exception_for
from pyverno.report.policyreport import ReportEntry
from pyverno.report.ruleplaces import RulePlaces
from pyverno.threads import in_thread
from pyverno.ui.access.identity import AccessDeniedError
from pyverno.ui.access.viewer import VIEWER
from pyverno.ui.access.viewerhost import ViewerHost
from pyverno.ui.playground.explaining import ChangeWanted, explain_rules
from pyverno.ui.store.rows import StoredResult
from pyverno.value import dataclass, replace

__all__ = ["ClusterInspector"]

_FRESH_SECONDS: Final = 5.0
_MOST_AT_ONCE: Final = 2
_TTL: Final = "cleanup.kyverno.io/ttl"
_NAMESPACES: Final = GVR("", "v1", "namespaces")
_EXCEPTIONS: Final = frozenset({Family.EXCEPTION, Family.CEL_EXCEPTION})
_BAD: Final = (Status.FAIL, Status.ERROR, Status.WARN)
_LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"


@dataclass(frozen=True, slots=True)
class _Snapshot:
    """State of a cluster, read together; `problems` are resources that could not be listed."""

    kinds: KindTable
    host: Host
    policies: Sequence[JSONObject] = ()
    bindings: Sequence[JSONObject] = ()
    exceptions: Sequence[JSONObject] = ()
    namespaces: Sequence[JSONObject] = ()
    problems: Sequence[str] = ()
    seconds: float = 0.0


class ClusterInspector:
    """Answers questions about one cluster; an async context manager's work is done by `close`."""

    def __init__(self, client: Client, *, clock: Callable[[], float] = time.monotonic) -> None:
        """Take the client of the cluster; `clock` counts the seconds that an answer is used again."""
        self._client = client
        self._clock = clock
        self._hosts: HostFactory | None = None
        self._known: _Snapshot | None = None
        self._reading = asyncio.Lock()
        self._turns = asyncio.Semaphore(_MOST_AT_ONCE)

    async def close(self) -> None:
        """Close what reads the cluster for rules."""
        if self._hosts is not None:
            await self._hosts.close()

    async def policies(self, key: str) -> list[JSONObject]:
        """Return the policies with a key (`name`, or `namespace/name`), each with its text, kinds and exceptions."""
        known = await self._read()
        named = [body for body in known.policies if _key(body) == key and await is_readable(body, known.kinds)]
        if not named:
            return []
        exceptions = await readable(known.exceptions, known.kinds)
        return [_describe_policy(body, known, exceptions) for body in named]

    async def exceptions(self) -> list[JSONObject]:
        """Return all exceptions: scope, policies, and when they end."""
        known = await self._read()
        return [_describe_exception(body, known) for body in await readable(known.exceptions, known.kinds)]

    async def problems(self) -> Sequence[str]:
        """Return the resources that could not be read, so that an empty list is not taken for a complete one."""
        return (await self._read()).problems

    async def explain(self, result: StoredResult) -> JSONObject:
        """Return why the object of a result passes or fails its policy now, line by line."""
        found = result.collected.finding
        policies, resource = await self._texts(result)
        async with self._turns:
            known, hidden = await self._seen(found.policy, found.resource.namespace)
            rules = await in_thread(_explain, known, policies, resource, found.policy, found.rule)
        if hidden:
            text = f"({hidden} exceptions for this policy, which you may not read, are left out)"
            note: JSONObject = {"depth": 1, "text": text, "word": "", "place": None}
            rules = [{**each, "lines": [*each["lines"], note]} for each in rules]
        return {"policies": policies, "resources": resource, "rules": rules}

    async def draft(self, result: StoredResult) -> JSONObject:
        """Return the narrowest exception for a result, and the results of the engine without it and with it."""
        found = result.collected.finding
        policies, resource = await self._texts(result)
        async with self._turns:
            known, _ = await self._seen(found.policy, found.resource.namespace)
            return await in_thread(_draft, known, policies, resource, found.policy, found.rule)

    # ------------------------------------------------------------------------------------------------------- reading

    async def _texts(self, result: StoredResult) -> tuple[str, str]:
        """Return the policies of a result and its object as YAML; raises UsageError when one is gone.

        Raises AccessDeniedError for an object that the viewer may not get, whether there is one or not.
        """
        found = result.collected.finding
        known = await self._read()
        policies = [body for body in known.policies if _key(body) == found.policy]
        named = [each for each in policies if await is_readable(each, known.kinds)]  # guard: policies are asked
        if not named:
            hint = f" ({'; '.join(known.problems)})" if known.problems else ""
            seen = "" if VIEWER.get() is None else ", or you may not `get` it"
            raise UsageError(f"the cluster has no policy `{found.policy}` any more{seen}{hint}")
        body = await self._object(known, found.resource)
        return "---\n".join(dump_yaml(_without_bookkeeping(each)) for each in named), dump_yaml(
            _without_bookkeeping(body)
        )

    async def _object(self, known: _Snapshot, ref: ResourceRef) -> JSONObject:
        info = resolve(ref, known.kinds)
        await check_object(info, ref.namespace, ref.name)  # guard: the object of a report is asked for the viewer
        await check_namespace(ref.namespace)
        try:
            return await self._client.get(info.gvr, ref.name, ref.namespace)
        except StatusError as error:
            gone = "the object is gone" if error.status == 404 else f"the object cannot be read: {error.message}"
            raise UsageError(gone) from None

    async def _seen(self, policy: str, namespace: str) -> tuple[_Snapshot, int]:
        """Return the state as the viewer may see it, and the number of exceptions of the policy that are left out."""
        known = await self._read()
        viewer = VIEWER.get()
        assert self._hosts is not None  # noqa: S101 - `_read` has made them
        host = ViewerHost(known.host, viewer, self._hosts.entries.source_of, asyncio.get_running_loop())
        if viewer is None:
            return replace(known, host=host), 0
        bindings = [body for body in known.bindings if await is_readable(body, known.kinds)]
        if any(body["spec"].get("policyName") == policy and body not in bindings for body in known.bindings):
            raise AccessDeniedError(f"you may not `get` every binding of policy `{policy}`: the verdict would be wrong")
        exceptions = await readable(known.exceptions, known.kinds)
        named = [body for body in known.policies if _key(body) == policy]
        hidden = [each for each in known.exceptions if each not in exceptions and any(_names(each, of) for of in named)]
        namespaces = [each for each in known.namespaces if Resource(each).name == namespace]
        seen = replace(known, host=host, bindings=bindings, exceptions=exceptions, namespaces=namespaces)
        return seen, len(hidden)

    async def _read(self) -> _Snapshot:
        async with self._reading:
            if self._known is None or self._clock() - self._known.seconds > _FRESH_SECONDS:
                self._known = await self._read_all()
            return self._known

    async def _read_all(self) -> _Snapshot:
        kinds = await discover_kinds(self._client)
        if self._hosts is None:
            # whoever opens an explanation must not make the server look up names, which objects may contain
            settings = HostSettings(caches_config_maps=False)
            self._hosts = HostFactory(self._client, settings, lambda: kinds, system=OfflineSystem())
            with suppress(StatusError):  # a rule that reads the global context then errs by itself
                await load_entries(self._client, self._hosts)
        problems: list[str] = []
        policies: list[JSONObject] = []
        bindings: list[JSONObject] = []
        exceptions: list[JSONObject] = []
        for row in POLICY_KINDS:
            info = kinds.by_resource(row.gvr)
            if info is None or row.family is Family.CONTEXT:
                continue
            into = exceptions if row.family in _EXCEPTIONS else policies
            into = bindings if row.kind.endswith("Binding") else into
            into.extend(await self._list(info, problems))
        namespaces = kinds.by_resource(_NAMESPACES)
        listed = [] if namespaces is None else await self._list(namespaces, problems)
        host = self._hosts.host()
        return _Snapshot(kinds, host, policies, bindings, exceptions, listed, tuple(problems), self._clock())

    async def _list(self, info: KindInfo, problems: list[str]) -> list[JSONObject]:
        try:
            found = await self._client.list(info.gvr)
        except StatusError as error:
            problems.append(f"{info.plural} cannot be listed: {error.message}")
            return []
        return [with_type(item, info) for item in found["items"]]


# -------------------------------------------------------------------------------------------------------------- engine


def _session(known: _Snapshot, policies: str, extra: Iterable[JSONObject] = ()) -> Session:
    documents = load_documents(policies, file="policies")
    names = {Resource(_mapping(each)).name for each in documents}
    bindings = [Document(each, "cluster") for each in known.bindings if each["spec"].get("policyName") in names]
    compilation = compile_documents([*documents, *bindings])
    exceptions = compile_documents([Document(each, "cluster") for each in (*known.exceptions, *extra)])
    return Session(
        policies=compilation.policies,
        host=known.host,
        exceptions=exceptions.exceptions,
        kinds=known.kinds,
        namespaces=by_name(known.namespaces),
        compilation=compilation,
        errors=(*compilation.errors, *exceptions.errors),
    )


def _explain(known: _Snapshot, policies: str, resource: str, policy: str, rule: str) -> list[JSONObject]:
    session = _session(known, policies)
    if session.compilation.errors:
        raise session.compilation.errors[0]
    (document,) = load_documents(resource, file="resources")
    body = _mapping(document)
    change = ChangeWanted(0, policy, rule)
    places = RulePlaces(session.compilation)
    return explain_rules(session, document, body, operation=None, old=None, change=change, rule_places=places)


def _draft(known: _Snapshot, policies: str, resource: str, policy: str, rule: str) -> JSONObject:
    body = _mapping(load_documents(resource, file="resources")[0])
    before = _judge(_session(known, policies), body, policy, rule)
    failed = next((each for each in before if each.status in _BAD), None)
    if failed is None:
        raise UsageError("the object does not fail this policy any more: it needs no exception")
    draft = exception_for(ReportEntry(failed, ResourceRef.of(body), 0))
    if draft is None:
        raise UsageError(f"an exception does not help: the result is `{failed.status.value}`, not `fail`")
    after = _judge(_session(known, policies, [draft]), body, policy, rule)
    return {"exception": dump_yaml(draft), "before": _statuses(before), "after": _statuses(after)}


def _judge(session: Session, body: JSONObject, policy: str, rule: str) -> list[RuleResult]:
    review = session.review(body)
    chosen = [each for each in review.results if each.rule.policy.key == policy]
    return [each for each in chosen if each.rule.name == rule] or chosen


def _statuses(results: Iterable[RuleResult]) -> list[JSONObject]:
    return [
        {"policy": each.rule.policy.key, "rule": each.rule.name, "status": each.status.value, "message": each.message}
        for each in results
    ]


def _mapping(document: Document) -> JSONObject:
    return document.value if isinstance(document.value, dict) else {}


# --------------------------------------------------------------------------------------------------------- description


def _describe_policy(body: JSONObject, known: _Snapshot, exceptions: Iterable[JSONObject]) -> JSONObject:
    metadata = Resource(body)
    annotations = metadata.annotations
    found: JSONObject = {
        "kind": body["kind"],
        "apiVersion": body["apiVersion"],
        "name": metadata.name,
        "namespace": metadata.namespace,
        "created": str(body["metadata"].get("creationTimestamp", "")),
        "text": dump_yaml(_without_bookkeeping(body)),
        "conditions": _conditions(body),
        "kinds": _kinds(body, known),
        "exceptions": [_describe_exception(each, known) for each in exceptions if _names(each, body)],
    }
    for name in ("title", "category", "severity", "description"):
        text = annotations.get(f"policies.kyverno.io/{name}")
        if isinstance(text, str):
            found[name] = text
    return found


def _conditions(body: JSONObject) -> list[JSONObject]:
    status = body.get("status")
    status = status if isinstance(status, dict) else {}
    nested = status.get("conditionStatus")
    listed = status.get("conditions") or (nested.get("conditions") if isinstance(nested, dict) else None) or []
    return [
        {key: str(each.get(key, "")) for key in ("type", "status", "reason", "message")}
        for each in listed
        if isinstance(each, dict)
    ]


def _kinds(body: JSONObject, known: _Snapshot) -> list[str]:
    """Return the kinds of the cluster that a policy matches, those of autogen included."""
    compiled = compile_documents([Document(body, "cluster")])
    found = matched_kinds(compiled.policies, known.kinds, rules=lambda policy: policy.rules)
    return sorted({f"{each.api_version}/{each.kind}" for each in found})


def _describe_exception(body: JSONObject, known: _Snapshot) -> JSONObject:
    metadata = Resource(body)
    keys = {_key(each): each for each in known.policies}
    return {
        "kind": body["kind"],
        "apiVersion": body["apiVersion"],
        "namespace": metadata.namespace,
        "name": metadata.name,
        "created": str(body["metadata"].get("creationTimestamp", "")),
        "expires": _expiry(body),
        "policies": [{"name": name, "rules": rules, "exists": name in keys} for name, rules in _targets(body)],
        "text": dump_yaml(_without_bookkeeping(body)),
    }


def _targets(body: JSONObject) -> list[tuple[str, list[str]]]:
    """Return the names of the policies that an exception is for, with their rules (none = the whole policy)."""
    spec = body.get("spec") or {}
    found = [
        (str(each.get("policyName")), [str(rule) for rule in each.get("ruleNames") or ()])
        for each in spec.get("exceptions") or ()
    ]
    return found + [(str(each.get("name")), []) for each in spec.get("policyRefs") or ()]


def _names(exception: JSONObject, policy: JSONObject) -> bool:
    key, name = _key(policy), Resource(policy).name
    is_cel = exception["apiVersion"].startswith("policies.kyverno.io/")
    if is_cel:
        refs = (exception.get("spec") or {}).get("policyRefs") or ()
        return any((each.get("name"), each.get("kind")) == (name, policy["kind"]) for each in refs)
    return any(target == key for target, _ in _targets(exception))


def _expiry(body: JSONObject) -> str:
    metadata = body["metadata"]
    text = (metadata.get("labels") or {}).get(_TTL)
    if not isinstance(text, str):
        return ""
    try:
        created = parse_rfc3339(str(metadata.get("creationTimestamp", "")))
        return str(parse_ttl(text, created))
    except ValueSyntaxError:
        return ""


def _key(body: JSONObject) -> str:
    metadata = Resource(body)
    return f"{metadata.namespace}/{metadata.name}" if metadata.namespace else metadata.name


def _without_bookkeeping(body: JSONObject) -> JSONObject:
    """Return an object without the metadata of its history."""
    metadata = {key: value for key, value in body["metadata"].items() if key != "managedFields"}
    annotations = {key: value for key, value in (metadata.get("annotations") or {}).items() if key != _LAST_APPLIED}
    if "annotations" in metadata:
        metadata["annotations"] = annotations
    if not metadata.get("annotations"):
        metadata.pop("annotations", None)
    return {**body, "metadata": metadata}
