"""The host behind CEL libraries: every call goes through the broker of the policy, which confines it to its namespace.

Calls that a namespaced policy may not make (HTTP, global context, other namespaces) are refused here, in whichever
expression they occur. Objects that a policy generates are collected, never created.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from urllib.parse import quote

from pyverno.engine.broker import Broker
from pyverno.engine.host import AuthorizingHost, HttpCall
from pyverno.errors import EvaluationError, HostError, HostUnavailableError, NotFoundError
from pyverno.kube.gvk import GVK, GVR, parse_api_version
from pyverno.kube.json import JSON, JSONObject, encode
from pyverno.kube.labelsyntax import label_key_problems, label_value_problems
from pyverno.lang.cel.faults import OperandError
from pyverno.lang.cel.host import AuthorizationCheck, Decision
from pyverno.value import dataclass, field

__all__ = ["BrokerHost"]

_READ_BYTES_PER_STEP: Final = 32
"""The policies of a review may read 30 MiB of answers: as values they take several times as much memory."""


@dataclass(slots=True)
class BrokerHost:
    """Answers the calls of CEL libraries for one policy; `generated` collects the objects that it generates."""

    broker: Broker
    generated: list[tuple[str, JSONObject]] = field(default_factory=list)

    def get_resource(self, api_version: str, resource: str, namespace: str | None, name: str) -> JSONObject | None:
        """Return an object, or None when it does not exist."""
        plural, separator, subresource = resource.partition("/")
        path = f"{self._collection(api_version, plural, namespace)}/{_segment(name, 'name')}"
        if separator:
            path += f"/{_segment(subresource, 'subresource')}"
        try:
            found = self.broker.api_call(path)
        except NotFoundError:
            return None
        return self._answer(found, path)

    def list_resources(
        self, api_version: str, resource: str, namespace: str | None, labels: Mapping[str, str]
    ) -> JSONObject:
        """Return a list object."""
        path = self._collection(api_version, resource, namespace)
        if labels:
            path += "?labelSelector=" + quote(_equality_selector(labels), safe="")
        found = self.broker.api_call(path)
        return _with_kinds(self._answer(found, path))

    def post_resource(self, api_version: str, resource: str, namespace: str | None, body: JSONObject) -> JSONObject:
        """Create an object by POST and return the answer."""
        path = self._collection(api_version, resource, namespace)
        found = self.broker.api_call(path, method="POST", body=body)
        return self._answer(found, path)

    def to_gvr(self, api_version: str, kind: str) -> tuple[str, str, str]:
        """Return (group, version, plural) of a kind."""
        group, version = parse_api_version(api_version)
        known = self.broker.host.kinds.find(GVK(group, version, kind))
        if known is None:
            text = "failed to map kind to resource: no matches for "
            raise OperandError(f"{text}the kind", f"{text}kind {kind!r} in {api_version!r}")
        return known.group, known.version, known.plural

    def http(self, method: str, url: str, body: JSON, headers: Mapping[str, str], ca_bundle: str) -> tuple[int, bytes]:
        """Send a request; refused to policies of a namespace."""
        status, answer = self.broker.http_exchange(HttpCall(method, url, headers, body, ca_bundle))
        self._count(len(answer))
        return status, answer

    def global_context(self, name: str, projection: str) -> JSON:
        """Return the data of a global context entry; refused to policies of a namespace."""
        try:
            return self.broker.global_entry(f"{name}.{projection}" if projection else name)
        except HostUnavailableError:
            if projection and self._has_entry(name):
                raise HostError(f"global context entry `{name}` has no projection `{projection}`") from None
            # Kyverno: an entry that does not exist reads as null
            return None

    def _has_entry(self, name: str) -> bool:
        try:
            self.broker.global_entry(name)
        except HostUnavailableError:
            return False
        return True

    def image_metadata(self, reference: str) -> JSONObject:
        """Return a registry's data about an image."""
        return self.image_answer(self.broker.image_data(reference, credentials=None))

    def image_answer(self, found: JSONObject) -> JSONObject:
        """Return what a registry answers about an image in the form of expressions; it counts as read."""
        self._count(len(encode(found)))
        return _metadata_of(found)

    def _answer(self, found: JSON, path: str) -> JSONObject:
        """Return an answer of the API server, which counts as read; raises HostError for one that is no object."""
        if not isinstance(found, dict):
            raise HostError(f"the API server answers `{path}` with something that is no object")
        self._count(len(encode(found)))
        return found

    def _count(self, size: int) -> None:
        self.broker.budget.charge_bytes(size, per_step=_READ_BYTES_PER_STEP)

    def generate(self, namespace: str | None, objects: list[JSON]) -> None:
        """Collect objects to generate; a policy of a namespace stays in it (None = that namespace)."""
        own = self.broker.namespace
        namespace = own if namespace is None else namespace
        if own and namespace != own:
            text = f"a policy of namespace `{own}` may not generate in "
            raise OperandError(f"{text}another namespace", f"{text}namespace `{namespace}`")
        for document in objects:
            is_list = isinstance(document, dict) and str(document.get("kind", "")).endswith("List")
            items = document.get("items") if is_list else None
            for item in items if isinstance(items, list) else [document]:
                if not isinstance(item, dict) or not isinstance(item.get("metadata") or {}, dict):
                    text = "an object to generate must be a map with metadata"
                    raise EvaluationError(f"failed to generate resources: {text}")
                self.generated.append((namespace, item))

    def authorize(self, check: AuthorizationCheck) -> Decision:
        """Answer an authorization question; a policy of a namespace may ask only about that namespace."""
        self._confine_authorization(check)
        host = self.broker.host
        if isinstance(host, AuthorizingHost):
            self.broker.budget.charge_call()
            return host.authorize(check)
        # no answer is not a refusal: it must not read as `allowed() == false`
        raise EvaluationError("no authorizer is available here")

    def _confine_authorization(self, check: AuthorizationCheck) -> None:
        own = self.broker.namespace
        if not own:
            return
        account = check.service_account
        if account is not None and account[0] != own:
            text = f"a policy of namespace `{own}` may not ask what "
            raise OperandError(f"{text}another service account may do", f"{text}`{'/'.join(account)}` may do")
        if check.attributes.get("namespace", "") != own:
            raise EvaluationError(f"a policy of namespace `{own}` may not ask what is allowed outside of it")

    def verify_image(self, image: str, attestors: list[JSON], attestation: str | None) -> int:
        """Raise: signatures are verified by a later part."""
        raise HostUnavailableError("verification of image signatures is not available in this version of pyverno")

    def image_payload(self, image: str, attestation: JSON) -> JSON:
        """Raise: attestations are verified by a later part."""
        raise HostUnavailableError("verification of image attestations is not available in this version of pyverno")

    def _collection(self, api_version: str, resource: str, namespace: str | None) -> str:
        group, version = parse_api_version(api_version)
        version, resource = _segment(version, "apiVersion"), _segment(resource, "resource")
        prefix = f"/apis/{_segment(group, 'apiVersion')}/{version}" if group else f"/api/{version}"
        own = self.broker.namespace if namespace is None else namespace
        if self.broker.namespace:
            known = self.broker.host.kinds.by_resource(GVR(group, version, resource))
            if known is not None and not known.namespaced:
                text = f"a policy of namespace `{self.broker.namespace}` may not read "
                raise OperandError(f"{text}cluster-wide resources", f"{text}the cluster-wide {resource}")
        return f"{prefix}/namespaces/{_segment(own, 'namespace')}/{resource}" if own else f"{prefix}/{resource}"


def _metadata_of(data: JSONObject) -> JSONObject:
    """Return image data with the field names of CEL; recorded data that has them already stays as it is.

    >>> _metadata_of({"resolvedImage": "r/a@sha256:0", "identifier": "v1", "configData": {"os": "linux"}})
    {'resolvedImage': 'r/a@sha256:0', 'identifier': 'v1', 'tag': 'v1', 'digest': 'sha256:0', 'config': {'os': 'linux'}}
    """
    if "configData" not in data:
        return data
    renamed = {key: value for key, value in data.items() if key not in ("configData", "manifestList")}
    identifier, resolved = str(data.get("identifier") or ""), str(data.get("resolvedImage") or "")
    if identifier and ":" not in identifier:
        renamed["tag"] = identifier
    if "@" in resolved:
        renamed["digest"] = resolved.rpartition("@")[2]
    renamed["config"] = data["configData"]
    if data.get("manifestList") is not None:
        renamed["imageIndex"] = data["manifestList"]
    return renamed


def _with_kinds(listed: JSONObject) -> JSONObject:
    """Return a list object with the kind added to each item, which an API server states only once.

    >>> _with_kinds({"apiVersion": "v1", "kind": "PodList", "items": [{"metadata": {}}]})["items"]
    [{'apiVersion': 'v1', 'kind': 'Pod', 'metadata': {}}]
    """
    items, kind = listed.get("items"), listed.get("kind")
    if not isinstance(items, list) or not isinstance(kind, str) or not kind.endswith("List"):
        return listed
    named = {"apiVersion": listed.get("apiVersion"), "kind": kind.removesuffix("List")}
    return {**listed, "items": [{**named, **item} if isinstance(item, dict) else item for item in items]}


def _segment(text: str, what: str) -> str:
    """Return a text that is to be one segment of a path.

    Arguments of expressions may be data of a request: a name with a slash or question mark would ask something else.
    """
    if not text:
        raise EvaluationError(f"{what} is required")
    bad = next((character for character in text if character in "/?#%\\" or not character.isprintable()), None)
    if bad is not None or text in (".", ".."):
        why = "it is not one segment of an API path"
        raise OperandError(f"invalid {what}: {why}", f"invalid {what} {encode(text)}: {why}")
    return text


def _equality_selector(labels: Mapping[str, str]) -> str:
    for key, value in labels.items():
        problems = (*label_key_problems(key), *label_value_problems(value))
        if problems:
            raise OperandError("invalid label", f"invalid label {encode(key)}={encode(value)}: {problems[0]}")
    return ",".join(f"{key}={value}" for key, value in sorted(labels.items()))
