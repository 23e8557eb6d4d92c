"""PolicyException for legacy policies, as written (`kyverno.io/v2`, `v2beta1`).

This module must not decide whether an exception applies.
"""

from __future__ import annotations

from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.yaml.fieldpath import Path
from pyverno.policy.document import PolicyDocument, policy_record
from pyverno.policy.match import MATCH_WITHOUT_FLAT, MatchBlocks
from pyverno.policy.schema import Field, Record, boolean, free, list_of, text
from pyverno.policy.validate import POD_SECURITY_EXCLUDE, PodSecurityExclude
from pyverno.value import dataclass, field

__all__ = ["POLICY_EXCEPTION", "ExceptionSpec", "PolicyException", "PolicyReference"]


@dataclass(frozen=True, slots=True)
class PolicyReference:
    """Rules of one policy; rule names may hold wildcards, the policy's name (or `namespace/name`) may not."""

    policy_name: str
    rule_names: tuple[str, ...]
    path: Path = ()


@dataclass(frozen=True, slots=True)
class ExceptionSpec:
    """The exempted resources and rules; `conditions` stays plain JSON."""

    exceptions: tuple[PolicyReference, ...]
    match: MatchBlocks
    background: bool = True
    conditions: JSON = None
    pod_security: tuple[PodSecurityExclude, ...] = ()
    raw: JSONObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyException(PolicyDocument):
    """Exempts resources from rules of legacy policies."""

    spec: ExceptionSpec


_SPEC = Record(
    ExceptionSpec,
    Field("background", boolean),
    Field("match", MATCH_WITHOUT_FLAT, required=True),
    Field("conditions", free),
    Field(
        "exceptions",
        list_of(
            Record(
                PolicyReference,
                Field("policy_name", text, required=True),
                Field("rule_names", list_of(text), required=True),
            )
        ),
        required=True,
    ),
    Field("pod_security", list_of(POD_SECURITY_EXCLUDE)),
)

POLICY_EXCEPTION = policy_record(PolicyException, _SPEC)
