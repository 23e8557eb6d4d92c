"""Many policies, and reviews of all sorts with the answer that the library gives to each: the oracle of the load.

The policies are those of our library, made to deny, and some about users, roles, namespaces and the cluster; the
objects are those of the library's cases, whole and with a part missing. Some reviews are malformed. This module must
never ask a webhook.
"""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final

from pyverno.engine.engine import Engine
from pyverno.engine.phases import MUTATING, VALIDATING
from pyverno.engine.request import Request, User
from pyverno.kube.admissionreview import shortened
from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.resource import Resource
from pyverno.kube.yaml.documents import expand_lists, load_documents
from pyverno.offline.host import OfflineHost
from pyverno.offline.library import compile_policies
from pyverno.offline.objects import ObjectStore
from pyverno.policy.kinds import KNOWN_KINDS
from pyverno.webhook.policies import Policies
from pyverno.webhook.routes import read_route

__all__ = ["Asked", "Mixture", "is_refusal", "mixture"]

_LIBRARY: Final = Path(__file__).parents[3] / "policies"
_SPECIAL: Final = Path(__file__).parent / "mixture.yaml"
_PATHS: Final = {"/mutate/fail": MUTATING, "/validate/fail": VALIDATING}
_USERS: Final[tuple[tuple[str, tuple[str, ...]], ...]] = (
    ("alice", ("devs", "system:authenticated")),
    ("bob", ("ops", "system:authenticated")),
    ("carol", ("system:authenticated",)),
    ("system:serviceaccount:team-a:builder", ("system:serviceaccounts", "system:authenticated")),
)
_OPERATIONS: Final = ("CREATE", "CREATE", "UPDATE", "DELETE")
_NAMESPACES: Final = ("default", "team-a", "team-b")
_ROLES: Final[Mapping[str, tuple[str, ...]]] = {"bob": ("cluster-admin",)}
_MALFORMED: Final[tuple[bytes, ...]] = (
    b"",
    b"{",
    b"[]",
    b'{"kind": "AdmissionReview"}',
    b'{"kind": "AdmissionReview", "request": {"uid": "1"}}',
    b'{"kind": "AdmissionReview", "request": {"uid": 1, "operation": "CREATE"}}',
    b'{"kind": "AdmissionReview", "request": {"uid": "1", "operation": "CREATE", "object": []}}',
    b'{"kind": "AdmissionReview", "request": {"uid": "1", "operation": "CREATE", "userInfo": {"groups": "a"}}}',
    b'{"kind": "AdmissionReview", "request": NaN}',
    b'{"a":' * 11_000,
)
_BAD: Final = 0.05
Answer = tuple[bool, str, tuple[JSONObject, ...], tuple[str, ...]]
"""Allowed, the text of a denial, the patch, the warnings."""


@dataclass(frozen=True, slots=True)
class Asked:
    """One review: where it goes, its `request` without a uid (or a body that is none), and the right answer.

    `expected` is None for a body that is to be refused. `asks_host` marks one whose answer may be an error while the
    API server is away.
    """

    path: str
    request: JSONObject | None
    body: bytes = b""
    expected: Answer | None = None
    asks_host: bool = False

    def bytes_for(self, uid: str) -> bytes:
        """Return the body that is sent."""
        if self.request is None:
            return self.body
        return json.dumps({**_REVIEW, "request": {**self.request, "uid": uid}}).encode()

    def complaint(self, uid: str, status: int, body: bytes, *, is_away: bool = False) -> str:
        """Return the problem of an answer, or the empty text if it is right."""
        if self.expected is None:
            return "" if is_refusal(status) else f"a malformed review was answered with {status}"
        may_deny = is_away and self.asks_host
        if status >= 500 and may_deny:
            return ""
        if status != 200:
            return f"refused with {status}: {body[:300]!r}"
        response = json.loads(body)["response"]
        if response["uid"] != uid:
            return f"the answer is for {response['uid']}"
        patch = tuple(json.loads(base64.b64decode(response["patch"]))) if "patch" in response else ()
        message = (response.get("status") or {}).get("message", "")
        said = (response["allowed"], message, patch, tuple(response.get("warnings") or ()))
        if said == self.expected or (may_deny and not response["allowed"]):
            return ""
        return f"expected {self.expected}, got {said}"


_REVIEW: Final[JSONObject] = {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1"}


def is_refusal(status: int) -> bool:
    """Return whether a status code blames the caller."""
    return 400 <= status < 500


@dataclass(frozen=True)
class Mixture:
    """Documents to install, and the reviews."""

    policies: tuple[JSONObject, ...]
    namespaces: tuple[JSONObject, ...]
    bindings: tuple[JSONObject, ...]
    config_maps: tuple[JSONObject, ...]
    manifests: Mapping[str, tuple[JSONObject, ...]]
    _oracle: dict[str, Engine] = field(default_factory=dict)

    def reviews(self, seed: int) -> Iterator[Asked]:
        """Yield reviews without end; the same seed yields the same ones."""
        chance = random.Random(seed)  # noqa: S311 - a mixture, no secret
        while True:
            if chance.random() < _BAD:
                yield Asked(chance.choice(tuple(_PATHS)), None, chance.choice(_MALFORMED))
                continue
            yield self._review(chance)

    def _review(self, chance: random.Random) -> Asked:
        manifest = self._manifest(chance)
        operation = chance.choice(_OPERATIONS)
        name, groups = chance.choice(_USERS)
        view = Resource(manifest)
        info = KNOWN_KINDS.find(view.gvk)
        assert info is not None, view.gvk
        request: JSONObject = {
            "kind": {"group": view.gvk.group, "version": view.gvk.version, "kind": view.kind},
            "resource": {"group": view.gvk.group, "version": view.gvk.version, "resource": info.plural},
            "name": view.name,
            "namespace": view.name if view.kind == "Namespace" else view.namespace,
            "operation": operation,
            "userInfo": {"username": name, "groups": list(groups)},
            "object": None if operation == "DELETE" else manifest,
            "oldObject": None if operation == "CREATE" else self._old(chance, manifest),
            "dryRun": chance.random() < 0.1,
        }
        path = chance.choice(self.paths)
        return self.with_answer(path, request)

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths that the webhook configurations name."""
        names = sorted(each["metadata"]["name"] for each in self.policies if each["kind"] == "ValidatingPolicy")
        return (*_PATHS, "/".join(("/vpol", *names)))

    def with_answer(self, path: str, request: JSONObject) -> Asked:
        """Return a review with the answer that the library expects."""
        namespace = _namespace_of(request, self.namespaces)
        user = User.from_json(request["userInfo"])
        asked = Request.from_admission_review(
            request,
            user=user.with_roles((), _ROLES.get(user.username, ())),
            namespace_labels=None if namespace is None else (namespace["metadata"].get("labels") or {}),
            namespace_object=namespace,
        )
        review = self._engine(path).review(asked, _PATHS.get(path, VALIDATING))
        decision = review.decision
        patch = decision.patch if path.startswith("/mutate") and decision.allowed else ()
        asks = any(result.rule.policy.name == "teams-are-known" for result in review.results)
        return Asked(
            path, request, b"", (decision.allowed, shortened(decision.message), patch, decision.warnings), asks
        )

    def _engine(self, path: str) -> Engine:
        if path not in self._oracle:
            route = read_route(path)
            assert route is not None
            host = OfflineHost(objects=ObjectStore([*self.config_maps, *self.namespaces], KNOWN_KINDS))
            self._oracle[path] = Engine(Policies(compile_policies(self.policies)).on(route), host)
        return self._oracle[path]

    def _manifest(self, chance: random.Random) -> JSONObject:
        manifest: JSONObject = chance.choice(self.manifests[chance.choice(tuple(self.manifests))])
        metadata = {**manifest["metadata"], "labels": {**(manifest["metadata"].get("labels") or {})}}
        metadata["labels"]["team"] = chance.choice(("blue", "green", "nobody"))
        info = KNOWN_KINDS.find(Resource(manifest).gvk)
        if info is not None and info.namespaced:
            metadata["namespace"] = chance.choice(_NAMESPACES)
        manifest = {**manifest, "metadata": metadata}
        return _without_a_part(chance, manifest) if chance.random() < 0.5 else manifest

    def _old(self, chance: random.Random, manifest: JSONObject) -> JSONObject:
        return _without_a_part(chance, manifest) if chance.random() < 0.5 else manifest


def _without_a_part(chance: random.Random, manifest: JSONObject) -> JSONObject:
    """Return the manifest without one of its fields; it keeps its kind and its name."""
    places = [place for place in _places(manifest) if place[0] not in ("apiVersion", "kind", "metadata")]
    return _removed(manifest, chance.choice(places)) if places else manifest


def _places(value: JSON, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield (*place, key)
        yield from _places(item, (*place, key))


def _removed(value: Any, place: tuple[Any, ...]) -> Any:
    key, *rest = place
    if isinstance(value, list):
        return [_removed(item, tuple(rest)) if rest and number == key else item for number, item in enumerate(value)
                if rest or number != key]  # fmt: skip
    return {name: _removed(item, tuple(rest)) if rest and name == key else item for name, item in value.items()
            if rest or name != key}  # fmt: skip


def _namespace_of(request: JSONObject, namespaces: tuple[JSONObject, ...]) -> JSONObject | None:
    if request["kind"]["kind"] == "Namespace":
        found: JSONObject = request["object"] if request["object"] is not None else request["oldObject"]
        return found
    return next((each for each in namespaces if each["metadata"]["name"] == request["namespace"]), None)


@cache
def mixture(every: int = 1) -> Mixture:
    """Read the library, or only every so many of its policies, and what is beside this module."""
    special = [each.value for each in load_documents(_SPECIAL.read_bytes(), file=_SPECIAL.name)]
    policies = [
        _enforced(each.value)
        for path in sorted(_LIBRARY.glob("**/*policy.yaml"))
        if path.name in ("clusterpolicy.yaml", "validatingpolicy.yaml")
        for each in load_documents(path.read_bytes(), file=path.name)
    ]
    manifests = [
        each.value
        for path in sorted(_LIBRARY.glob("**/cases/*.yaml"))
        if path.name != "kyverno-test.yaml"
        for each in expand_lists(load_documents(path.read_bytes(), file=path.name))
    ]
    known = [
        *(each for each in manifests if KNOWN_KINDS.find(Resource(each).gvk) is not None),
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {"a": "1"}},
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "key"}, "type": "Opaque", "data": {"a": "MQ=="}},
    ]
    kinds = sorted({each["kind"] for each in known})
    return Mixture(
        policies=(*policies[::every], *(each for each in special if "olicy" in each["kind"])),
        namespaces=tuple(each for each in special if each["kind"] == "Namespace"),
        bindings=tuple(each for each in special if each["kind"] == "ClusterRoleBinding"),
        config_maps=tuple(each for each in special if each["kind"] == "ConfigMap"),
        manifests={kind: tuple(each for each in known if each["kind"] == kind) for kind in kinds},
    )


def _enforced(policy: JSONObject) -> JSONObject:
    spec = policy["spec"]
    if policy["apiVersion"].startswith("kyverno.io/"):
        rules = [
            {**rule, "validate": {**rule["validate"], "failureAction": "Enforce"}} if "validate" in rule else rule
            for rule in spec["rules"]
        ]
        return {**policy, "spec": {**spec, "rules": rules}}
    return {**policy, "spec": {**spec, "validationActions": ["Deny"]}} if "validations" in spec else policy
