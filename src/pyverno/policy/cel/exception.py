"""PolicyException for CEL policies, as written (`policies.kyverno.io`).

This module must not decide whether an exception applies, nor read a clock.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum

from pyverno.errors import ValueSyntaxError
from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.time.gotime import GoTime, parse_rfc3339
from pyverno.kube.yaml.fieldpath import Path
from pyverno.lazyregex import regex
from pyverno.policy.cel.blocks import CONDITIONS, EvaluationMode
from pyverno.policy.document import PolicyDocument, policy_record
from pyverno.policy.schema import Cursor, Field, Record, choice, list_of, map_of, text
from pyverno.policy.validate import NamedExpression
from pyverno.value import dataclass, field

__all__ = ["CEL_EXCEPTION", "PRIORITY_LABEL", "CelException", "CelExceptionSpec", "PolicyReference", "ReportResult"]

PRIORITY_LABEL = "polex.kyverno.io/priority"
_NUMBER = regex(r"[+-]?[0-9]{1,19}", re.ASCII)


class ReportResult(StrEnum):
    """As what an exempted policy is reported."""

    SKIP = "skip"
    PASS = "pass"  # noqa: S105  # a result, no password


@dataclass(frozen=True, slots=True)
class PolicyReference:
    """One policy by name and kind; both are exact, and neither knows namespaces."""

    name: str
    kind: str
    path: Path = ()


@dataclass(frozen=True, slots=True)
class CelExceptionSpec:
    """The exempted policies and resources, the end of the exemption, and its report.

    With `images` or `allowed_values` the policies still run, and their expressions see these lists.
    """

    policy_refs: tuple[PolicyReference, ...]
    match_conditions: tuple[NamedExpression, ...] = ()
    images: tuple[str, ...] = ()
    allowed_values: tuple[str, ...] = ()
    report_result: ReportResult = ReportResult.SKIP
    expires_at: GoTime | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    evaluation_mode: EvaluationMode | None = None
    raw: JSONObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class CelException(PolicyDocument):
    """Exempts resources from CEL policies."""

    spec: CelExceptionSpec

    @property
    def is_partial(self) -> bool:
        """Return whether the policies still run, with lists of what is allowed."""
        return bool(self.spec.images or self.spec.allowed_values)

    @property
    def priority(self) -> int:
        """The number in the priority label; 0 when it is missing or not a number."""
        written = self.labels.get(PRIORITY_LABEL, "")
        return int(written) if _NUMBER.fullmatch(written) else 0

    def names(self, kind: str, name: str) -> bool:
        """Return whether the exception names a policy."""
        return any((each.kind, each.name) == (kind, name) for each in self.spec.policy_refs)


def _instant(value: JSON, cursor: Cursor) -> GoTime | None:
    written = text(value, cursor)
    if not isinstance(value, str):
        return None
    try:
        return parse_rfc3339(written)
    except ValueSyntaxError as error:
        cursor.error("time", f"`{written}` is not a time such as `2026-05-01T00:00:00Z`: {error.message}")
        return None


_SPEC = Record(
    CelExceptionSpec,
    Field(
        "policy_refs",
        list_of(Record(PolicyReference, Field("name", text, required=True), Field("kind", text, required=True))),
        required=True,
    ),
    Field("match_conditions", CONDITIONS),
    Field("images", list_of(text)),
    Field("allowed_values", list_of(text)),
    Field("report_result", choice(ReportResult)),
    Field("expires_at", _instant),
    Field("properties", map_of(text)),
    Field("evaluation_mode", choice(EvaluationMode)),
)

CEL_EXCEPTION = policy_record(CelException, _SPEC)
