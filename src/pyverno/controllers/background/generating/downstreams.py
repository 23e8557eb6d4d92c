"""The generated objects of a cluster, found by their labels: the rule, trigger and source of each.

Only metadata is followed, of the kinds that rules generate, and only of objects with the labels of a rule. What this
controller wrote itself is known at once; a change by another client wakes the rule. An object is deleted only after it
was read again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Final, NamedTuple, TypeVar

import orjson

from pyverno.cluster.client import METADATA_LIST, Client
from pyverno.cluster.informer import Informer, Notice
from pyverno.cluster.informerset import InformerSet
from pyverno.controllers.applier import CAUSE_ANNOTATION
from pyverno.controllers.state.policystore import Identity
from pyverno.engine.origin import KYVERNO, MANAGED_BY, POLICY_LABELS, Origin, uid_of
from pyverno.engine.result import ResourceRef
from pyverno.errors import HostError
from pyverno.kube.gvk import GVR, parse_api_version
from pyverno.kube.json import JSONObject
from pyverno.kube.kinds import KindInfo
from pyverno.kube.status import StatusError
from pyverno.policy.updaterequest import Trigger

# trust rows: own-label

__all__ = ["Downstream", "Downstreams", "identity_of_origin"]

_SELECTOR: Final = f"{MANAGED_BY}={KYVERNO},{POLICY_LABELS[0]}"
_SYNC_SECONDS: Final = 10.0
_GENERATED_LABELS: Final = "generate.kyverno.io/"
_IDENTITY: Final = ("name", "namespace", "resourceVersion")
_DIGEST: Final = "digest"
"""Annotation in which the informer keeps the digest of the annotations that it drops."""

Place = tuple[GVR, str, str]
"""Resource, namespace and name."""

_Cause = tuple[Identity, str, str]
"""Policy, rule, and uid of the trigger."""

_Key = TypeVar("_Key", bound=Hashable)


class Downstream(NamedTuple):
    """One generated object: its policy and origin, and what its annotation adds.

    `trigger` has a name where the annotation holds it. `source` is what the object is a copy of, "" for parts that are
    not known. With `goes_with_policy` it is deleted when its rule is gone, `policy_generation` is that of the policy
    when the object was last written (0 = unknown). `digest` changes with labels and annotations.
    """

    gvr: GVR
    target: ResourceRef
    uid: str
    version: str
    generation: int
    policy: Identity
    origin: Origin
    trigger: Trigger
    source: Place | None = None
    goes_with_policy: bool = False
    policy_generation: int = 0
    digest: int = 0

    @property
    def place(self) -> Place:
        """The reference of the object."""
        return self.gvr, self.target.namespace, self.target.name

    def was_triggered_by(self, trigger: Trigger) -> bool:
        """Return whether the object names this very trigger; a name that is not known may be any."""
        own = self.trigger
        groups = {parse_api_version(each.api_version)[0] for each in (own, trigger)}
        return (
            len(groups) == 1
            and (own.kind, own.namespace) == (trigger.kind, trigger.namespace)
            and (not own.name or not trigger.name or own.name == trigger.name)
            and (not trigger.uid or own.uid == trigger.uid)
        )

    @classmethod
    def of(cls, info: KindInfo, body: JSONObject) -> Downstream | None:
        """Read a generated object of a kind, or its metadata alone; None where the labels name no rule.

        Anybody who may write the object may have written its labels: those of a policy of another namespace name none.
        """
        metadata = body["metadata"]
        origin = Origin.of(metadata.get("labels") or {})
        if origin is None:
            return None
        said = _annotation(metadata)
        namespace, name = metadata.get("namespace") or "", metadata["name"]
        if origin.policy_namespace not in ("", namespace):  # a policy of a namespace owns objects there only
            return None
        found = origin.trigger
        trigger_name = found.name or str(said.get("trigger") or "").rpartition("/")[2]
        return cls(
            gvr=info.gvr,
            target=ResourceRef(info.api_version, info.kind, namespace, name),
            uid=uid_of(body),
            version=str(metadata.get("resourceVersion") or ""),
            generation=int(metadata.get("generation") or 0),
            policy=identity_of_origin(origin),
            origin=origin,
            trigger=Trigger(found.api_version, found.kind, found.namespace, trigger_name, origin.trigger_uid),
            source=_source(info, str(said.get("source") or "")) if origin.is_copy else None,
            goes_with_policy=said.get("onPolicyDeletion") == "delete",
            policy_generation=int(said.get("policyGeneration") or 0),
            digest=_digest(metadata),
        )


def identity_of_origin(origin: Origin) -> Identity:
    """Return the policy that a generated object names."""
    if origin.rule:
        kind = "kyverno.io/Policy" if origin.policy_namespace else "kyverno.io/ClusterPolicy"
    else:
        kind = f"policies.kyverno.io/{'Namespaced' if origin.policy_namespace else ''}GeneratingPolicy"
    return kind, origin.policy_namespace, origin.policy


Changed = Callable[[Notice, Downstream], None]
"""Receives changes of generated objects by others."""


class Downstreams:
    """Generated objects in memory; `run` follows them."""

    def __init__(
        self,
        client: Client,
        info_of: Callable[[GVR], KindInfo | None],
        on_change: Changed,
        on_new: Callable[[Downstream], None] = lambda _found: None,
    ) -> None:
        """Take the client, what knows the kinds of the cluster, and a receiver of changes by others.

        `on_new` receives objects that another replica generated.
        """
        self._client = client
        self._info_of = info_of
        self._on_change = on_change
        self._on_new = on_new
        self._informers: InformerSet[GVR] = InformerSet()
        self._known: dict[Place, Downstream] = {}
        self._by_policy: dict[Identity, set[Place]] = {}
        self._by_source: dict[Place, set[Place]] = {}
        self._by_trigger: dict[_Cause, set[Place]] = {}

    def __len__(self) -> int:
        return len(self._known)

    def __iter__(self) -> Iterator[Downstream]:
        return iter(tuple(self._known.values()))

    @property
    def is_synced(self) -> bool:
        """Return whether the objects of all kinds have arrived, as far as they can be watched."""
        return self._informers.is_synced

    def follows(self, gvr: GVR) -> bool:
        """Return whether the objects of a resource are followed."""
        return gvr in self._informers

    def follow(self, gvr: GVR) -> None:
        """Follow the generated objects of a resource from now on."""
        if gvr in self._informers or self._info_of(gvr) is None:
            return
        informer = Informer(
            self._client,
            gvr,
            selector=_SELECTOR,
            only_metadata=True,
            shrink=lambda body: self._shrink(gvr, body),
            on_restore=lambda: self._restore(gvr),
        )
        informer.listen(lambda notice, body: self._take(gvr, notice, body, informer))
        self._informers.add(gvr, informer)

    def followed(self) -> tuple[GVR, ...]:
        """Return the resources that are followed."""
        return tuple(self._informers)

    async def run(self) -> None:
        """Follow generated objects until cancelled."""
        await self._informers.run()

    async def arrived(self, gvr: GVR) -> None:
        """Wait until the objects of a resource have arrived; raises HostError when they do not."""
        informer = self._informers.get(gvr)
        if informer is None:
            return
        try:
            async with asyncio.timeout(_SYNC_SECONDS):
                await informer.synced.wait()
        except TimeoutError:
            raise HostError(informer.problem()) from None

    async def settled(self, resources: Iterable[GVR]) -> None:
        """Follow resources until their objects have arrived, or cannot be read; raises HostError when neither comes."""
        for gvr in resources:
            self.follow(gvr)
            informer = self._informers.get(gvr)
            if informer is not None and not informer.synced.is_set() and not informer.trouble:
                await self.arrived(gvr)

    # ------------------------------------------------------------------------------------------------------- looking up

    def get(self, gvr: GVR, namespace: str, name: str) -> Downstream | None:
        """Return a generated object, None for a missing one."""
        return self._known.get((gvr, namespace, name))

    def of_policy(self, policy: Identity) -> Iterator[Downstream]:
        """Yield the objects that a policy generated."""
        yield from (self._known[place] for place in tuple(self._by_policy.get(policy, ())) if place in self._known)

    def kinds_of(self, policy: Identity) -> set[GVR]:
        """Return the resources of the objects that a policy generated."""
        return {place[0] for place in self._by_policy.get(policy, ())}

    def of_trigger(self, policy: Identity, rule: str, trigger_uid: str) -> Iterator[Downstream]:
        """Yield the objects that a rule generated for a trigger."""
        places = tuple(self._by_trigger.get((policy, rule, trigger_uid), ()))
        yield from (self._known[place] for place in places if place in self._known)

    def of_source(self, source: Place) -> Iterator[Downstream]:
        """Yield the copies of an object."""
        yield from (self._known[place] for place in tuple(self._by_source.get(source, ())) if place in self._known)

    def policies(self) -> tuple[Identity, ...]:
        """Return the policies that generated anything that exists."""
        return tuple(policy for policy, places in self._by_policy.items() if places)

    def sources(self) -> tuple[Place, ...]:
        """Return the objects that have copies."""
        return tuple(source for source, places in self._by_source.items() if places)

    async def list_of(self, policy: Identity, rule: str, trigger: Trigger, kinds: tuple[GVR, ...]) -> list[Downstream]:
        """Return, as the API server has them now, the objects of some kinds that a rule generated for a trigger."""
        _, namespace, name = policy
        labels = {
            MANAGED_BY: KYVERNO,
            POLICY_LABELS[0]: name,
            **({POLICY_LABELS[1]: namespace} if namespace or rule else {}),
            **({POLICY_LABELS[2]: rule} if rule else {}),
            f"{_GENERATED_LABELS}trigger-kind": trigger.kind,
            f"{_GENERATED_LABELS}trigger-namespace": trigger.namespace,
            **({f"{_GENERATED_LABELS}trigger-uid": trigger.uid} if trigger.uid else {}),
        }
        query = {"labelSelector": ",".join(f"{key}={value}" for key, value in labels.items())}
        found: list[Downstream] = []
        for gvr in kinds:
            info = self._info_of(gvr)
            try:
                listed = await self._client.list(gvr, query=query, accept=METADATA_LIST) if info else {}
            except StatusError as error:
                if error.status != 404:  # else the kind is served no longer
                    raise
                continue
            for item in listed.get("items") or ():
                read = Downstream.of(info, item) if info is not None else None
                if read is not None and read.policy == policy and read.origin.rule == rule:
                    found.append(read)
        return found

    # ---------------------------------------------------------------------------------------------------------- changes

    def note(self, gvr: GVR, body: JSONObject) -> None:
        """Note an object as this controller has just written it."""
        info = self._info_of(gvr)
        found = Downstream.of(info, body) if info is not None else None
        if found is not None:
            self._remember(found)

    def forget(self, gvr: GVR, namespace: str, name: str) -> None:
        """Forget an object that this controller deleted or found missing."""
        self._forget((gvr, namespace, name))

    def _restore(self, gvr: GVR) -> None:
        """Have all objects of a resource brought in step: the cluster has older versions of them than are known."""
        for place, known in tuple(self._known.items()):
            if known.gvr == gvr:
                self._known[place] = known._replace(version="")
                self._on_change(Notice.MODIFIED, known)

    def _shrink(self, gvr: GVR, body: JSONObject) -> JSONObject:
        """Keep of an object what `_take` reads: next to nothing in the version that this controller wrote itself."""
        metadata = body["metadata"]
        known = self._known.get((gvr, metadata.get("namespace") or "", metadata["name"]))
        if known is None or known.version != metadata.get("resourceVersion"):
            return _essence(body)
        return {"metadata": {key: metadata[key] for key in _IDENTITY if key in metadata}}

    def _take(self, gvr: GVR, notice: Notice, body: JSONObject, informer: Informer) -> None:
        info = self._info_of(gvr)
        if info is None:
            return
        place = (gvr, body["metadata"].get("namespace") or "", body["metadata"]["name"])
        before = self._known.get(place)
        if notice is Notice.DELETED:
            # an object of the selector that loses its labels is deleted too, as far as a watch with a selector shows
            if before is not None:
                self._forget(place)
                self._on_change(notice, before)
            return
        if before is not None:
            if _is_older(str(body["metadata"].get("resourceVersion") or ""), before.version):
                return  # what this controller wrote itself is known already
            if "uid" not in body["metadata"]:
                return  # `_shrink` left no more of the version that was known before a restore
        now = Downstream.of(info, body)
        if now is None:
            self._forget(place)
            return
        self._remember(now)
        if before is None:
            self._on_new(now)
        elif informer.synced.is_set() and _differs(before, now):
            self._on_change(notice, now)

    def _remember(self, found: Downstream) -> None:
        place = found.place
        known = self._known.get(place)
        if known is not None and (_cause(known), known.source) != (_cause(found), found.source):
            self._forget(place)
        self._known[place] = found
        self._by_policy.setdefault(found.policy, set()).add(place)
        self._by_trigger.setdefault(_cause(found), set()).add(place)
        if found.source is not None:
            self._by_source.setdefault(found.source, set()).add(place)

    def _forget(self, place: Place) -> None:
        known = self._known.pop(place, None)
        if known is None:
            return
        _drop(self._by_policy, known.policy, place)
        _drop(self._by_trigger, _cause(known), place)
        if known.source is not None:
            _drop(self._by_source, known.source, place)


def _cause(found: Downstream) -> _Cause:
    return found.policy, found.origin.rule, found.trigger.uid


def _drop(index: dict[_Key, set[Place]], key: _Key, place: Place) -> None:
    places = index.get(key)
    if places is not None:
        places.discard(place)
        if not places:
            del index[key]


def _essence(body: JSONObject) -> JSONObject:
    """Keep of the metadata what this module reads."""
    metadata = body.get("metadata") or {}
    kept = {
        key: metadata[key] for key in ("name", "namespace", "uid", "resourceVersion", "generation") if key in metadata
    }
    labels = metadata.get("labels") or {}
    kept["labels"] = {key: labels[key] for key in labels if key.startswith(_GENERATED_LABELS) or key == MANAGED_BY}
    cause = (metadata.get("annotations") or {}).get(CAUSE_ANNOTATION)
    kept["annotations"] = {**({CAUSE_ANNOTATION: cause} if cause is not None else {}), _DIGEST: _digest(metadata)}
    return {"metadata": kept}


def _digest(metadata: JSONObject) -> int:
    """Return a number that changes with the labels and annotations of an object, but for those about its changes."""
    annotations = metadata.get("annotations") or {}
    known = annotations.get(_DIGEST)
    if isinstance(known, int):
        return known
    others = {key: value for key, value in annotations.items() if key != CAUSE_ANNOTATION}
    return hash(orjson.dumps([metadata.get("labels") or {}, others], option=orjson.OPT_SORT_KEYS))


def _annotation(metadata: JSONObject) -> JSONObject:
    """Read the annotation of the last change; an invalid one is ignored."""
    text = (metadata.get("annotations") or {}).get(CAUSE_ANNOTATION)
    try:
        found = orjson.loads(text) if isinstance(text, str) else {}
    except orjson.JSONDecodeError:
        return {}
    return found if isinstance(found, dict) else {}


def _source(info: KindInfo, written: str) -> Place | None:
    """Read `NAMESPACE/KIND/NAME` or `KIND/NAME`; a copy is of the kind of its source."""
    parts = written.split("/")
    if len(parts) < 2:
        return None
    return info.gvr, parts[0] if len(parts) == 3 else "", parts[-1]


def _is_older(version: str, than: str) -> bool:
    """Return whether a resource version is the same or an earlier one; versions that are no numbers never are."""
    return version == than or (version.isdecimal() and than.isdecimal() and int(version) < int(than))


def _differs(before: Downstream, now: Downstream) -> bool:
    """Return whether more than the status of an object has changed, where its metadata shows that."""
    same_spec = bool(now.generation) and now.generation == before.generation
    return not (same_spec and (now.uid, now.digest) == (before.uid, before.digest))
