"""UpdateRequest (`kyverno.io/v2`): work that an admission request triggered, to be done in the background.

The admission controller writes them, the background controller does the work.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from pyverno.kube.gvk import GVR
from pyverno.kube.json import JSON, JSONObject
from pyverno.lazyregex import regex
from pyverno.policy.document import PolicyDocument, policy_record
from pyverno.policy.schema import Field, Record, boolean, choice, free, list_of, text
from pyverno.value import dataclass, field

__all__ = [
    "HELD",
    "KEPT",
    "KEPT_TYPE",
    "MAX_HELD_SHARE",
    "REVISION",
    "UNCHANGED",
    "UPDATE_REQUEST",
    "UPDATE_REQUESTS",
    "AdmissionContext",
    "RequestType",
    "RuleContext",
    "Trigger",
    "UpdateRequest",
    "UpdateRequestSpec",
    "labels_of",
    "revision_of",
]

UPDATE_REQUESTS: Final = GVR("kyverno.io", "v2", "updaterequests")
HELD: Final = "pyverno.io/held"
"""Label of requests that were tried and cannot be done at the moment: they do not count for the threshold."""

REVISION: Final = "pyverno.io/revision"
"""Annotation of requests for deleted objects: a resource version at which the API server still had the object."""

KEPT: Final = "pyverno.io/kept-object"
"""Annotation of requests whose deleted object is in a Secret of the same name, which the request owns."""

KEPT_TYPE: Final = "pyverno.io/deleted-object"
"""Type of these Secrets."""

UNCHANGED: Final = "pyverno.io/unchanged"
"""In the request of an UpdateRequest: an update that changes nothing, which its references do not show."""

MAX_HELD_SHARE: Final = 20
"""How many times the threshold all requests may be, held ones included."""

_NAME_LENGTH = 63
_NOT_IN_LABELS = regex("[^A-Za-z0-9._-]")


class RequestType(StrEnum):
    """The kind of policy that made the request."""

    MUTATE = "mutate"
    GENERATE = "generate"
    CEL_GENERATE = "cel-generate"
    CEL_MUTATE = "cel-mutate"


@dataclass(frozen=True, slots=True)
class Trigger:
    """The object on whose account something is to be done; a part that is not known is empty."""

    api_version: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""

    def to_json(self) -> JSONObject:
        """Return the object reference."""
        parts = {
            "apiVersion": self.api_version,
            "kind": self.kind,
            "namespace": self.namespace,
            "name": self.name,
            "uid": self.uid,
        }
        return {key: value for key, value in parts.items() if value}


@dataclass(frozen=True, slots=True)
class RuleContext:
    """One rule and its trigger: generate for it, or with `delete_downstream` delete what was generated for it.

    `synchronize` (policies in CEL): what is no longer generated is to go. `cache_restore`: only find out what exists.
    """

    rule: str
    trigger: Trigger = field(default_factory=Trigger)
    delete_downstream: bool = False
    synchronize: bool = False
    cache_restore: bool = False

    def to_json(self) -> JSONObject:
        """Return the item of `spec.ruleContext`."""
        return {
            "rule": self.rule,
            "deleteDownstream": self.delete_downstream,
            **({"synchronize": True} if self.synchronize else {}),
            "trigger": self.trigger.to_json(),
            **({"cacheRestore": True} if self.cache_restore else {}),
        }


@dataclass(frozen=True, slots=True)
class AdmissionContext:
    """The admission request and its user, as policies see them: `user` is an authentication.k8s.io/v1 UserInfo.

    The objects in `request` are references. `kept` is the deleted object, which the request itself never contains.
    """

    user: JSONObject = field(default_factory=dict)
    roles: tuple[str, ...] = ()
    cluster_roles: tuple[str, ...] = ()
    request: JSON = None
    operation: str = ""
    kept: JSON = None

    def to_json(self) -> JSONObject:
        """Return `spec.context`."""
        info: JSONObject = {"userInfo": dict(self.user)}
        if self.roles:
            info["roles"] = list(self.roles)
        if self.cluster_roles:
            info["clusterRoles"] = list(self.cluster_roles)
        found: JSONObject = {"userInfo": info}
        if self.request is not None:
            found["admissionRequestInfo"] = {"admissionRequest": self.request, "operation": self.operation}
        return found


@dataclass(frozen=True, slots=True)
class UpdateRequestSpec:
    """The work: for a policy (`name` or `namespace/name`) by a rule on `resource`, or by `rule_context`."""

    request_type: RequestType
    policy: str
    rule: str = ""
    rule_context: tuple[RuleContext, ...] = ()
    resource: Trigger = field(default_factory=Trigger)
    context: AdmissionContext = field(default_factory=AdmissionContext)
    delete_downstream: bool = False
    synchronize: bool = False

    def to_json(self, namespace: str) -> JSONObject:
        """Return the object to create in the namespace of the controllers.

        >>> spec = UpdateRequestSpec(RequestType.CEL_MUTATE, "team/patch")
        >>> body = spec.to_json("kyverno")
        >>> body["metadata"], body["spec"]["policy"]
        ({'generateName': 'ur-', 'namespace': 'kyverno'}, 'team/patch')
        """
        labels = labels_of(self)
        spec: JSONObject = {
            "requestType": self.request_type.value,
            "policy": self.policy,
            "rule": self.rule,
            "deleteDownstream": self.delete_downstream,
            **({"synchronize": True} if self.synchronize else {}),
            "resource": self.resource.to_json(),
            "context": self.context.to_json(),
        }
        if self.rule_context:
            spec["ruleContext"] = [each.to_json() for each in self.rule_context]
        return {
            "apiVersion": "kyverno.io/v2",
            "kind": "UpdateRequest",
            "metadata": {
                "generateName": "ur-",
                "namespace": namespace,
                **({"labels": labels} if labels else {}),
                **({"annotations": {KEPT: "true"}} if self.context.kept is not None else {}),
            },
            "spec": spec,
        }


def labels_of(spec: UpdateRequestSpec) -> dict[str, str]:
    """Return the labels by which requests of a policy, or about a trigger, are found again; those in CEL have none.

    >>> labels_of(UpdateRequestSpec(RequestType.GENERATE, "team/copy"))
    {'generate.kyverno.io/policy-name': 'copy'}
    """
    policy = spec.policy.rpartition("/")[2]
    if spec.request_type is RequestType.GENERATE:
        return {"generate.kyverno.io/policy-name": policy}
    if spec.request_type is not RequestType.MUTATE:
        return {}
    prefix, trigger = "mutate.updaterequest.kyverno.io/", spec.resource
    labels = {
        f"{prefix}policy-name": policy,
        f"{prefix}trigger-name": _as_label(trigger.name),
        f"{prefix}trigger-namespace": trigger.namespace,
        f"{prefix}trigger-kind": trigger.kind,
    }
    if trigger.api_version:
        labels[f"{prefix}trigger-apiversion"] = trigger.api_version.replace("/", "-")
    return labels


def revision_of(body: JSONObject) -> str:
    """Return the resource version that a request notes, "" where it notes none.

    >>> revision_of({"metadata": {"annotations": {"pyverno.io/revision": "7"}}}), revision_of({"metadata": None})
    ('7', '')
    """
    metadata = body.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    found = annotations.get(REVISION) if isinstance(annotations, dict) else None
    return found if isinstance(found, str) else ""


def _as_label(name: str) -> str:
    """Return the name of an object as the value of a label, which may hold less than a name (`system:node`)."""
    found = _NOT_IN_LABELS.sub("-", name[:_NAME_LENGTH])
    return found.strip("-_.")


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateRequest(PolicyDocument):
    """Work for the background controller."""

    spec: UpdateRequestSpec


def _context(
    *, user_info: Mapping[str, JSON] | None = None, admission_request_info: Mapping[str, JSON] | None = None
) -> AdmissionContext:
    who, what = user_info or {}, admission_request_info or {}
    return AdmissionContext(
        who.get("user_info") or {},
        who.get("roles") or (),
        who.get("cluster_roles") or (),
        what.get("admission_request"),
        what.get("operation") or "",
    )


_TRIGGER = Record(Trigger, *(Field(name, text) for name in ("api_version", "kind", "namespace", "name", "uid")))
_CONTEXT = Record(
    _context,
    Field(
        "user_info",
        Record(
            dict,
            Field("user_info", free),
            Field("roles", list_of(text)),
            Field("cluster_roles", list_of(text)),
            Field("dry_run", boolean, json="synchronize"),
            extras=(),
        ),
    ),
    Field(
        "admission_request_info",
        Record(dict, Field("admission_request", free), Field("operation", text), extras=()),
    ),
    extras=(),
)
_SPEC = Record(
    UpdateRequestSpec,
    Field("request_type", choice(RequestType), required=True),
    Field("policy", text, required=True),
    Field("rule", text),
    Field(
        "rule_context",
        list_of(
            Record(
                RuleContext,
                Field("rule", text, required=True),
                Field("trigger", _TRIGGER),
                Field("delete_downstream", boolean),
                Field("synchronize", boolean),
                Field("cache_restore", boolean),
            )
        ),
    ),
    Field("resource", _TRIGGER),
    Field("context", _CONTEXT),
    Field("delete_downstream", boolean),
    Field("synchronize", boolean),
)

UPDATE_REQUEST = policy_record(UpdateRequest, _SPEC)
