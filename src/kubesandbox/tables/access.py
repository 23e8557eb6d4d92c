"""Rows of access control: RBAC, certificate requests, admission webhooks and policies."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from kubesandbox.tables.cells import (
    NONE,
    UNSET,
    age,
    count,
    human_duration,
    name_of,
    objects,
    part,
    selector_text,
    text,
)
from kubesandbox.tables.printer import Printer, Printers, columns
from pyverno.kube.json import JSON, JSONObject

__all__ = ["PRINTERS"]


def _binding(body: JSONObject, now: datetime) -> Iterator[JSON]:
    yield name_of(body)
    yield f"{text(body, 'roleRef', 'kind')}/{text(body, 'roleRef', 'name')}"
    yield age(body, now)
    subjects = objects(body, "subjects")
    for kind in ("User", "Group"):
        yield ", ".join(text(subject, "name") for subject in subjects if text(subject, "kind") == kind)
    accounts = (subject for subject in subjects if text(subject, "kind") == "ServiceAccount")
    yield ", ".join(f"{text(account, 'namespace')}/{text(account, 'name')}" for account in accounts)


def _signing_request(body: JSONObject, now: datetime) -> Iterator[JSON]:
    yield name_of(body)
    yield age(body, now)
    yield text(body, "spec", "signerName") or NONE
    yield text(body, "spec", "username")
    seconds = part(body, "spec", "expirationSeconds")
    yield NONE if seconds is None else human_duration(timedelta(seconds=seconds))
    yield _signing_status(body)


def _signing_status(body: JSONObject) -> str:
    kinds = {text(condition, "type") for condition in objects(body, "status", "conditions")}
    words = [next((kind for kind in ("Denied", "Approved") if kind in kinds), "Pending")]
    if "Failed" in kinds:
        words.append("Failed")
    if text(body, "status", "certificate"):
        words.append("Issued")
    return ",".join(words)


def _webhooks(body: JSONObject, now: datetime) -> Iterator[JSON]:
    yield name_of(body)
    yield count(body, "webhooks")
    yield age(body, now)


def _validating_policy(body: JSONObject, now: datetime) -> Iterator[JSON]:
    return _policy(body, now, "validations")


def _mutating_policy(body: JSONObject, now: datetime) -> Iterator[JSON]:
    return _policy(body, now, "mutations")


def _policy(body: JSONObject, now: datetime, field: str) -> Iterator[JSON]:
    kind = part(body, "spec", "paramKind")
    yield name_of(body)
    yield count(body, "spec", field)
    yield UNSET if kind is None else f"{text(kind, 'apiVersion')}/{text(kind, 'kind')}"
    yield age(body, now)


def _policy_binding(body: JSONObject, now: datetime) -> Iterator[JSON]:
    yield name_of(body)
    yield text(body, "spec", "policyName")
    yield _parameters(part(body, "spec", "paramRef"))
    yield age(body, now)


def _parameters(reference: JSON) -> str:
    name = text(reference, "name")
    if name:
        return f"{text(reference, 'namespace') or '*'}/{name}"
    selector = part(reference, "selector")
    return UNSET if selector is None else selector_text(selector, empty="")


_BINDING = columns("NAME Role AGE Users* Groups* ServiceAccounts*")
_WEBHOOKS = columns("NAME Webhooks:integer AGE")
_POLICY_BINDING = columns("NAME PolicyName ParamRef AGE")
_ADMISSION = "admissionregistration.k8s.io"

PRINTERS: Printers = {
    (_ADMISSION, "mutatingadmissionpolicies"): Printer(
        columns("NAME Mutations:integer ParamKind AGE"), _mutating_policy
    ),
    (_ADMISSION, "mutatingadmissionpolicybindings"): Printer(_POLICY_BINDING, _policy_binding),
    (_ADMISSION, "mutatingwebhookconfigurations"): Printer(_WEBHOOKS, _webhooks),
    (_ADMISSION, "validatingadmissionpolicies"): Printer(
        columns("NAME Validations:integer ParamKind AGE"), _validating_policy
    ),
    (_ADMISSION, "validatingadmissionpolicybindings"): Printer(_POLICY_BINDING, _policy_binding),
    (_ADMISSION, "validatingwebhookconfigurations"): Printer(_WEBHOOKS, _webhooks),
    ("certificates.k8s.io", "certificatesigningrequests"): Printer(
        columns("NAME AGE SignerName Requestor RequestedDuration Condition"), _signing_request
    ),
    ("rbac.authorization.k8s.io", "clusterrolebindings"): Printer(_BINDING, _binding),
    ("rbac.authorization.k8s.io", "rolebindings"): Printer(_BINDING, _binding),
}
